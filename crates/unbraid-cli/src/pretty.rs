//! JSON text, indented as `serde_json` indents values, in which numbers and strings stay as they are.

use std::io::{self, Write};

/// Writes JSON text that has no white space between its tokens, indented.
///
/// Indentation may be a hundred times as long as the text, so it is written and never kept. Each write holds whole characters.
pub(crate) fn write_indented(json: &str, out: &mut impl Write) -> io::Result<()> {
    let mut depth = 0_usize;
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => string_length(rest),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        rest = behind;
        match first {
            '{' | '[' if rest.starts_with(['}', ']']) => {
                let (closer, behind) = rest.split_at_checked(1).unwrap_or((rest, ""));
                out.write_all(token.as_bytes())?;
                out.write_all(closer.as_bytes())?;
                rest = behind;
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

/// How long the string is that the text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
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
    fn values_are_indented_as_serde_json_indents_them() {
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
    fn numbers_stay_as_they_are() {
        assert_eq!(indented("[1e400,0.10]"), "[\n  1e400,\n  0.10\n]");
        let _value: Value = serde_json::from_str(&indented(r#"{"a":0.10}"#)).unwrap();
    }
}
