//! Assembles the lines of an event stream to events.

mod bare;
mod parts;

use memchr::memchr;

use bare::BareLines;

use super::buffer::{MAX_KEPT_CAPACITY, clear};
use super::line::{Line, Lines};
use super::value::Value;
use super::{DONE, FrameError, FrameKind, Part, RawFrame};
use crate::prefetch::prefetch;

/// The current event, by section 9.2.6 of the WHATWG HTML standard.
// What an event of one line needs comes first.
#[repr(C)]
pub(super) struct Sse {
    has_data: bool,
    /// Whether the event was lent out with its buffers.
    is_lent: bool,
    seen_field: bool,
    is_followed: bool,
    /// Whether the data lines of this event are not one JSON value together, so that each value is a frame of its own
    /// (S10).
    in_parts: bool,
    /// Whether a part of this event was returned.
    has_part: bool,
    /// Whether `next_name` has followed the data.
    has_next_name: bool,
    strict: bool,
    limit: usize,
    /// The offset of the event's first field.
    start: Option<u64>,
    /// The offset of the line in [`Lines::kept`], if it still has to be processed after the frame that was returned
    /// before it.
    pending_line: Option<u64>,
    name: Vec<u8>,
    /// The joined data lines, from `data_start` on. It has no meaning unless `has_data`.
    data: Vec<u8>,
    /// The length of the field name before the data of the first line.
    data_start: usize,
    /// The state of the data as JSON, if `is_followed`. The data of an event with one line never is.
    value: Value,
    bare: BareLines,
    /// A second name, and the offset of its line. It is that of the event after this one (S10) if data follows that does not
    /// belong to this event.
    next_name: Vec<u8>,
    next_start: u64,
}

/// The fields of the current event that are in the current read. They are copied only if the read ends before the
/// event.
#[derive(Default)]
struct InRead<'i> {
    name: Option<&'i [u8]>,
    data: Option<&'i [u8]>,
}

/// The effect of a line.
enum LineEffect {
    None,
    /// It ends an event that has data.
    EndEvent,
    /// It ends a part of an event.
    EndPart,
    /// It shows that the lines before it are a part of an event. It has to be read again after that part.
    EndPartBefore,
    /// It is a `[DONE]` without a field name.
    BareDone,
}

impl Sse {
    /// Loads what the next event most likely needs.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(u64::from(self.has_data) + self.name.len() as u64);
    }

    pub(super) fn new(limit: usize, strict: bool) -> Self {
        Self {
            name: Vec::new(),
            data: Vec::new(),
            data_start: 0,
            has_data: false,
            start: None,
            is_lent: false,
            seen_field: false,
            value: Value::new(),
            is_followed: false,
            in_parts: false,
            has_part: false,
            has_next_name: false,
            pending_line: None,
            bare: BareLines::default(),
            next_name: Vec::new(),
            next_start: 0,
            strict,
            limit,
        }
    }

    /// Returns the next event of the read; `None` when the read is used up.
    pub(super) fn next_raw<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<Option<RawFrame<'i>>, FrameError> {
        if self.is_lent {
            self.reset();
        }
        if let Some(offset) = self.pending_line.take() {
            match self.read_kept_line(offset, lines)? {
                LineEffect::EndPart => {
                    return Ok(Some(self.dispatch(FrameKind::Line, InRead::default())));
                }
                LineEffect::BareDone => return Ok(Some(RawFrame::bare_done(offset))),
                LineEffect::None | LineEffect::EndEvent | LineEffect::EndPartBefore => {}
            }
        }
        let mut in_read = InRead::default();
        loop {
            let read = *input;
            let Some(line) = lines.next(input)? else {
                break;
            };
            let effect = match line.read {
                Some(bytes) => self.read_line(bytes, line.offset, &mut in_read)?,
                None => self.read_kept_line(line.offset, lines)?,
            };
            match effect {
                LineEffect::None => {}
                LineEffect::EndEvent => return Ok(Some(self.dispatch(FrameKind::Event, in_read))),
                LineEffect::EndPart => return Ok(Some(self.dispatch(FrameKind::Line, in_read))),
                LineEffect::EndPartBefore => {
                    match line.read {
                        Some(_) => lines.rewind_to(line.offset, input, read),
                        None => self.pending_line = Some(line.offset),
                    }
                    return Ok(Some(self.dispatch(FrameKind::Line, in_read)));
                }
                LineEffect::BareDone => {
                    self.copy_from_read(in_read);
                    return Ok(Some(RawFrame::bare_done(line.offset)));
                }
            }
        }
        self.copy_from_read(in_read);
        Ok(None)
    }

    /// Reads a line that does not end an event, and copies its value.
    pub(super) fn store_line(
        &mut self,
        line: Line<'_>,
        lines: &mut Lines,
    ) -> Result<(), FrameError> {
        match line.read {
            Some(bytes) => self.read_and_copy_line(bytes, line.offset)?,
            None => self.read_kept_line(line.offset, lines)?,
        };
        Ok(())
    }

    /// Returns what is left at the end of the body: the last line may lack its end, and the last event its blank line.
    pub(super) fn last(
        &mut self,
        lines: &mut Lines,
    ) -> Result<Option<RawFrame<'static>>, FrameError> {
        if self.is_lent {
            self.reset();
        }
        self.pending_line = None;
        if let Some(line) = lines.last() {
            match self.read_kept_line(line.offset, lines)? {
                LineEffect::None | LineEffect::EndEvent => {}
                // The next call reads the last line.
                LineEffect::EndPartBefore => {
                    return Ok(Some(self.dispatch(FrameKind::Line, InRead::default())));
                }
                LineEffect::EndPart => {
                    return Ok(Some(self.dispatch(FrameKind::Truncated, InRead::default())));
                }
                LineEffect::BareDone => return Ok(Some(RawFrame::bare_done(line.offset))),
            }
        }
        // The standard drops this event, but it may be the one with the finish reason or the usage.
        if self.has_data {
            self.take_next_name(&mut InRead::default());
            return Ok(Some(self.dispatch(FrameKind::Truncated, InRead::default())));
        }
        Ok(self.bare.take())
    }

    /// The lines without a field name.
    pub(super) fn bare(&self) -> &[u8] {
        self.bare.text()
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn data(&self) -> &[u8] {
        self.data.get(self.data_start..).unwrap_or_default()
    }

    /// How many bytes of the current event are kept.
    #[inline]
    pub(super) fn buffered_bytes(&self) -> usize {
        self.name.len() + self.data.len() + self.next_name.len()
    }

    /// The offset of the kept line that can be processed without any further byte.
    pub(super) fn line_left(&self) -> Option<u64> {
        self.pending_line
    }

    /// Whether no event follows without further bytes. It ends the borrow of a lent event.
    #[inline]
    pub(super) fn is_used_up(&mut self) -> bool {
        if self.is_lent {
            self.reset();
        }
        self.pending_line.is_none()
    }

    /// Whether the body is between two events, with a field seen before. It ends the borrow of a lent event.
    #[inline]
    pub(super) fn is_between(&mut self) -> bool {
        if self.is_lent {
            self.reset();
        }
        self.seen_field
            && self.start.is_none()
            && self.name.is_empty()
            && !self.has_data
            && !self.in_parts
    }

    /// Frees the memory of a large event once it is no longer borrowed.
    pub(super) fn release(&mut self) {
        if self.is_lent && self.data.capacity() > MAX_KEPT_CAPACITY {
            self.reset();
        }
    }

    /// Whether an event may have this length.
    #[inline]
    pub(super) fn allows(&self, length: usize) -> bool {
        length <= self.limit
    }

    pub(super) fn seen_field(&self) -> bool {
        self.seen_field
    }

    fn read_kept_line(&mut self, offset: u64, lines: &mut Lines) -> Result<LineEffect, FrameError> {
        let mut in_read = InRead::default();
        let effect = self.read_line(lines.kept(), offset, &mut in_read)?;
        if let LineEffect::EndPartBefore = effect {
            return Ok(effect);
        }
        let data_len = in_read.data.take().map(<[u8]>::len);
        self.copy_from_read(in_read);
        if let Some(length) = data_len {
            // The value is the end of its line, so the two buffers are exchanged and a long line is not copied again.
            self.data_start = lines.kept().len() - length;
            self.has_data = true;
            lines.swap_kept(&mut self.data);
        }
        lines.clear_kept();
        Ok(effect)
    }

    fn read_and_copy_line(&mut self, line: &[u8], offset: u64) -> Result<LineEffect, FrameError> {
        let mut in_read = InRead::default();
        let effect = self.read_line(line, offset, &mut in_read)?;
        self.copy_from_read(in_read);
        Ok(effect)
    }

    #[inline(always)]
    fn read_line<'i>(
        &mut self,
        line: &'i [u8],
        offset: u64,
        in_read: &mut InRead<'i>,
    ) -> Result<LineEffect, FrameError> {
        if line.is_empty() {
            return Ok(self.read_blank_line(in_read));
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            self.note_field(offset);
            return self.add_data(after_space(value), in_read);
        }
        if self.strict && !line.starts_with(b":") && !line.trim_ascii().is_empty() {
            return Err(FrameError::NotData { offset });
        }
        self.read_other_line(line, offset, in_read)
    }

    fn read_other_line<'i>(
        &mut self,
        line: &'i [u8],
        offset: u64,
        in_read: &mut InRead<'i>,
    ) -> Result<LineEffect, FrameError> {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, rest) = line.split_at_checked(colon).unwrap_or((line, b""));
        let value = after_space(rest.get(1..).unwrap_or_default());
        match name {
            b"" => self.seen_field = true,
            b"data" => {
                self.note_field(offset);
                return self.add_data(value, in_read);
            }
            b"event" => self.read_name(value, offset, in_read),
            b"id" | b"retry" => self.note_field(offset),
            // S15: llama.cpp wrote the error as a field of its own. Data before it must not become the error.
            b"error" if value.starts_with(b"{") && !self.has_data && in_read.data.is_none() => {
                self.note_field(offset);
                in_read.name = Some(name);
                return self.add_data(value, in_read);
            }
            // The standard ignores a line with an unknown field name.
            _ if line.trim_ascii() == DONE => {
                if !self.has_data && in_read.data.is_none() {
                    return Ok(LineEffect::BareDone);
                }
                return self.add_data(DONE, in_read);
            }
            _ => self.bare.push(line, offset),
        }
        Ok(LineEffect::None)
    }

    #[inline]
    fn read_blank_line(&mut self, in_read: &mut InRead<'_>) -> LineEffect {
        if self.has_data || in_read.data.is_some() {
            if self.has_next_name {
                self.take_next_name(in_read);
            }
            self.in_parts = false;
            return LineEffect::EndEvent;
        }
        // WHATWG: without data there is no event, and the event's name is dropped.
        in_read.name = None;
        self.in_parts = false;
        self.has_part = false;
        self.reset();
        LineEffect::None
    }

    #[inline]
    fn note_field(&mut self, offset: u64) {
        self.seen_field = true;
        self.start.get_or_insert(offset);
    }

    #[inline(always)]
    fn add_data<'i>(
        &mut self,
        value: &'i [u8],
        in_read: &mut InRead<'i>,
    ) -> Result<LineEffect, FrameError> {
        if !self.has_data && in_read.data.is_none() && !self.in_parts {
            self.check_limit(value.len())?;
            in_read.data = Some(value);
            return Ok(LineEffect::None);
        }
        self.add_further_data(value, in_read)
    }

    #[inline]
    fn check_limit(&self, joined_len: usize) -> Result<(), FrameError> {
        if joined_len > self.limit {
            let offset = self.start.unwrap_or_default();
            return Err(FrameError::EventTooLong {
                offset,
                limit: self.limit,
            });
        }
        Ok(())
    }

    /// Copies the fields out of the read, because the read ends before the event.
    fn copy_from_read(&mut self, in_read: InRead<'_>) {
        if let Some(name) = in_read.name {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
        if let Some(data) = in_read.data {
            self.set_data(data);
        }
    }

    fn set_data(&mut self, data: &[u8]) {
        self.data.clear();
        self.data.extend_from_slice(data);
        self.data_start = 0;
        self.has_data = true;
    }

    #[inline]
    fn dispatch<'i>(&mut self, kind: FrameKind, in_read: InRead<'i>) -> RawFrame<'i> {
        self.is_lent = true;
        let has_part = kind == FrameKind::Line;
        RawFrame {
            is_later_part: std::mem::replace(&mut self.has_part, has_part),
            kind,
            event: in_read.name.map_or(Part::Name, Part::Read),
            data: in_read.data.map_or(Part::Data, Part::Read),
            offset: self.start.unwrap_or_default(),
        }
    }

    fn reset(&mut self) {
        clear(&mut self.name);
        clear(&mut self.data);
        self.has_data = false;
        self.is_followed = false;
        self.start = None;
        self.is_lent = false;
        if self.has_next_name {
            self.take_next_name(&mut InRead::default());
            self.start = Some(self.next_start);
        }
    }
}

/// WHATWG, section 9.2.6: exactly one space after the colon is dropped.
fn after_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
