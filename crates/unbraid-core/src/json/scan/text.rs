//! Scans the inside of a string: runs without escapes, escapes, and the halves of surrogate pairs.

use memchr::memchr2;

use crate::json::token::{Token, TokenListener};

use super::{Expect, ScanError, Scanner, State};

/// Whether a string is a key or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringRole {
    Key,
    Value,
}

/// The state of an escape that is being scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    Backslash,
    /// After `\u` and this many of its four digits.
    Unicode {
        digits: u8,
        unit: u16,
    },
}

impl Scanner {
    /// Scans characters up to the next quote or backslash, and that byte.
    pub(super) fn text(
        &mut self,
        role: StringRole,
        rest: &str,
        listener: &mut impl TokenListener,
    ) -> usize {
        let (run, tail) = split_run(rest);
        if !run.is_empty() {
            self.flush_high(listener);
            self.has_controls |= run.bytes().any(|byte| byte < b' ');
            listener.token(Token::Text(run));
        }
        match tail.bytes().next() {
            None => run.len(),
            Some(b'"') => {
                self.flush_high(listener);
                match role {
                    StringRole::Key => {
                        listener.token(Token::KeyEnd);
                        self.state = State::Expect(Expect::Colon);
                    }
                    StringRole::Value => {
                        listener.token(Token::StringEnd);
                        self.end_value();
                    }
                }
                run.len() + 1
            }
            Some(_) => {
                self.state = State::Escape(role, Escape::Backslash);
                run.len() + 1
            }
        }
    }

    /// Scans a byte of an escape, after its backslash.
    pub(super) fn escape(
        &mut self,
        role: StringRole,
        escape: Escape,
        byte: u8,
        listener: &mut impl TokenListener,
    ) -> Result<(), ScanError> {
        let character = match (escape, byte) {
            (Escape::Backslash, b'"' | b'\\' | b'/') => byte,
            (Escape::Backslash, b'b') => 0x08,
            (Escape::Backslash, b'f') => 0x0c,
            (Escape::Backslash, b'n') => b'\n',
            (Escape::Backslash, b'r') => b'\r',
            (Escape::Backslash, b't') => b'\t',
            (Escape::Backslash, b'u') => {
                let unicode = Escape::Unicode { digits: 0, unit: 0 };
                self.state = State::Escape(role, unicode);
                return Ok(());
            }
            (Escape::Backslash, 0..b' ') => {
                // J3: the model wrote the backslash and the control character, so both are kept.
                self.has_controls = true;
                self.char('\\', listener);
                byte
            }
            (Escape::Backslash, _) => return Err(ScanError::Syntax),
            (Escape::Unicode { digits, unit }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(ScanError::Syntax)?;
                let unit = unit << 4 | u16::try_from(digit).unwrap_or_default();
                let digits = digits + 1;
                self.state = if digits < 4 {
                    State::Escape(role, Escape::Unicode { digits, unit })
                } else {
                    self.unit(unit, listener);
                    State::Text(role)
                };
                return Ok(());
            }
        };
        self.char(char::from(character), listener);
        self.state = State::Text(role);
        Ok(())
    }

    /// Adds a UTF-16 unit. Two halves are joined, even if they are in different fragments (J17).
    fn unit(&mut self, unit: u16, listener: &mut impl TokenListener) {
        match (unit, self.pending_high) {
            (0xD800..=0xDBFF, _) => {
                self.flush_high(listener);
                self.pending_high = Some(unit);
                self.high_offset = self.escape_start();
            }
            (0xDC00..=0xDFFF, Some(high)) => {
                self.pending_high = None;
                for character in char::decode_utf16([high, unit]).flatten() {
                    self.char(character, listener);
                }
            }
            _ => {
                let char = char::from_u32(unit.into());
                if char.is_none() {
                    let start = self.escape_start();
                    self.lone_surrogate.get_or_insert(start);
                }
                self.char(char.unwrap_or(char::REPLACEMENT_CHARACTER), listener);
            }
        }
    }

    /// The offset of the `\u` escape whose last digit is being scanned.
    fn escape_start(&self) -> usize {
        self.position.saturating_sub(5)
    }

    fn char(&mut self, char: char, listener: &mut impl TokenListener) {
        self.flush_high(listener);
        listener.token(Token::Text(char.encode_utf8(&mut [0; 4])));
    }

    /// Replaces a pending high surrogate, because what follows is not its other half.
    fn flush_high(&mut self, listener: &mut impl TokenListener) {
        if self.pending_high.take().is_some() {
            self.lone_surrogate.get_or_insert(self.high_offset);
            listener.token(Token::Text("\u{FFFD}"));
        }
    }
}

/// Splits a text before its first quote or backslash.
fn split_run(text: &str) -> (&str, &str) {
    // Streamed fragments have a few bytes, for which a vectorized search is slower than a loop.
    let end = if text.len() < MEMCHR_MIN_BYTES {
        text.bytes().position(|byte| matches!(byte, b'"' | b'\\'))
    } else {
        memchr2(b'"', b'\\', text.as_bytes())
    };
    end.and_then(|end| text.split_at_checked(end))
        .unwrap_or((text, ""))
}

/// The length from which `memchr` is the faster search.
const MEMCHR_MIN_BYTES: usize = 16;
