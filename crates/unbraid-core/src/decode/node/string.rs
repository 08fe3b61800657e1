//! The inside of a string: escapes, and the halves of characters.

use std::borrow::Cow;

use super::Wide;

/// The inside of a string while it is decoded; a high surrogate waits in `wide.high` for what follows it.
#[derive(Debug)]
pub(crate) struct Unquoted<'a> {
    wide: Wide<'a>,
    clean: bool,
    json: bool,
}

impl<'a> Unquoted<'a> {
    pub(crate) fn new() -> Self {
        Self {
            wide: Wide {
                text: Cow::Borrowed(""),
                low: None,
                high: None,
            },
            clean: true,
            json: true,
        }
    }

    /// Whether the grammar of JSON allows all of it. It allows lone surrogate escapes, which serde_json does not.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Takes characters that stand for themselves.
    pub(crate) fn run(&mut self, run: &'a str) {
        if run.is_empty() {
            return;
        }
        let has_controls = run.bytes().any(|byte| byte < b' ');
        self.clean &= !has_controls;
        self.json &= !has_controls;
        self.settle();
        if self.wide.text.is_empty() {
            self.wide.text = Cow::Borrowed(run);
        } else {
            self.wide.text.to_mut().push_str(run);
        }
    }

    /// Takes the escape whose backslash stands before `rest`, and tells how long it is without the backslash.
    pub(crate) fn escape(&mut self, rest: &str) -> usize {
        if let Some(unit) = hex(rest) {
            self.unit(unit);
            return "u0000".len();
        }
        let simple = match rest.as_bytes().first() {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(&same @ (b'"' | b'\\' | b'/')) => char::from(same),
            _ => {
                // The backslash stands for itself; what follows it is no quote, so the next run takes it.
                self.clean = false;
                self.json = false;
                self.char('\\');
                return 0;
            }
        };
        self.char(simple);
        1
    }

    /// Takes a UTF-16 unit.
    fn unit(&mut self, unit: u16) {
        match (unit, self.wide.high) {
            (0xD800..=0xDBFF, _) => {
                self.settle();
                self.wide.high = Some(unit);
            }
            (0xDC00..=0xDFFF, Some(high)) => {
                self.wide.high = None;
                char::decode_utf16([high, unit])
                    .flatten()
                    .for_each(|joined| self.char(joined));
            }
            (0xDC00..=0xDFFF, None) => {
                self.clean = false;
                if self.wide.is_empty() {
                    self.wide.low = Some(unit);
                } else {
                    self.char(char::REPLACEMENT_CHARACTER);
                }
            }
            _ => self.char(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn char(&mut self, char: char) {
        self.settle();
        self.wide.text.to_mut().push(char);
    }

    /// Gives up the high surrogate that waits, if any: what comes next is not its partner.
    fn settle(&mut self) {
        if self.wide.high.take().is_some() {
            self.clean = false;
            self.wide.text.to_mut().push(char::REPLACEMENT_CHARACTER);
        }
    }

    pub(crate) fn end(self) -> (Wide<'a>, bool) {
        let clean = self.clean && self.wide.high.is_none();
        (self.wide, clean)
    }
}

/// The unit of an escape such as `u00e9`.
fn hex(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    // `from_str_radix` alone would take a sign.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}
