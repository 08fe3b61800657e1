//! Finds a number in the text of usage without reading the rest.

/// The completion tokens of a usage object whose form leaves no doubt about them; `None` does not mean that there are none.
///
/// No other field can then make the object invalid, or the number of its completion tokens smaller.
pub(super) fn completion_tokens(raw: &str) -> Option<u64> {
    const NAME: &[u8] = b"\"completion_tokens\":";
    /// More objects and lists than that may be nested too deep.
    const MAX_CONTAINERS: usize = 32;
    let raw = raw.as_bytes();
    // Without an escape, a quote before a colon ends a key. A private name of `serde_json` begins with `$`.
    if memchr::memchr2(b'\\', b'$', raw).is_some()
        || memchr::memchr2_iter(b'{', b'[', raw).count() > MAX_CONTAINERS
    {
        return None;
    }
    let mut places = memchr::memchr_iter(b'c', raw).filter_map(|at| {
        let (before, rest) = raw.split_at_checked(at.checked_sub(1)?)?;
        Some((before, rest.strip_prefix(NAME)?))
    });
    let (before, after) = places.next()?;
    // The one brace is that of the object itself. Of equal keys the last one counts.
    let is_outermost = before.starts_with(b"{") && memchr::memchr_iter(b'{', before).count() == 1;
    if !is_outermost || places.next().is_some() {
        return None;
    }
    let after = after.trim_ascii_start();
    let digits = after.iter().take_while(|byte| byte.is_ascii_digit());
    let (number, rest) = after.split_at_checked(digits.count())?;
    let is_integer = matches!(rest.trim_ascii_start(), [b',' | b'}', ..]);
    let number = str::from_utf8(number).ok().filter(|_| is_integer)?;
    number.parse().ok()
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
