//! JSON that is safe to print on a terminal: characters that control it or reorder its text are escaped.

use std::io::{self, Write};

use crate::printable::is_bidi_control;

/// Writes JSON text with C1 controls, DEL and bidirectional controls in its strings escaped as `\u....`.
///
/// JSON allows these characters unescaped. The escape has the same meaning, so every program reads the same text. Pipes and
/// files get the escapes too, because `less`, `tee` and `cat` bring them to a terminal.
///
/// Each write must hold whole characters, as the writes of `serde_json` do.
#[derive(Debug)]
pub(crate) struct TerminalSafe<W>(pub(crate) W);

impl<W: Write> Write for TerminalSafe<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        self.write_all(json)?;
        Ok(json.len())
    }

    fn write_all(&mut self, json: &[u8]) -> io::Result<()> {
        // Two passes, each of which examines many bytes at once.
        if json.is_ascii() && memchr::memchr(DEL, json).is_none() {
            return self.0.write_all(json);
        }
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        let mut written = 0;
        for (offset, c) in text.char_indices().filter(|(_, c)| is_harmful(*c)) {
            self.0
                .write_all(text.get(written..offset).unwrap_or_default().as_bytes())?;
            // All of them are below U+10000, so each is one escape.
            write!(self.0, "\\u{:04x}", u32::from(c))?;
            written = offset + c.len_utf8();
        }
        self.0
            .write_all(text.get(written..).unwrap_or_default().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

const DEL: u8 = 0x7f;

/// These occur only in strings. JSON itself escapes the control characters below the space.
fn is_harmful(c: char) -> bool {
    matches!(c, '\u{7f}'..='\u{9f}') || is_bidi_control(c)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::TerminalSafe;

    #[test]
    fn terminal_controls_are_escaped_and_the_value_stays_equal() {
        let text = "a\u{9b}2J\u{7f}b\u{202e}c\u{2066}d\u{9f}";
        let value = json!({ text: [text, "é 😀 \u{200f}"] });
        let mut out = Vec::new();
        serde_json::to_writer(TerminalSafe(&mut out), &value).unwrap();
        let written = String::from_utf8(out).unwrap();
        let escaped = r"a\u009b2J\u007fb\u202ec\u2066d\u009f";
        let expected = format!("{{\"{escaped}\":[\"{escaped}\",\"é 😀 \u{200f}\"]}}");
        assert_eq!(written, expected);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
    }
}
