//! Scans strings and their escapes.

use std::borrow::Cow;

use super::{Fallback, Scanner};
use crate::decode::json_bytes::{self, special_bits, unescape};

impl<'a> Scanner<'a, '_> {
    /// Reads a string without escapes, of which the opening quote was consumed.
    #[inline]
    pub(super) fn unescaped_string(&mut self) -> Result<&'a str, Fallback> {
        let start = self.pos;
        if let Some(length) = self.short_string() {
            self.pos += length + 1;
            return self.text.get(start..start + length).ok_or(Fallback);
        }
        self.skip_run()?;
        if self.peek() != Some(b'"') {
            return Err(Fallback);
        }
        let text = self.slice_from(start)?;
        self.pos += 1;
        Ok(text)
    }

    /// Reads a string, of which the opening quote was consumed.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, Fallback> {
        let start = self.pos;
        match self.unescaped_string() {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(Fallback) => self.escaped_string(start),
        }
    }

    #[inline(never)]
    fn escaped_string(&mut self, start: usize) -> Result<Cow<'a, str>, Fallback> {
        self.skip_string()?;
        let span = (start, self.pos - 1);
        self.escapes.count += 1;
        self.escapes.last = span;
        let inside = self.text.get(span.0..span.1).ok_or(Fallback)?;
        if self.keep_escapes {
            return Ok(Cow::Borrowed(inside));
        }
        let mut text = Vec::with_capacity(inside.len());
        unescape(inside.as_bytes(), &mut text).ok_or(Fallback)?;
        let text = String::from_utf8(text).map_err(|_| Fallback)?;
        Ok(Cow::Owned(text))
    }

    /// The length of a string without escapes of up to fifteen bytes, as most names and values are.
    #[inline]
    fn short_string(&self) -> Option<usize> {
        let rest = self.text.as_bytes().get(self.pos..)?;
        // Sixteen bytes at once, without a loop whose length the processor would have to predict.
        match rest.first_chunk().and_then(json_bytes::first_special)? {
            (length, b'"') => Some(length),
            _ => None,
        }
    }

    /// Consumes the rest of a string and its closing quote.
    pub(super) fn skip_string(&mut self) -> Result<(), Fallback> {
        if let Some(length) = self.short_string() {
            self.pos += length + 1;
            return Ok(());
        }
        loop {
            self.skip_run()?;
            let is_end = self.peek() == Some(b'"');
            self.pos += 1;
            if is_end {
                return Ok(());
            }
            self.skip_escape()?;
        }
    }

    /// Consumes an escape, of which the backslash was consumed. Half a surrogate pair is left to the slower paths: its
    /// other half may be in the next delta.
    fn skip_escape(&mut self) -> Result<(), Fallback> {
        let bytes = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        self.pos += match bytes {
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
                    return Err(Fallback);
                }
                5
            }
            _ => return Err(Fallback),
        };
        Ok(())
    }

    /// Consumes two escapes that are one character, of which the first backslash was consumed.
    fn skip_pair(&mut self) -> Result<(), Fallback> {
        const PAIR: usize = "ud83d\\ude00".len();
        let pair = self
            .text
            .get(self.pos - 1..self.pos + PAIR)
            .ok_or(Fallback)?;
        // Decoded only to be checked. Pairs are rare enough that a second implementation of the check would cost more than it
        // saves.
        unescape(pair.as_bytes(), &mut Vec::new()).ok_or(Fallback)?;
        self.pos += PAIR;
        Ok(())
    }

    /// Advances to the next quote or backslash, and declines a control character before it.
    #[inline]
    fn skip_run(&mut self) -> Result<(), Fallback> {
        const SHORT: usize = 32; // most strings of a chunk are shorter; for longer ones `memchr` is faster
        let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        let mut scanned = 0;
        while scanned < SHORT {
            let Some(bytes) = rest.get(scanned..).and_then(|rest| rest.first_chunk()) else {
                break;
            };
            if let Some(offset) = first_special(*bytes) {
                self.pos += scanned + offset;
                return if bytes.get(offset).is_some_and(|byte| *byte >= b' ') {
                    Ok(())
                } else {
                    Err(Fallback)
                };
            }
            scanned += 8;
        }
        self.skip_long_run(scanned)
    }

    #[inline(never)]
    fn skip_long_run(&mut self, scanned: usize) -> Result<(), Fallback> {
        self.pos += scanned;
        let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
        let end = memchr::memchr2(b'"', b'\\', rest).ok_or(Fallback)?;
        let run = rest.get(..end).unwrap_or_default();
        // Without an early exit, the compiler vectorizes this loop.
        if run
            .iter()
            .fold(false, |has_control, byte| has_control | (*byte < b' '))
        {
            return Err(Fallback);
        }
        self.pos += end;
        Ok(())
    }
}

/// The offset of the first of eight bytes that has a meaning inside a string: a quote, a backslash, a control
/// character.
#[inline]
fn first_special(bytes: [u8; 8]) -> Option<usize> {
    let bits = special_bits(u64::from_le_bytes(bytes));
    (bits != 0).then_some((bits.trailing_zeros() / 8) as usize)
}
