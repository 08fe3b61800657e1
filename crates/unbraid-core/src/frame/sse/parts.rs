//! Events with several data lines: one JSON value together (S11), or several values without blank lines between them
//! (S10).
//!
//! Which of the two they are is known at the first byte with which the lines cannot be one JSON value. The lines
//! before that byte's line then become a part, and each value after it becomes one when its last line ends. The
//! decision depends only on the bytes, never on how they were split into reads.

use super::{DONE, FrameError, InRead, LineEffect, Sse};
use crate::frame::{
    buffer::append,
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
        if !reads_whole_event && !value.trim_ascii().is_empty() {
            self.start_following(in_read);
            if self.value.state() != ValueState::Open || value.trim_ascii() == DONE {
                return Ok(self.end_part_before());
            }
            self.value.feed(b"\n");
            self.value.feed(value);
            if self.value.state() == (ValueState::Invalid { after_value: false }) {
                return Ok(self.end_part_before());
            }
        } else if self.is_followed {
            self.value.feed(b"\n");
            self.value.feed(value);
        }
        self.join_data(value, in_read)?;
        let ends_part = match self.value.state() {
            // A blank line ends nothing. If only such lines followed the first one, `value` still belongs to an earlier event.
            _ if value.trim_ascii().is_empty() => false,
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

    /// Whether the event has a name, and data that is one whole object or list: a further name is that of the next event (S10).
    pub(super) fn is_whole_with_name(&mut self, in_read: &InRead<'_>) -> bool {
        let data = in_read.data.unwrap_or_else(|| self.data());
        let is_container = matches!(data.trim_ascii_start().first(), Some(b'{' | b'['));
        if !is_container || in_read.name.unwrap_or(&self.name).is_empty() {
            return false;
        }
        self.start_following(in_read);
        self.value.state() == ValueState::Complete
    }

    /// Starts to follow the data as JSON, if that has not been done.
    fn start_following(&mut self, in_read: &InRead<'_>) {
        if !std::mem::replace(&mut self.is_followed, true) {
            let mut value = Value::new();
            value.feed(in_read.data.unwrap_or_else(|| self.data()));
            self.value = value;
        }
    }

    pub(super) fn end_part_before(&mut self) -> LineEffect {
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
