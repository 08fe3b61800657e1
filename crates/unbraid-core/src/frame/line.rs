//! Lines, cut at LF, CR or CRLF, however the reads are cut.

use memchr::memchr2;

use super::FrameError;
use super::buffer::{append, renew};

/// Cuts lines out of reads, and keeps what the end of a read cut off.
///
/// Every byte of the body passes through here once, so this also knows the offset of each.
pub(super) struct Lines {
    /// The line (or JSON value) under way, as far as earlier reads brought it; free of line ends.
    kept: Vec<u8>,
    /// Where the line under way starts.
    start: u64,
    taken: u64,
    /// The last line ended with CR at the end of its read.
    after_cr: bool,
    limit: usize,
}

/// One line without its end.
#[derive(Clone, Copy)]
pub(super) struct Line<'i> {
    /// Where it starts in the body.
    pub(super) at: u64,
    /// Its bytes if they lie whole in the read; otherwise they are [`Lines::kept`] until forgotten.
    pub(super) read: Option<&'i [u8]>,
}

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            kept: Vec::new(),
            start: 0,
            taken: 0,
            after_cr: false,
            limit,
        }
    }

    /// Takes the next whole line; None when the read is used up.
    // A third of the instructions of a short event go if this stands in its only hot loop.
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
        self.begin();
        self.check(line.len())?;
        // A CR ends the line at once, even if nothing tells yet whether a LF follows: waiting for it would hold
        // the last event of a stream back.
        self.after_cr = rest == b"\r";
        let end = if rest.starts_with(b"\r\n") { 2 } else { 1 };
        self.advance(input, line.len() + end);
        let read = if self.kept.is_empty() {
            Some(line)
        } else {
            append(&mut self.kept, line, self.limit);
            None
        };
        Ok(Some(Line {
            at: self.start,
            read,
        }))
    }

    /// The line that has no end, at the end of the body.
    pub(super) fn last(&self) -> Option<Line<'static>> {
        (!self.kept.is_empty()).then_some(Line {
            at: self.start,
            read: None,
        })
    }

    /// Drops the LF of a CRLF that two reads share.
    #[inline]
    pub(super) fn skip_lf(&mut self, input: &mut &[u8]) {
        if self.after_cr && !input.is_empty() {
            self.after_cr = false;
            if input.starts_with(b"\n") {
                self.advance(input, 1);
            }
        }
    }

    /// Keeps the next `count` bytes as part of the line under way.
    pub(super) fn keep(&mut self, input: &mut &[u8], count: usize) -> Result<(), FrameError> {
        self.begin();
        self.check(count)?;
        self.append(input, count, self.limit);
        Ok(())
    }

    /// Starts the first line with bytes that were taken for something else.
    pub(super) fn open_with(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        self.start = 0;
        self.check(bytes.len())?;
        self.kept.extend_from_slice(bytes);
        Ok(())
    }

    /// Moves the next `count` bytes into the kept ones; the caller has seen to the limit.
    pub(super) fn append(&mut self, input: &mut &[u8], count: usize, limit: usize) {
        append(
            &mut self.kept,
            input.get(..count).unwrap_or_default(),
            limit,
        );
        self.advance(input, count);
    }

    /// Goes back to the start of the last line, which was taken out of this read and is to be taken again.
    pub(super) fn back_to<'i>(&mut self, line: u64, input: &mut &'i [u8], read: &'i [u8]) {
        let untaken = input.len() + usize::try_from(self.taken - line).unwrap_or(usize::MAX);
        let start = read.len().saturating_sub(untaken);
        *input = read.get(start..).unwrap_or_default();
        self.taken = line;
        self.after_cr = false;
    }

    /// Whether no line is under way, nor half a line end.
    #[inline]
    pub(super) fn is_between(&self) -> bool {
        self.kept.is_empty() && !self.after_cr
    }

    /// Whether a line may be so long.
    #[inline]
    pub(super) fn allows(&self, length: usize) -> bool {
        length <= self.limit
    }

    /// Counts the next `count` bytes as taken.
    #[inline]
    pub(super) fn advance(&mut self, input: &mut &[u8], count: usize) {
        *input = input.get(count..).unwrap_or_default();
        self.taken += count as u64;
    }

    /// What earlier reads brought of the line or value under way.
    pub(super) fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Empties the kept bytes, once they are used.
    pub(super) fn forget(&mut self) {
        renew(&mut self.kept);
    }

    /// Trades the kept bytes for another buffer's.
    pub(super) fn swap_kept(&mut self, other: &mut Vec<u8>) {
        std::mem::swap(&mut self.kept, other);
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    fn begin(&mut self) {
        if self.kept.is_empty() {
            self.start = self.taken;
        }
    }

    /// The limit looks at the bytes of the line seen so far, never at those of the read, so it strikes at the same
    /// byte whatever the cut.
    fn check(&self, more: usize) -> Result<(), FrameError> {
        if self.kept.len() + more > self.limit {
            return Err(FrameError::LineTooLong {
                offset: self.start,
                limit: self.limit,
            });
        }
        Ok(())
    }
}

/// Every other line of a stream is blank, and is cheaper to see than to search for.
#[inline]
fn line_end(bytes: &[u8]) -> Option<usize> {
    match bytes {
        [b'\r' | b'\n', ..] => Some(0),
        _ => memchr2(b'\r', b'\n', bytes),
    }
}
