//! Indents JSON text as `serde_json` indents values, but leaves numbers and strings as they are.

use std::io::{self, Write};

/// Indents JSON text that has no white space between its tokens.
///
/// Deep nesting can make the indentation a hundred times as long as the text, so it is written directly and never buffered
/// as a whole. Each write holds whole characters.
pub(crate) fn write_indented(json: &str, out: &mut impl Write) -> io::Result<()> {
    let mut depth = 0_usize;
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            _ => first.len_utf8(),
        };
        let (token, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
        rest = after;
        match first {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                let (closer, after) = rest.split_at_checked(1).unwrap_or((rest, ""));
                out.write_all(token.as_bytes())?;
                out.write_all(closer.as_bytes())?;
                rest = after;
            }
            '{' | '[' => {
                depth += 1;
                out.write_all(token.as_bytes())?;
                new_line(out, depth)?;
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(out, depth)?;
                out.write_all(token.as_bytes())?;
            }
            ',' => {
                out.write_all(token.as_bytes())?;
                new_line(out, depth)?;
            }
            ':' => out.write_all(b": ")?,
            _ => out.write_all(token.as_bytes())?,
        }
    }
    Ok(())
}

/// The length of the string at the start of the text, including its quotes.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return offset + 1,
            _ => {}
        }
    }
    text.len()
}

fn new_line(out: &mut impl Write, depth: usize) -> io::Result<()> {
    out.write_all(b"\n")?;
    (0..depth).try_for_each(|_| out.write_all(b"  "))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::write_indented;

    fn indented(json: &str) -> String {
        let mut out = Vec::new();
        write_indented(json, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_are_indented_like_serde_json() {
        let values = [
            json!({}),
            json!([]),
            json!("a\"b{,}:\\"),
            json!({"a": [], "b": {}, "c": [1, [2, {}], {"d": null}], "é\\\"": "x, y: [z]"}),
        ];
        for value in values {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(indented(&value.to_string()), expected);
        }
    }

    #[test]
    fn numbers_are_left_unchanged() {
        assert_eq!(indented("[1e400,0.10]"), "[\n  1e400,\n  0.10\n]");
        let _value: Value = serde_json::from_str(&indented(r#"{"a":0.10}"#)).unwrap();
    }
}
