//! Compares reports of usage by their bytes.

/// Whether two JSON texts differ at most in values that are integers. Then the later text replaces everything in the
/// earlier one.
pub(in crate::usage) fn differ_in_numbers_only(one: &str, other: &str) -> bool {
    // Without escapes, a quote before a colon ends a key.
    if memchr::memchr(b'\\', one.as_bytes()).is_some() {
        return false;
    }
    numbers_after(one.as_bytes(), other.as_bytes()).is_some()
}

fn numbers_after(one: &[u8], other: &[u8]) -> Option<()> {
    let (mut at, mut other_at) = (0, 0);
    while at < one.len() || other_at < other.len() {
        let equal = common_len(one.get(at..)?, other.get(other_at..)?);
        at += equal;
        other_at += equal;
        if at == one.len() && other_at == other.len() {
            break;
        }
        // Two numbers may begin with the same digits.
        let before = one.get(at - equal..at)?;
        let back = before.iter().rev().take_while(|b| b.is_ascii_digit());
        let back = back.count();
        let start = at - back;
        let is_value = one.get(..start)?.trim_ascii_end().ends_with(b"\":");
        let length = digits(one.get(start..)?)?;
        let other_length = digits(other.get(other_at - back..)?)?;
        (at, other_at) = (start + length, other_at - back + other_length);
        is_value.then_some(())?;
    }
    Some(())
}

/// The length of the start that two texts have in common.
fn common_len(one: &[u8], other: &[u8]) -> usize {
    const STEP: usize = 16;
    let steps = one.as_chunks::<STEP>().0.iter().zip(other.as_chunks().0);
    let equal = STEP * steps.take_while(|(a, b)| a == b).count();
    let (one, other) = (one.get(equal..), other.get(equal..));
    let rest = one
        .unwrap_or_default()
        .iter()
        .zip(other.unwrap_or_default());
    equal + rest.take_while(|(a, b)| a == b).count()
}

/// The number of digits at the start; `None` for none, and for so many that the number may be too large for a count, which
/// would then not replace the earlier one.
fn digits(text: &[u8]) -> Option<usize> {
    const MAX_DIGITS: usize = 15;
    let count = text.iter().take_while(|b| b.is_ascii_digit()).count();
    (1..=MAX_DIGITS).contains(&count).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::differ_in_numbers_only;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        assert_eq!(
            differ_in_numbers_only(one, other),
            expected,
            "{one} {other}"
        );
        assert_eq!(
            differ_in_numbers_only(other, one),
            expected,
            "{other} {one}"
        );
    }

    #[test]
    fn u04_only_integers_may_differ() {
        check(
            "{\"a\":1,\"b\":{\"c\": 22}}",
            "{\"a\":999,\"b\":{\"c\": 3}}",
            true,
        );
        check("{\"a1\":1}", "{\"a2\":1}", false);
        check("{\"a\":\"1\"}", "{\"a\":\"2\"}", false);
        check("{\"a\":1}", "{\"a\":-1}", false);
        check("{\"a\":1}", "{\"a\":1.5}", false);
        check("{\"a\":1.5}", "{\"a\":2.5}", true);
        check("{\"a\":1.5}", "{\"a\":1.7}", false);
        check("{\"a\":1}", "{\"a\":null}", false);
        check("{\"a\":1}", "{\"a\":1,\"b\":2}", false);
        check("{\"a\":[1,2]}", "{\"a\":[1,3]}", false);
        check("", "{}", false);
        check("{\"a:1\":1}", "{\"a:2\":1}", false);
        check("{\"\\\":1\":1}", "{\"\\\":2\":1}", false);
        check("{\"a\":1}", "{\"a\":99999999999999999999}", false);
    }
}
