//! The inside of a string: plain runs, escapes, and the halves of characters.

use memchr::memchr2;

use crate::json::token::{Token, Visit};

use super::{Expect, Fault, Scanner, State};

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Key,
    Value,
}

/// How far an escape has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    Backslash,
    /// After `\u` and so many of its four digits.
    Unicode {
        digits: u8,
        unit: u16,
    },
}

impl Scanner {
    /// Reads the plain characters of a string, and the quote or backslash that ends them.
    pub(super) fn text(&mut self, role: Role, rest: &str, visit: &mut impl Visit) -> usize {
        let (run, tail) = plain(rest);
        if !run.is_empty() {
            self.settle(visit);
            self.controls |= run.bytes().any(|byte| byte < b' ');
            visit.token(Token::Text(run));
        }
        match tail.bytes().next() {
            None => run.len(),
            Some(b'"') => {
                self.settle(visit);
                match role {
                    Role::Key => {
                        visit.token(Token::KeyEnd);
                        self.state = State::Expect(Expect::Colon);
                    }
                    Role::Value => {
                        visit.token(Token::StringEnd);
                        self.end();
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

    /// Reads a byte of an escape, behind its backslash.
    pub(super) fn escape(
        &mut self,
        role: Role,
        escape: Escape,
        byte: u8,
        visit: &mut impl Visit,
    ) -> Result<(), Fault> {
        let plain = match (escape, byte) {
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
                // J3: the model meant both characters.
                self.controls = true;
                self.char('\\', visit);
                byte
            }
            (Escape::Backslash, _) => return Err(Fault::Syntax),
            (Escape::Unicode { digits, unit }, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(Fault::Syntax)?;
                let unit = unit << 4 | u16::try_from(digit).unwrap_or_default();
                let digits = digits + 1;
                self.state = if digits < 4 {
                    State::Escape(role, Escape::Unicode { digits, unit })
                } else {
                    self.unit(unit, visit);
                    State::Text(role)
                };
                return Ok(());
            }
        };
        self.char(char::from(plain), visit);
        self.state = State::Text(role);
        Ok(())
    }

    /// Takes a UTF-16 unit; two halves join, wherever fragments begin (J17).
    fn unit(&mut self, unit: u16, visit: &mut impl Visit) {
        match (unit, self.high) {
            (0xD800..=0xDBFF, _) => {
                self.settle(visit);
                self.high = Some(unit);
                self.high_at = self.escape_start();
            }
            (0xDC00..=0xDFFF, Some(high)) => {
                self.high = None;
                for joined in char::decode_utf16([high, unit]).flatten() {
                    self.char(joined, visit);
                }
            }
            _ => {
                let char = char::from_u32(unit.into());
                if char.is_none() {
                    let start = self.escape_start();
                    self.lone.get_or_insert(start);
                }
                self.char(char.unwrap_or(char::REPLACEMENT_CHARACTER), visit);
            }
        }
    }

    /// Where the `\u` escape begins whose last digit is being read.
    fn escape_start(&self) -> usize {
        self.position.saturating_sub(5)
    }

    fn char(&mut self, char: char, visit: &mut impl Visit) {
        self.settle(visit);
        visit.token(Token::Text(char.encode_utf8(&mut [0; 4])));
    }

    /// Gives up the high surrogate that waits, if any: what comes next is not its partner.
    fn settle(&mut self, visit: &mut impl Visit) {
        if self.high.take().is_some() {
            self.lone.get_or_insert(self.high_at);
            visit.token(Token::Text("\u{FFFD}"));
        }
    }
}

/// Splits a text before its first quote or backslash.
fn plain(text: &str) -> (&str, &str) {
    // Streamed fragments are a few bytes long, for which a search by vectors does not pay.
    let end = if text.len() < VECTOR {
        text.bytes().position(|byte| matches!(byte, b'"' | b'\\'))
    } else {
        memchr2(b'"', b'\\', text.as_bytes())
    };
    end.and_then(|end| text.split_at_checked(end))
        .unwrap_or((text, ""))
}

/// Bytes from which on `memchr` is the faster search.
const VECTOR: usize = 16;
