//! Splits reads into lines, which end at LF, CR or CRLF.

use memchr::memchr2;

use super::FrameError;
use super::buffer::{append, clear};

/// Splits reads into lines, and keeps the bytes that the end of a read cuts off.
///
/// Every byte of the body passes through here once, so this type also counts the offsets.
pub(super) struct Lines {
    /// The received part of the current line or JSON value, without its end.
    kept: Vec<u8>,
    /// The offset of the current line.
    start: u64,
    consumed: u64,
    /// Whether the last line ended with a CR at the end of its read.
    after_cr: bool,
    limit: usize,
}

/// A line without its end.
#[derive(Clone, Copy)]
pub(super) struct Line<'i> {
    /// Its offset in the body.
    pub(super) offset: u64,
    /// Its bytes, if they are complete in the read. Otherwise they are in [`Lines::kept`] until that is cleared.
    pub(super) read: Option<&'i [u8]>,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            start: 0,
            consumed: 0,
            after_cr: false,
            limit,
        }
    }

    /// Returns the next complete line; `None` when the read is used up.
    // Inlined into its only hot loop: without that, a short event takes half as many instructions again.
    #[inline(always)]
    pub(super) fn next<'i>(
        &mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Line<'i>>, FrameError> {
        self.skip_lf(input);
        if input.is_empty() {
            return Ok(None);
        }
        let bytes = *input;
        let Some((line, rest)) = line_end(bytes).and_then(|end| bytes.split_at_checked(end)) else {
            self.keep(input, bytes.len())?;
            return Ok(None);
        };
        self.mark_start();
        self.check_limit(line.len())?;
        // A CR ends the line at once, although an LF may follow. Waiting for the next byte would delay the last event
        // of a stream.
        self.after_cr = rest == b"\r";
        let end_len = if rest.starts_with(b"\r\n") { 2 } else { 1 };
        self.advance(input, line.len() + end_len);
        let read = if self.kept.is_empty() {
            Some(line)
        } else {
            append(&mut self.kept, line, self.limit);
            None
        };
        Ok(Some(Line {
            offset: self.start,
            read,
        }))
    }

    /// Returns the unfinished line at the end of the body.
    pub(super) fn last(&self) -> Option<Line<'static>> {
        (!self.kept.is_empty()).then_some(Line {
            offset: self.start,
            read: None,
        })
    }

    /// Drops the LF of a CRLF that is split between two reads.
    #[inline]
    pub(super) fn skip_lf(&mut self, input: &mut &[u8]) {
        if self.after_cr && !input.is_empty() {
            self.after_cr = false;
            if input.starts_with(b"\n") {
                self.advance(input, 1);
            }
        }
    }

    /// Keeps the next `count` bytes as part of the current line.
    pub(super) fn keep(&mut self, input: &mut &[u8], count: usize) -> Result<(), FrameError> {
        self.mark_start();
        self.check_limit(count)?;
        self.append(input, count, self.limit);
        Ok(())
    }

    /// Starts the first line with bytes that were consumed as part of a byte order mark.
    pub(super) fn start_with(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.start = 0;
        self.check_limit(bytes.len())?;
        self.kept.extend_from_slice(bytes);
        Ok(())
    }

    /// Moves the next `count` bytes to the kept ones. The caller has checked the limit.
    pub(super) fn append(&mut self, input: &mut &[u8], count: usize, limit: usize) {
        append(
            &mut self.kept,
            input.get(..count).unwrap_or_default(),
            limit,
        );
        self.advance(input, count);
    }

    /// Rewinds to the start of the last line of this read, which is then read again.
    pub(super) fn rewind_to<'i>(&mut self, line: u64, input: &mut &'i [u8], read: &'i [u8]) {
        let remaining = input.len() + usize::try_from(self.consumed - line).unwrap_or(usize::MAX);
        let start = read.len().saturating_sub(remaining);
        *input = read.get(start..).unwrap_or_default();
        self.consumed = line;
        self.after_cr = false;
    }

    /// Takes back bytes that were consumed before it was known that they are lines.
    pub(super) fn rewind(&mut self, count: usize) {
        self.consumed = self.consumed.saturating_sub(count as u64);
    }

    /// Whether the last read ended between two lines.
    #[inline]
    pub(super) fn is_between(&self) -> bool {
        self.kept.is_empty() && !self.after_cr
    }

    /// Whether a line may have this length.
    #[inline]
    pub(super) fn allows(&self, length: usize) -> bool {
        length <= self.limit
    }

    /// Consumes the next `count` bytes.
    #[inline]
    pub(super) fn advance(&mut self, input: &mut &[u8], count: usize) {
        *input = input.get(count..).unwrap_or_default();
        self.consumed += count as u64;
    }

    /// The received part of the current line or value.
    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Clears the kept bytes once they were used.
    pub(super) fn clear_kept(&mut self) {
        clear(&mut self.kept);
    }

    /// Drops the last bytes of the kept ones, and the line end before them.
    pub(super) fn truncate_kept(&mut self, count: usize) {
        let length = self.kept.len().saturating_sub(count);
        self.kept.truncate(length);
        let text = self.kept.trim_ascii_end().len();
        self.kept.truncate(text);
    }

    /// Keeps bytes that were consumed with the line before.
    pub(super) fn restore(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
    }

    /// Exchanges the kept bytes with another buffer.
    pub(super) fn swap_kept(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.kept, other);
    }

    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    fn mark_start(&mut self) {
        if self.kept.is_empty() {
            self.start = self.consumed;
        }
    }

    /// Only the bytes of the line count, never those of the read, so the limit applies at the same byte whatever the
    /// reads.
    fn check_limit(&self, more: usize) -> Result<(), FrameError> {
        if self.kept.len() + more > self.limit {
            return Err(FrameError::LineTooLong {
                offset: self.start,
                limit: self.limit,
            });
        }
        Ok(())
    }
}

/// Finds the end of a line. Every other line of a stream is blank, and testing for that is cheaper than a search.
#[inline]
fn line_end(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\r' | b'\n', ..] => Some(0),
        _ => memchr2(b'\r', b'\n', bytes),
    }
}
