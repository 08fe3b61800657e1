//! The repairs that depend on one character and its neighbours.

use std::borrow::Cow;

use super::{Repair, Repaired};

/// Scans a text once, and copies it only from the first repair on.
pub(super) struct Rewrite<'a> {
    text: &'a str,
    allowed: Repair,
    applied: Repair,
    out: String,
    /// How many bytes of the text `out` covers.
    copied: usize,
}

/// What follows a backslash.
enum AfterBackslash {
    /// The end of the text, or an escape that the end cuts.
    Cut,
    /// A valid escape of this length, without its backslash.
    Escape(usize),
    Unit(u16),
    Control(u8),
    /// A character that may not follow a backslash.
    Invalid,
}

impl<'a> Rewrite<'a> {
    pub(super) fn new(text: &'a str, allowed: Repair) -> Self {
        Self {
            text,
            allowed,
            applied: Repair::NONE,
            out: String::new(),
            copied: 0,
        }
    }

    pub(super) fn finish(mut self) -> Repaired<'a> {
        let (mut pos, mut in_string) = (0, false);
        while let Some(byte) = self.byte(pos) {
            let used = match (in_string, byte) {
                (_, b'"') => {
                    in_string = !in_string;
                    1
                }
                (false, b'\\') => self.outer_escape(pos),
                (true, b'\\') => self.escape(pos),
                (true, 0..b' ') => {
                    self.replace(pos, 1, &escaped_control(byte), Repair::CONTROLS);
                    1
                }
                _ => 1,
            };
            pos += used;
        }
        let text = if self.applied.is_empty() {
            Cow::Borrowed(self.text)
        } else {
            self.out
                .push_str(self.text.get(self.copied..).unwrap_or_default());
            Cow::Owned(self.out)
        };
        Repaired {
            text,
            applied: self.applied,
        }
    }

    /// Handles a backslash outside strings; returns how many bytes it covers.
    fn outer_escape(&mut self, pos: usize) -> usize {
        let space = match self.byte(pos + 1) {
            Some(b'n') => "\n",
            Some(b'r') => "\r",
            Some(b't') => "\t",
            _ => return 1,
        };
        self.replace(pos, 2, space, Repair::LITERAL_NEWLINES);
        2
    }

    /// Handles a backslash in a string; returns how many bytes it covers.
    fn escape(&mut self, pos: usize) -> usize {
        match self.after_backslash(pos + 1) {
            AfterBackslash::Cut => 1,
            AfterBackslash::Escape(len) => 1 + len,
            AfterBackslash::Unit(unit) => self.unit(pos, unit),
            AfterBackslash::Control(control) => {
                // J3: the model wrote both characters. If only one of the two repairs is allowed, it is still made.
                let escaped = format!("\\\\{}", escaped_control(control));
                if self.replace(pos, 2, &escaped, Repair::CONTROLS) {
                    return 2;
                }
                self.replace(pos, 1, "\\\\", Repair::ESCAPES);
                1
            }
            AfterBackslash::Invalid => {
                self.replace(pos, 1, "\\\\", Repair::ESCAPES);
                1
            }
        }
    }

    /// Handles a valid `\u` escape.
    fn unit(&mut self, pos: usize, unit: u16) -> usize {
        let next = pos + UNICODE_ESCAPE_LEN;
        let has_partner = || {
            let low = (self.byte(next) == Some(b'\\')).then(|| self.after_backslash(next + 1));
            matches!(low, Some(AfterBackslash::Unit(0xDC00..=0xDFFF)))
        };
        match unit {
            // The other half may have been cut off.
            0xD800..=0xDBFF if next >= self.text.len() => UNICODE_ESCAPE_LEN,
            0xD800..=0xDBFF if has_partner() => 2 * UNICODE_ESCAPE_LEN,
            0xD800..=0xDFFF => {
                self.replace(pos, UNICODE_ESCAPE_LEN, "\\ufffd", Repair::LONE_SURROGATES);
                UNICODE_ESCAPE_LEN
            }
            _ => UNICODE_ESCAPE_LEN,
        }
    }

    fn after_backslash(&self, pos: usize) -> AfterBackslash {
        match self.byte(pos) {
            None => AfterBackslash::Cut,
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                AfterBackslash::Escape(1)
            }
            Some(b'u') => {
                let rest = self.text.as_bytes().get(pos + 1..).unwrap_or_default();
                let digits = rest.iter().map_while(|&byte| char::from(byte).to_digit(16));
                let (unit, count) = digits.take(4).fold((0, 0), |(unit, count), digit| {
                    (unit << 4 | digit, count + 1)
                });
                match u16::try_from(unit) {
                    Ok(unit) if count == 4 => AfterBackslash::Unit(unit),
                    _ if count == rest.len() => AfterBackslash::Cut,
                    _ => AfterBackslash::Invalid,
                }
            }
            Some(control @ 0..b' ') => AfterBackslash::Control(control),
            Some(_) => AfterBackslash::Invalid,
        }
    }

    fn byte(&self, pos: usize) -> Option<u8> {
        self.text.as_bytes().get(pos).copied()
    }

    /// Replaces part of the text, if the repair is allowed.
    fn replace(&mut self, pos: usize, len: usize, with: &str, repair: Repair) -> bool {
        let is_allowed = self.allowed.contains(repair);
        if is_allowed {
            self.out
                .push_str(self.text.get(self.copied..pos).unwrap_or_default());
            self.out.push_str(with);
            self.copied = pos + len;
            self.applied |= repair;
        }
        is_allowed
    }
}

/// The length of `\u0000`.
const UNICODE_ESCAPE_LEN: usize = 6;

fn escaped_control(control: u8) -> String {
    match control {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        _ => format!("\\u{control:04x}"),
    }
}
