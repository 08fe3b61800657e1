//! Writes nodes as text that `serde_json` can read, within the limits of that crate.

use super::{Node, Value, number};

/// The deepest nesting that `serde_json` accepts.
pub(crate) const SERDE_DEPTH: usize = 127;

/// With its feature `raw_value`, `serde_json` reads an object with this first key as the raw text in its value.
pub(crate) const SERDE_KEY: &str = "$serde_json::private::RawValue";

pub(crate) fn json(node: &Node<'_>) -> String {
    let mut writer = Writer {
        out: String::with_capacity(node.raw.len()),
        keeps_large_numbers: true,
    };
    writer.write(node, SERDE_DEPTH);
    writer.out
}

/// Like [`json`], but with null for every number that a `Value` has no room for.
pub(crate) fn json_in_range(node: &Node<'_>) -> String {
    let mut writer = Writer {
        out: String::with_capacity(node.raw.len()),
        keeps_large_numbers: false,
    };
    writer.write(node, SERDE_DEPTH);
    writer.out
}

struct Writer {
    out: String,
    /// Whether numbers beyond the largest `f64` are kept.
    keeps_large_numbers: bool,
}

impl Writer {
    fn write(&mut self, node: &Node<'_>, remaining_depth: usize) {
        match &node.value {
            Value::Null => self.out.push_str("null"),
            Value::Number(raw)
                if node.clean && (self.keeps_large_numbers || number::in_range(raw)) =>
            {
                self.out.push_str(raw);
            }
            Value::Number(_) => self.out.push_str("null"),
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::String(_) if node.clean => self.out.push_str(node.raw),
            Value::String(string) => write_string(&mut self.out, &string.to_cow()),
            Value::Array(_) | Value::Object(_) if remaining_depth == 0 => self.out.push_str("null"),
            Value::Array(items) => {
                self.out.push('[');
                for (position, item) in items.iter().enumerate() {
                    comma(&mut self.out, position);
                    self.write(item, remaining_depth - 1);
                }
                self.out.push(']');
            }
            Value::Object(fields) => {
                self.out.push('{');
                let kept = fields.iter().filter(|(key, _)| key != SERDE_KEY);
                for (position, (key, node)) in kept.enumerate() {
                    comma(&mut self.out, position);
                    write_string(&mut self.out, key);
                    self.out.push(':');
                    self.write(node, remaining_depth - 1);
                }
                self.out.push('}');
            }
        }
    }
}

fn comma(out: &mut String, position: usize) {
    if position > 0 {
        out.push(',');
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..' ' => {
                let code = u32::from(char);
                out.push_str(if code < 0x10 { "\\u000" } else { "\\u001" });
                out.extend(char::from_digit(code % 0x10, 0x10));
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}
