//! An event that is known when it is seen: taken whole, without a search for its end.

use super::{Framer, Mode};

/// What most lines of an event stream begin with.
const KNOWN: &[u8] = b"data: ";

impl Framer {
    /// Takes an event of one data line that the caller knows when it sees it, without looking for the line's end.
    ///
    /// `knows` is given what stands behind `data: ` and tells how long the data is. `None` where the event is not whole
    /// in the read, or is anything else: then [`next`](Self::next) has to look.
    #[inline]
    pub(crate) fn next_known<'i, T>(
        &mut self,
        input: &mut &'i [u8],
        knows: impl FnOnce(&'i [u8]) -> Option<(usize, T)>,
    ) -> Option<T> {
        let data = input.strip_prefix(KNOWN)?;
        if self.mode != Mode::Sse
            || self.ended
            || !self.lines.is_between()
            || !self.sse.is_between()
        {
            return None;
        }
        let (length, known) = knows(data)?;
        let whole = data.get(length..)?.starts_with(b"\n\n")
            && self.lines.allows(KNOWN.len() + length)
            && self.sse.allows(length);
        if !whole {
            return None;
        }
        self.lines.advance(input, KNOWN.len() + length + 2);
        Some(known)
    }
}
