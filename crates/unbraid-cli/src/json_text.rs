//! JSON that a terminal can print: what would command it, or reorder its text, is escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;

use crate::printable::turns_text;

/// A value as JSON text. The library's own types always have one.
pub(crate) fn of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| Value::from(error.to_string()).to_string())
}

/// Writes JSON text, with C1 controls, DEL and marks of direction in its strings as `\u....`.
///
/// JSON leaves these characters as they are, and means the same with the escape, so that it is the same text for every
/// program. It is written so into pipes and files as well: `less`, `tee` and `cat` bring it to a terminal, too.
///
/// Each write has to hold whole characters, as the writes of `serde_json` do.
#[derive(Debug)]
pub(crate) struct Harmless<W>(pub(crate) W);

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        self.write_all(json)?;
        Ok(json.len())
    }

    fn write_all(&mut self, json: &[u8]) -> io::Result<()> {
        if json.iter().all(|byte| *byte < DEL) {
            return self.0.write_all(json);
        }
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        let mut kept = 0;
        for (at, c) in text.char_indices().filter(|(_, c)| is_harmful(*c)) {
            self.0
                .write_all(text.get(kept..at).unwrap_or_default().as_bytes())?;
            // All of them are below U+10000: one escape each.
            write!(self.0, "\\u{:04x}", u32::from(c))?;
            kept = at + c.len_utf8();
        }
        self.0
            .write_all(text.get(kept..).unwrap_or_default().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

const DEL: u8 = 0x7f;

/// Outside of strings JSON has none of them. The controls below the space are escaped by JSON's own rule.
fn is_harmful(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}') || turns_text(c)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Harmless;

    #[test]
    fn what_commands_a_terminal_is_escaped_and_means_the_same() {
        let text = "a\u{9b}2J\u{7f}b\u{202e}c\u{2066}d\u{9f}";
        let value = json!({ text: [text, "é 😀 \u{200f}"] });
        let mut out = Vec::new();
        serde_json::to_writer(Harmless(&mut out), &value).unwrap();
        let written = String::from_utf8(out).unwrap();
        let escaped = r"a\u009b2J\u007fb\u202ec\u2066d\u009f";
        let expected = format!("{{\"{escaped}\":[\"{escaped}\",\"é 😀 \u{200f}\"]}}");
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
    }
}
