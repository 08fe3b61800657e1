//! Takes an event whose length is known from its data, without searching for the ends of its lines.

use super::{Framer, Mode};

/// The start of most lines in an event stream.
const DATA_FIELD: &[u8] = b"data: ";

/// The start of an event.
pub(crate) struct Peeked<'i> {
    /// The event's name, if it has the expected one.
    pub(crate) name: Option<&'i [u8]>,
    /// The bytes after `data: `.
    pub(crate) data: &'i [u8],
    /// How many bytes come before these.
    start: usize,
}

impl Framer {
    /// Returns the start of the next event if it has this name and then data, and the framer is between two events.
    #[inline]
    pub(crate) fn peek_data<'i>(
        &mut self,
        input: &&'i [u8],
        name: Option<&[u8]>,
    ) -> Option<Peeked<'i>> {
        let (name, line) = match name {
            None => (None, *input),
            Some(name) => self.peek_name(input, name)?,
        };
        let data = line.strip_prefix(DATA_FIELD)?;
        let is_between = self.mode == Mode::Sse
            && !self.has_ended
            && self.lines.is_between()
            && self.sse.is_between();
        let start = input.len() - data.len();
        is_between.then_some(Peeked { name, data, start })
    }

    /// The name of the next event, if it is the expected one, and the line after it.
    fn peek_name<'i>(&self, input: &&'i [u8], name: &[u8]) -> Option<(Option<&'i [u8]>, &'i [u8])> {
        let value = input.strip_prefix(b"event: ").filter(|_| !self.strict)?;
        let (own, rest) = value.split_at_checked(name.len())?;
        let after = rest
            .strip_prefix(b"\r")
            .unwrap_or(rest)
            .strip_prefix(b"\n")?;
        (own == name).then_some((Some(own), after))
    }

    /// Consumes an event whose data has this length, of which [`peek_data`](Self::peek_data) returned the start.
    ///
    /// False if the event is not complete in the read, or is anything else. Then [`next`](Self::next) has to read it.
    #[inline]
    pub(crate) fn take_data_event(
        &mut self,
        input: &mut &[u8],
        peeked: &Peeked<'_>,
        length: usize,
    ) -> bool {
        let end = peeked.start + length;
        let blank = match input.get(end..) {
            Some([b'\n', b'\n', ..]) => 2,
            Some([b'\r', b'\n', b'\r', b'\n', ..]) => 4,
            _ => return false,
        };
        // The lines before the data are counted as if they were one with it.
        let is_allowed = self.lines.allows(end) && self.sse.allows(length);
        if is_allowed {
            self.lines.advance(input, end + blank);
        }
        is_allowed
    }
}
