//! The repairs that look at a character and its neighbours.

use std::borrow::Cow;

use super::{Repair, Repaired};

/// Goes through a text once and copies it only from the first repair on.
pub(super) struct Rewrite<'a> {
    text: &'a str,
    allowed: Repair,
    applied: Repair,
    out: String,
    /// What of the text `out` stands for.
    copied: usize,
}

/// What stands behind a backslash.
enum Behind {
    /// The text's end, or an escape that its end cuts.
    Cut,
    /// An escape of JSON that is so long, its backslash not counted.
    Escape(usize),
    Unit(u16),
    Control(u8),
    /// Nothing that a backslash may stand before.
    Wrong,
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
        let (mut at, mut in_string) = (0, false);
        while let Some(byte) = self.byte(at) {
            let used = match (in_string, byte) {
                (_, b'"') => {
                    in_string = !in_string;
                    1
                }
                (false, b'\\') => self.outer_escape(at),
                (true, b'\\') => self.escape(at),
                (true, 0..b' ') => {
                    self.replace(at, 1, &escape(byte), Repair::CONTROLS);
                    1
                }
                _ => 1,
            };
            at += used;
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

    /// A backslash outside of strings, and what of the text it accounts for.
    fn outer_escape(&mut self, at: usize) -> usize {
        let space = match self.byte(at + 1) {
            Some(b'n') => "\n",
            Some(b'r') => "\r",
            Some(b't') => "\t",
            _ => return 1,
        };
        self.replace(at, 2, space, Repair::LITERAL_NEWLINES);
        2
    }

    /// A backslash in a string, and what of the text it accounts for.
    fn escape(&mut self, at: usize) -> usize {
        match self.behind(at + 1) {
            Behind::Cut => 1,
            Behind::Escape(len) => 1 + len,
            Behind::Unit(unit) => self.unit(at, unit),
            Behind::Control(control) => {
                // J3: the model meant both characters. Where one may not be repaired, the other still may.
                let both = format!("\\\\{}", escape(control));
                if self.replace(at, 2, &both, Repair::CONTROLS) {
                    return 2;
                }
                self.replace(at, 1, "\\\\", Repair::ESCAPES);
                1
            }
            Behind::Wrong => {
                self.replace(at, 1, "\\\\", Repair::ESCAPES);
                1
            }
        }
    }

    /// A `\u` escape that is well formed.
    fn unit(&mut self, at: usize, unit: u16) -> usize {
        let next = at + LEN;
        let partner = || {
            let low = (self.byte(next) == Some(b'\\')).then(|| self.behind(next + 1));
            matches!(low, Some(Behind::Unit(0xDC00..=0xDFFF)))
        };
        match unit {
            // What the end cuts off may have been the partner.
            0xD800..=0xDBFF if next >= self.text.len() => LEN,
            0xD800..=0xDBFF if partner() => 2 * LEN,
            0xD800..=0xDFFF => {
                self.replace(at, LEN, "\\ufffd", Repair::LONE_SURROGATES);
                LEN
            }
            _ => LEN,
        }
    }

    fn behind(&self, at: usize) -> Behind {
        match self.byte(at) {
            None => Behind::Cut,
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Behind::Escape(1),
            Some(b'u') => {
                let rest = self.text.as_bytes().get(at + 1..).unwrap_or_default();
                let digits = rest.iter().map_while(|&byte| char::from(byte).to_digit(16));
                let (unit, count) = digits.take(4).fold((0, 0), |(unit, count), digit| {
                    (unit << 4 | digit, count + 1)
                });
                match u16::try_from(unit) {
                    Ok(unit) if count == 4 => Behind::Unit(unit),
                    _ if count == rest.len() => Behind::Cut,
                    _ => Behind::Wrong,
                }
            }
            Some(control @ 0..b' ') => Behind::Control(control),
            Some(_) => Behind::Wrong,
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Puts this in the place of so much of the text, if that repair is allowed.
    fn replace(&mut self, at: usize, len: usize, with: &str, repair: Repair) -> bool {
        let allowed = self.allowed.contains(repair);
        if allowed {
            self.out
                .push_str(self.text.get(self.copied..at).unwrap_or_default());
            self.out.push_str(with);
            self.copied = at + len;
            self.applied |= repair;
        }
        allowed
    }
}

/// Bytes of `\u0000`.
const LEN: usize = 6;

fn escape(control: u8) -> String {
    match control {
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        _ => format!("\\u{control:04x}"),
    }
}
