//! Removes the white space between the tokens of a JSON text.

use std::borrow::Cow;

use memchr::memchr2;

/// The text without white space outside strings. Everything else stays: escapes, the notation of numbers, the order of
/// keys, and duplicate keys.
pub fn compact(text: &str) -> Cow<'_, str> {
    let mut compact = String::new();
    // The text before `from` is in `compact` already, if white space was removed before.
    let (mut from, mut pos) = (0, 0);
    while let Some(byte) = text.as_bytes().get(pos) {
        match byte {
            b'"' => pos = string_end(text, pos + 1),
            b' ' | b'\n' | b'\r' | b'\t' => {
                compact.push_str(text.get(from..pos).unwrap_or_default());
                pos += 1;
                from = pos;
            }
            _ => pos += 1,
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    compact.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(compact)
}

/// The offset after the string whose opening quote is before `pos`.
fn string_end(text: &str, mut pos: usize) -> usize {
    loop {
        let rest = text.as_bytes().get(pos..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            None => return text.len(),
            Some(end) if rest.get(end) == Some(&b'"') => return pos + end + 1,
            Some(end) => pos += end + 2, // an escaped character does not end the string
        }
    }
}

#[cfg(test)]
mod tests {
    use super::compact;

    #[test]
    fn only_white_space_outside_of_strings_is_removed() {
        let check = |text, expected| assert_eq!(compact(text), expected);
        check("{}", "{}");
        check(" { } ", "{}");
        check(
            "{ \"a b\" :\t1e400 ,\r\n\"a b\" : [ 1.50, -0 , \"\\u00e9 \\\" x\" ] }",
            "{\"a b\":1e400,\"a b\":[1.50,-0,\"\\u00e9 \\\" x\"]}",
        );
        check("\"open \\", "\"open \\");
        check("\"é \u{a0}\" \u{a0}", "\"é \u{a0}\"\u{a0}");
    }
}
