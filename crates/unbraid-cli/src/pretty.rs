//! JSON text, indented as `serde_json` indents values, in which numbers and strings stay as they are.

/// Indents JSON text that has no white space between its tokens.
pub(crate) fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
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
                out.push_str(token);
                out.push_str(closer);
                rest = behind;
            }
            '{' | '[' => {
                depth += 1;
                out.push_str(token);
                new_line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push_str(token);
            }
            ',' => {
                out.push_str(token);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => out.push_str(token),
        }
    }
    out
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

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::indented;

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
