//! An event that is known when it is seen: taken whole, without a search for its end.

use super::{Framer, Mode};

/// What most lines of an event stream begin with.
const KNOWN: &[u8] = b"data: ";

impl Framer {
    /// What stands behind `data: `, if the next event begins with that and the framer is between two events.
    #[inline]
    pub(crate) fn begun<'i>(&mut self, input: &&'i [u8]) -> Option<&'i [u8]> {
        let data = input.strip_prefix(KNOWN)?;
        let between = self.mode == Mode::Sse
            && !self.ended
            && self.lines.is_between()
            && self.sse.is_between();
        between.then_some(data)
    }

    /// Takes an event of one data line that has [`begun`](Self::begun) and holds so much, without looking for the line's end.
    ///
    /// False where it is not whole in the read, or is anything else: then [`next`](Self::next) has to look.
    #[inline]
    pub(crate) fn take_known(&mut self, input: &mut &[u8], length: usize) -> bool {
        let whole = input
            .get(KNOWN.len() + length..)
            .is_some_and(|rest| rest.starts_with(b"\n\n"))
            && self.lines.allows(KNOWN.len() + length)
            && self.sse.allows(length);
        if whole {
            self.lines.advance(input, KNOWN.len() + length + 2);
        }
        whole
    }
}
