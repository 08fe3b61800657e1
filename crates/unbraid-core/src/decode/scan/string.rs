//! Strings: where they end, and what their escapes mean.

use std::borrow::Cow;

use super::{Scanner, Surprise};
use crate::decode::inside::{marks, unescape};

impl<'a> Scanner<'a, '_> {
    /// Takes a string without escapes whose opening quote was taken.
    #[inline]
    pub(super) fn plain(&mut self) -> Result<&'a str, Surprise> {
        let start = self.at;
        self.run()?;
        if self.peek() != Some(b'"') {
            return Err(Surprise);
        }
        let text = self.since(start)?;
        self.at += 1;
        Ok(text)
    }

    /// Takes a string whose opening quote was taken.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Surprise> {
        let start = self.at;
        match self.plain() {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(Surprise) => self.escaped(start),
        }
    }

    #[inline(never)]
    fn escaped(&mut self, start: usize) -> Result<Cow<'a, str>, Surprise> {
        self.skip_string()?;
        let inside = self.text.get(start..self.at - 1).ok_or(Surprise)?;
        let mut text = String::with_capacity(inside.len());
        unescape(inside, &mut text).ok_or(Surprise)?;
        Ok(Cow::Owned(text))
    }

    /// Takes the rest of a string and its closing quote.
    pub(super) fn skip_string(&mut self) -> Result<(), Surprise> {
        loop {
            self.run()?;
            let quote = self.peek() == Some(b'"');
            self.at += 1;
            if quote {
                return Ok(());
            }
            self.skip_escape()?;
        }
    }

    /// Takes an escape whose backslash was taken; half a character is the parser's business.
    fn skip_escape(&mut self) -> Result<(), Surprise> {
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += match bytes {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 1,
            [
                b'u',
                b'd' | b'D',
                b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F',
                ..,
            ] => {
                return self.skip_pair();
            }
            [b'u', digits @ ..] => {
                let digits = digits.get(..4).unwrap_or_default();
                if digits.len() < 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
                    return Err(Surprise);
                }
                5
            }
            _ => return Err(Surprise),
        };
        Ok(())
    }

    /// Takes two escapes that are one character, from behind the first backslash on.
    fn skip_pair(&mut self) -> Result<(), Surprise> {
        const PAIR: usize = "ud83d\\ude00".len();
        let pair = self.text.get(self.at - 1..self.at + PAIR).ok_or(Surprise)?;
        unescape(pair, &mut String::new()).ok_or(Surprise)?;
        self.at += PAIR;
        Ok(())
    }

    /// Goes on to the next quote or backslash, with no control character before it.
    #[inline]
    fn run(&mut self) -> Result<(), Surprise> {
        const SHORT: usize = 32; // few strings of a chunk are longer
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let mut done = 0;
        while done < SHORT {
            let Some(bytes) = rest.get(done..).and_then(|rest| rest.first_chunk()) else {
                break;
            };
            if let Some(at) = special(*bytes) {
                self.at += done + at;
                return if bytes.get(at).is_some_and(|byte| *byte >= b' ') {
                    Ok(())
                } else {
                    Err(Surprise)
                };
            }
            done += 8;
        }
        self.long_run(done)
    }

    #[inline(never)]
    fn long_run(&mut self, done: usize) -> Result<(), Surprise> {
        self.at += done;
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let end = memchr::memchr2(b'"', b'\\', rest).ok_or(Surprise)?;
        let run = rest.get(..end).unwrap_or_default();
        // Without a way out of the loop it takes many bytes at a time.
        if run.iter().fold(false, |any, byte| any | (*byte < b' ')) {
            return Err(Surprise);
        }
        self.at += end;
        Ok(())
    }
}

/// The first of eight bytes that means something inside of a string: a quote, a backslash, a control character.
#[inline]
fn special(bytes: [u8; 8]) -> Option<usize> {
    let found = marks(u64::from_le_bytes(bytes));
    (found != 0).then_some((found.trailing_zeros() / 8) as usize)
}
