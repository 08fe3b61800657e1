//! Finds a number in the text of usage without reading the rest.

/// The completion tokens of a usage object whose form leaves no doubt about them; `None` does not mean that there are none.
///
/// No other field can then make the object invalid, or the number of its completion tokens smaller. No other count is one that is
/// warned about (U9).
pub(super) fn completion_tokens(raw: &str) -> Option<u64> {
    const NAME: &[u8] = b"\"completion_tokens\"";
    /// More objects and lists than that may be nested too deep.
    const MAX_CONTAINERS: usize = 32;
    let raw = raw.as_bytes();
    // Without an escape, a quote before a colon ends a key. A private name of `serde_json` begins with `$`.
    if memchr::memchr2(b'\\', b'$', raw).is_some()
        || memchr::memchr2_iter(b'{', b'[', raw).count() > MAX_CONTAINERS
    {
        return None;
    }
    let mut found = None;
    for at in memchr::memchr_iter(b':', raw) {
        let (before, after) = raw.split_at_checked(at)?;
        // The names of all counts, and few others.
        if before.ends_with(b"okens\"") || before.ends_with(b"ount\"") {
            let count = count(after.get(1..)?)?;
            if let Some(before) = before.strip_suffix(NAME) {
                // The one brace is that of the object itself. Of equal keys the last one counts.
                let is_outermost =
                    before.starts_with(b"{") && memchr::memchr_iter(b'{', before).count() == 1;
                let number = str::from_utf8(count?).ok()?.parse().ok()?;
                if !is_outermost || found.replace(number).is_some() {
                    return None;
                }
            }
        } else if before.last().is_some_and(u8::is_ascii_whitespace) {
            return None; // it may end a name
        }
    }
    found
}

/// The digits of the count at the start of a text, or null; `None` for anything else, which has to be read.
fn count(text: &[u8]) -> Option<Option<&[u8]>> {
    /// A number with more digits may be larger than a `u64`.
    const MAX_DIGITS: usize = 19;
    let text = text.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return text.starts_with(b"null").then_some(None);
    }
    let (number, rest) = text.split_at_checked(digits)?;
    let is_integer = digits <= MAX_DIGITS && matches!(rest.trim_ascii_start(), [b',' | b'}', ..]);
    is_integer.then_some(Some(number))
}

#[cfg(test)]
mod tests {
    use super::completion_tokens;

    #[test]
    fn only_tokens_of_the_object_itself_that_no_other_field_changes_are_found() {
        for (raw, expected) in [
            (r#"{"completion_tokens":7}"#, Some(7)),
            (r#"{"completion_tokens": 7 ,"a":{"b":[]}}"#, Some(7)),
            (r#"{"a":[1],"completion_tokens":0}"#, Some(0)),
            (r#"{"a":{"b":1},"completion_tokens":7}"#, None),
            (r#"{"a":{"completion_tokens":7}}"#, None),
            (r#"{"completion_tokens":7,"completion_tokens":8}"#, None),
            (
                r#"{"completion_tokens":7,"a":{"completion_tokens":8}}"#,
                None,
            ),
            (r#"{"completion_tokens":7.0}"#, None),
            (r#"{"completion_tokens":7e2}"#, None),
            (r#"{"completion_tokens":-7}"#, None),
            (r#"{"completion_tokens":"7"}"#, None),
            (r#"{"completion_tokens":99999999999999999999}"#, None),
            (r#"{"completion_tokens":null}"#, None),
            (r#"{"xcompletion_tokens":7}"#, None),
            (
                r#"{"a":"completion_tokens","completion_tokens":7}"#,
                Some(7),
            ),
            (
                r#"{"completion_tokens":7,"\u0063ompletion_tokens":8}"#,
                None,
            ),
            (r#"{"completion_tokens":7,"$a":8}"#, None),
            (
                r#"{"completion_tokens":7,"cost":0.5,"prompt_tokens":null}"#,
                Some(7),
            ),
            (r#"{"completion_tokens":7,"prompt_tokens":2.5}"#, None),
            (
                r#"{"prompt_tokens":20000000000000000000,"completion_tokens":7}"#,
                None,
            ),
            (
                r#"{"completion_tokens":7,"a":{"cached_tokens":"2.5"}}"#,
                None,
            ),
            (r#"{"completion_tokens":7,"a_tokens" :2.5}"#, None),
            (r#"[{"completion_tokens":7}]"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(completion_tokens(raw), expected, "{raw}");
        }
        let deep = format!(
            "{{\"completion_tokens\":7,\"a\":{}{}}}",
            "[".repeat(40),
            "]".repeat(40)
        );
        assert_eq!(completion_tokens(&deep), None);
    }
}
