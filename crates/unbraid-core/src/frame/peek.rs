//! Takes an event whose length is known from its data, without searching for the end of its line.

use super::{Framer, Mode};

/// The start of most lines in an event stream.
const DATA_FIELD: &[u8] = b"data: ";

impl Framer {
    /// Returns the bytes after `data: ` if the next event starts with that and the framer is between two events.
    #[inline]
    pub(crate) fn peek_data<'i>(&mut self, input: &&'i [u8]) -> Option<&'i [u8]> {
        let data = input.strip_prefix(DATA_FIELD)?;
        let is_between = self.mode == Mode::Sse
            && !self.has_ended
            && self.lines.is_between()
            && self.sse.is_between();
        is_between.then_some(data)
    }

    /// Consumes an event whose only line has data of this length, of which [`peek_data`](Self::peek_data) returned the
    /// start.
    ///
    /// False if the event is not complete in the read, or is anything else. Then [`next`](Self::next) has to read it.
    #[inline]
    pub(crate) fn take_data_event(&mut self, input: &mut &[u8], length: usize) -> bool {
        let is_complete = input
            .get(DATA_FIELD.len() + length..)
            .is_some_and(|rest| rest.starts_with(b"\n\n"))
            && self.lines.allows(DATA_FIELD.len() + length)
            && self.sse.allows(length);
        if is_complete {
            self.lines.advance(input, DATA_FIELD.len() + length + 2);
        }
        is_complete
    }
}
