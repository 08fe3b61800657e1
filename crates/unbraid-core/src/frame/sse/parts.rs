//! Events with several data lines: one JSON value together (S11), or several values without blank lines between them
//! (S10).
//!
//! Which of the two they are is known at the first byte with which the lines cannot be one JSON value. The lines
//! before that byte's line then become a part, and each value after it becomes one when its last line ends. The
//! decision depends only on the bytes, never on how they were split into reads.

use super::{DONE, FrameError, InRead, LineEffect, Sse};
use crate::frame::{
    buffer::{append, clear},
    value::{Value, ValueState},
};

impl Sse {
    /// Adds a data line that is not the first one of its event.
    pub(super) fn add_further_data<'i>(
        &mut self,
        value: &'i [u8],
        in_read: &mut InRead<'i>,
    ) -> Result<LineEffect, FrameError> {
        // An event named `error` is one frame (S15, S32), and strict mode does not split events.
        let reads_whole_event = self.strict || in_read.name.unwrap_or(&self.name) == b"error";
        if !self.has_data && in_read.data.is_none() {
            return self.first_of_part(value, reads_whole_event, in_read);
        }
        let is_blank = value.trim_ascii().is_empty();
        if reads_whole_event && self.has_next_name && !is_blank {
            return Ok(self.end_part_before());
        }
        if !reads_whole_event && !is_blank {
            self.start_following(in_read);
            if self.value.state() != ValueState::Open || value.trim_ascii() == DONE {
                return Ok(self.end_part_before());
            }
            self.value.feed(b"\n");
            self.value.feed(value);
            if self.value.state() == (ValueState::Invalid { after_value: false }) {
                return Ok(self.end_part_before());
            }
        }
        if !is_blank {
            self.take_next_name(in_read);
        }
        self.join_data(value, in_read)?;
        let ends_part = match self.value.state() {
            // Only blank lines followed the first line so far, so `value` still belongs to an earlier event.
            _ if !self.is_followed => false,
            ValueState::Open => false,
            ValueState::Complete => self.in_parts,
            ValueState::Invalid { .. } => true,
        };
        if ends_part && !reads_whole_event {
            self.in_parts = true;
            return Ok(LineEffect::EndPart);
        }
        Ok(LineEffect::None)
    }

    /// Adds the first line of a part. If it is a complete value, or cannot become one, it is the whole part.
    fn first_of_part<'i>(
        &mut self,
        value: &'i [u8],
        reads_whole_event: bool,
        in_read: &mut InRead<'i>,
    ) -> Result<LineEffect, FrameError> {
        if !reads_whole_event && value.trim_ascii().is_empty() {
            return Ok(LineEffect::None); // S12
        }
        self.check_limit(value.len())?;
        in_read.data = Some(value);
        if reads_whole_event {
            return Ok(LineEffect::None);
        }
        self.start_following(in_read);
        Ok(match self.value.state() {
            ValueState::Open => LineEffect::None,
            ValueState::Complete | ValueState::Invalid { .. } => LineEffect::EndPart,
        })
    }

    /// Reads the name of an event. Whether a second one is that of its data, as the standard has it, or of the next event
    /// without a blank line between them (S10), shows at the next data line or blank line.
    pub(super) fn read_name<'i>(&mut self, name: &'i [u8], offset: u64, in_read: &mut InRead<'i>) {
        let has_data = self.has_data || in_read.data.is_some();
        if has_data && !in_read.name.unwrap_or(&self.name).is_empty() {
            clear(&mut self.next_name);
            self.next_name.extend_from_slice(name);
            self.next_start = offset;
            self.has_next_name = true;
            return;
        }
        self.note_field(offset);
        // S16: a ping without a blank line before it must not rename the data that precedes it.
        if name != b"ping" || !has_data {
            in_read.name = Some(name);
        }
    }

    /// Gives the second name, if there is one, to the current event.
    pub(super) fn take_next_name(&mut self, in_read: &mut InRead<'_>) {
        if !std::mem::take(&mut self.has_next_name) {
            return;
        }
        let has_data = self.has_data || in_read.data.is_some();
        // S16, as in `read_name`.
        if self.next_name != b"ping" || !has_data {
            in_read.name = None;
            std::mem::swap(&mut self.name, &mut self.next_name);
        }
        clear(&mut self.next_name);
    }

    /// Starts to follow the data as JSON, if that has not been done.
    fn start_following(&mut self, in_read: &InRead<'_>) {
        if !std::mem::replace(&mut self.is_followed, true) {
            let mut value = Value::new();
            value.feed(in_read.data.unwrap_or_else(|| self.data()));
            self.value = value;
        }
    }

    fn end_part_before(&mut self) -> LineEffect {
        self.in_parts = true;
        LineEffect::EndPartBefore
    }

    fn join_data<'i>(
        &mut self,
        value: &'i [u8],
        in_read: &mut InRead<'i>,
    ) -> Result<(), FrameError> {
        if let Some(first) = in_read.data.take() {
            self.set_data(first);
        }
        self.check_limit(self.data().len() + 1 + value.len())?;
        let limit = self.limit + self.data_start;
        append(&mut self.data, b"\n", limit);
        append(&mut self.data, value, limit);
        Ok(())
    }
}
