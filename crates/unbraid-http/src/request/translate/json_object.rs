//! JSON text of a model or a tool as the object that a provider expects.

use serde_json::Value;

/// What a JSON text is for a provider that expects an object; `None` for any other value, and for an object with an integer
/// that a [`Value`] cannot hold.
pub(super) fn as_object(text: &str) -> Option<Value> {
    let object: Value = serde_json::from_str(text).ok().filter(Value::is_object)?;
    has_exact_integers(text).then_some(object)
}

/// Whether all integers of a JSON text have at most 64 bits. Longer ones, account numbers for example, would lose digits.
fn has_exact_integers(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) {
        let token = rest.get(at..).unwrap_or_default();
        let length = if token.starts_with('"') {
            string_length(token)
        } else {
            let end = token.find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'));
            let number = token.get(..end.unwrap_or(token.len())).unwrap_or_default();
            let is_integer = !number.contains(['.', 'e', 'E']);
            if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                return false;
            }
            number.len()
        };
        rest = token.get(length..).unwrap_or_default();
    }
    true
}

/// The length of the string at the start of a valid JSON text, with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_with_an_integer_of_more_than_64_bits_is_refused() {
        for exact in [
            r#"{"a":18446744073709551615,"b":-9223372036854775808}"#,
            r#"{"a":"12345678901234567890123","b\"1":1.5e300}"#,
            r#"{"a\\":[0, 1],"é":-0}"#,
        ] {
            assert!(as_object(exact).is_some(), "{exact}");
        }
        for long in [
            r#"{"a":12345678901234567890123}"#,
            r#"{"\\":[{"b":-9223372036854775809}]}"#,
        ] {
            assert_eq!(as_object(long), None, "{long}");
        }
    }
}
