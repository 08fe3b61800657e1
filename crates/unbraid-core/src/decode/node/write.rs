//! Nodes to text that serde_json reads, and the limits of what it reads.

use super::{Node, Value, number};

/// serde_json refuses the level after this one.
pub(crate) const SERDE_DEPTH: usize = 127;

/// With its `raw_value` feature, serde_json takes an object that starts with this key for the text in its value.
pub(crate) const SERDE_KEY: &str = "$serde_json::private::RawValue";

pub(crate) fn json(node: &Node<'_>) -> String {
    let mut writer = Writer {
        out: String::with_capacity(node.raw.len()),
        any_number: true,
    };
    writer.write(node, SERDE_DEPTH);
    writer.out
}

/// The same, with null for every number that a `Value` has no room for.
pub(crate) fn json_in_range(node: &Node<'_>) -> String {
    let mut writer = Writer {
        out: String::with_capacity(node.raw.len()),
        any_number: false,
    };
    writer.write(node, SERDE_DEPTH);
    writer.out
}

struct Writer {
    out: String,
    /// Whether numbers beyond the largest `f64` are written, too.
    any_number: bool,
}

impl Writer {
    fn write(&mut self, node: &Node<'_>, levels: usize) {
        match &node.value {
            Value::Null => self.out.push_str("null"),
            Value::Number(raw) if node.clean && (self.any_number || number::in_range(raw)) => {
                self.out.push_str(raw);
            }
            Value::Number(_) => self.out.push_str("null"),
            Value::Bool(truth) => self.out.push_str(if *truth { "true" } else { "false" }),
            Value::String(_) if node.clean => self.out.push_str(node.raw),
            Value::String(wide) => write_string(&mut self.out, &wide.to_cow()),
            Value::Array(_) | Value::Object(_) if levels == 0 => self.out.push_str("null"),
            Value::Array(items) => {
                self.out.push('[');
                for (place, item) in items.iter().enumerate() {
                    comma(&mut self.out, place);
                    self.write(item, levels - 1);
                }
                self.out.push(']');
            }
            Value::Object(fields) => {
                self.out.push('{');
                let kept = fields.iter().filter(|(key, _)| key != SERDE_KEY);
                for (place, (key, node)) in kept.enumerate() {
                    comma(&mut self.out, place);
                    write_string(&mut self.out, key);
                    self.out.push(':');
                    self.write(node, levels - 1);
                }
                self.out.push('}');
            }
        }
    }
}

fn comma(out: &mut String, place: usize) {
    if place > 0 {
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
