//! Compares JSON texts whose numbers differ, by their bytes.

/// Whether two JSON texts differ at most in values of fields that are integers, none of them too large for a count.
pub(crate) fn differ_in_integers_only(one: &str, other: &str) -> bool {
    /// A number of more digits may be too large, and would then not replace the earlier one.
    const MAX_DIGITS: usize = 15;
    differ_in_values_only(one, other, |byte| byte.is_ascii_digit(), MAX_DIGITS)
}

/// Whether two JSON texts differ at most in values of fields that are numbers.
pub(crate) fn differ_in_numbers_only(one: &str, other: &str) -> bool {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    differ_in_values_only(one, other, is_part, usize::MAX)
}

/// Whether two JSON texts differ at most in values of fields that consist of such bytes, and have up to this many of them.
fn differ_in_values_only(
    one: &str,
    other: &str,
    is_part: impl Fn(&u8) -> bool,
    max_length: usize,
) -> bool {
    // Without escapes, a quote before a colon ends a key.
    if memchr::memchr(b'\\', one.as_bytes()).is_some() {
        return false;
    }
    let length = |text: &[u8]| {
        let count = text.iter().take_while(|byte| is_part(byte)).count();
        (1..=max_length).contains(&count).then_some(count)
    };
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let (mut at, mut other_at) = (0, 0);
    while at < one.len() || other_at < other.len() {
        let next = || {
            let equal = common_len(one.get(at..)?, other.get(other_at..)?);
            let (at, other_at) = (at + equal, other_at + equal);
            if at == one.len() && other_at == other.len() {
                return Some((at, other_at));
            }
            // Two numbers may begin with the same bytes.
            let before = one.get(at - equal..at)?;
            let back = before.iter().rev().take_while(|byte| is_part(byte)).count();
            let (start, other_start) = (at - back, other_at - back);
            let is_value = one.get(..start)?.trim_ascii_end().ends_with(b"\":");
            let end = start + length(one.get(start..)?)?;
            let other_end = other_start + length(other.get(other_start..)?)?;
            is_value.then_some((end, other_end))
        };
        let Some(ends) = next() else {
            return false;
        };
        (at, other_at) = ends;
    }
    true
}

/// The length of the start that two texts have in common.
pub(crate) fn common_len(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 16;
    let (steps, other_steps) = (one.as_chunks::<STEP>().0, other.as_chunks::<STEP>().0);
    let mut equal = 0;
    for (a, b) in steps.iter().zip(other_steps) {
        let differing = u128::from_le_bytes(*a) ^ u128::from_le_bytes(*b);
        if differing != 0 {
            return equal + (differing.trailing_zeros() / 8) as usize;
        }
        equal += STEP;
    }
    let (rest, other_rest) = (one.get(equal..), other.get(equal..));
    let pairs = rest
        .unwrap_or_default()
        .iter()
        .zip(other_rest.unwrap_or_default());
    equal + pairs.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::{differ_in_integers_only, differ_in_numbers_only};

    /// Two texts, and whether only integers differ, and only numbers.
    const ROWS: [(&str, &str, bool, bool); 21] = [
        (r#"{"a":1}"#, r#"{"a":1}"#, true, true),
        (
            r#"{"a":1,"b":{"c": 22}}"#,
            r#"{"a":999,"b":{"c": 3}}"#,
            true,
            true,
        ),
        (r#"{"a":{"b": 12}}"#, r#"{"a":{"b": 123}}"#, true, true),
        (r#"{"a":1.5}"#, r#"{"a":2.5}"#, true, true),
        (r#"{"a":1.5}"#, r#"{"a":1.7}"#, false, true),
        (r#"{"a":1.5,"b":-2e3}"#, r#"{"a":1.7,"b":0}"#, false, true),
        (r#"{"a":1}"#, r#"{"a":-1}"#, false, true),
        (r#"{"a":1}"#, r#"{"a":1.5}"#, false, true),
        (r#"{"a":1}"#, r#"{"a":99999999999999999999}"#, false, true),
        (r#"{"a":1}"#, r#"{"a":null}"#, false, false),
        (r#"{"a":true}"#, r#"{"a":false}"#, false, false),
        (r#"{"a":"1"}"#, r#"{"a":"2"}"#, false, false),
        (r#"{"a":[1,2]}"#, r#"{"a":[1,3]}"#, false, false),
        (r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false, false),
        (r#"{"a":1}"#, r#"{"b":1}"#, false, false),
        (r#"{"a1":1}"#, r#"{"a2":1}"#, false, false),
        (r#"{"a:1":1}"#, r#"{"a:2":1}"#, false, false),
        (r#"{"e1":1}"#, r#"{"e2":1}"#, false, false),
        (r#"{"\":1":1}"#, r#"{"\":2":1}"#, false, false),
        (r#"{"a\":1":1}"#, r#"{"a\":2":1}"#, false, false),
        ("", "{}", false, false),
    ];

    #[test]
    fn u04_e24_only_numbers_of_fields_may_differ() {
        for (one, other, integers, numbers) in ROWS {
            for (one, other) in [(one, other), (other, one)] {
                assert_eq!(
                    differ_in_integers_only(one, other),
                    integers,
                    "{one} {other}"
                );
                assert_eq!(differ_in_numbers_only(one, other), numbers, "{one} {other}");
            }
        }
    }
}
