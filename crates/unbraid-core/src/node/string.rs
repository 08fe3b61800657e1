//! Decodes the inside of a string: escapes, and the halves of surrogate pairs.

use std::borrow::Cow;

use super::JsonString;

/// Decodes the inside of a string. A high surrogate stays in `decoded.high` until the next unit shows whether it has a
/// low half.
#[derive(Debug)]
pub(crate) struct StringDecoder<'a> {
    decoded: JsonString<'a>,
    clean: bool,
    is_json: bool,
}

impl<'a> StringDecoder<'a> {
    pub(crate) fn new() -> Self {
        Self {
            decoded: JsonString {
                text: Cow::Borrowed(""),
                low: None,
                high: None,
            },
            clean: true,
            is_json: true,
        }
    }

    /// Whether the grammar of JSON allows the string. It allows lone surrogate escapes, which `serde_json` refuses.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Adds characters that are not escaped.
    pub(crate) fn push_run(&mut self, run: &'a str) {
        if run.is_empty() {
            return;
        }
        let has_controls = run.bytes().any(|byte| byte < b' ');
        self.clean &= !has_controls;
        self.is_json &= !has_controls;
        self.flush_high_half();
        if self.decoded.text.is_empty() {
            self.decoded.text = Cow::Borrowed(run);
        } else {
            self.decoded.text.to_mut().push_str(run);
        }
    }

    /// Adds the escape whose backslash is before `rest`, and returns its length without the backslash.
    pub(crate) fn push_escape(&mut self, rest: &str) -> usize {
        if let Some(unit) = hex(rest) {
            self.push_unit(unit);
            return "u0000".len();
        }
        let simple = match rest.as_bytes().first() {
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(&itself @ (b'"' | b'\\' | b'/')) => char::from(itself),
            _ => {
                // The backslash is kept. The character after it is not a quote, so the next run contains it.
                self.clean = false;
                self.is_json = false;
                self.push_char('\\');
                return 0;
            }
        };
        self.push_char(simple);
        1
    }

    /// Adds a UTF-16 unit.
    fn push_unit(&mut self, unit: u16) {
        match (unit, self.decoded.high) {
            (0xD800..=0xDBFF, _) => {
                self.flush_high_half();
                self.decoded.high = Some(unit);
            }
            (0xDC00..=0xDFFF, Some(high)) => {
                self.decoded.high = None;
                char::decode_utf16([high, unit])
                    .flatten()
                    .for_each(|character| self.push_char(character));
            }
            (0xDC00..=0xDFFF, None) => {
                self.clean = false;
                if self.decoded.is_empty() {
                    self.decoded.low = Some(unit);
                } else {
                    self.push_char(char::REPLACEMENT_CHARACTER);
                }
            }
            _ => self.push_char(char::from_u32(unit.into()).unwrap_or(char::REPLACEMENT_CHARACTER)),
        }
    }

    fn push_char(&mut self, char: char) {
        self.flush_high_half();
        self.decoded.text.to_mut().push(char);
    }

    /// Replaces a pending high surrogate, because what follows is not its other half.
    fn flush_high_half(&mut self) {
        if self.decoded.high.take().is_some() {
            self.clean = false;
            self.decoded.text.to_mut().push(char::REPLACEMENT_CHARACTER);
        }
    }

    pub(crate) fn finish(self) -> (JsonString<'a>, bool) {
        let clean = self.clean && self.decoded.high.is_none();
        (self.decoded, clean)
    }
}

/// The unit of an escape such as `u00e9`.
fn hex(escape: &str) -> Option<u16> {
    let digits = escape.strip_prefix('u')?.get(..4)?;
    // `from_str_radix` also accepts a sign.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u16::from_str_radix(digits, 16).ok()
}
