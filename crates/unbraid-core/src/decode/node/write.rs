//! Nodes to text that serde_json reads, and the limits of what it reads.

use std::collections::HashMap;

use super::{Node, Value};

/// serde_json refuses the level after this one.
pub(crate) const SERDE_DEPTH: usize = 127;

/// With its `raw_value` feature, serde_json takes an object that starts with this key for the text in its value.
pub(crate) const SERDE_KEY: &str = "$serde_json::private::RawValue";

pub(crate) fn json(node: &Node<'_>) -> String {
    let mut out = String::with_capacity(node.raw.len());
    write(&mut out, node, SERDE_DEPTH);
    out
}

fn write(out: &mut String, node: &Node<'_>, levels: usize) {
    match &node.value {
        Value::Null => out.push_str("null"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) if node.clean => {
            out.push_str(node.raw)
        }
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(_) => out.push_str("null"),
        Value::String(wide) => write_string(out, &wide.to_cow()),
        Value::Array(_) | Value::Object(_) if levels == 0 => out.push_str("null"),
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                comma(out, place);
                write(out, item, levels - 1);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            // Collecting keeps the last value of a key; taking it out writes it at the first place only.
            let mut last: HashMap<&str, &Node<'_>> =
                fields.iter().map(|(key, node)| (&**key, node)).collect();
            last.remove(SERDE_KEY);
            let kept = fields
                .iter()
                .filter_map(|(key, _)| Some((key, last.remove(&**key)?)));
            for (place, (key, node)) in kept.enumerate() {
                comma(out, place);
                write_string(out, key);
                out.push(':');
                write(out, node, levels - 1);
            }
            out.push('}');
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
