//! Lines of an event stream become events.

mod parts;

use memchr::memchr;

use super::buffer::{ROOMY, renew};
use super::line::{Line, Lines};
use super::value::Value;
use super::{Cut, DONE, FrameError, FrameKind, Part};

/// The event under way, by WHATWG 9.2.6.
pub(super) struct Sse {
    name: Vec<u8>,
    /// The data lines so far, joined, from `skip` on; meaningless unless `has_data`.
    data: Vec<u8>,
    /// How much of `data` is the field name of its first line.
    skip: usize,
    has_data: bool,
    /// Where the first field of the event starts.
    start: Option<u64>,
    /// The event was handed out and its buffers are still lent.
    lent: bool,
    seen_field: bool,
    /// What the data so far is as JSON, once it is `followed`: an event of one line never is.
    value: Value,
    followed: bool,
    /// The data lines of this event are no JSON value together: each that is one by itself is a frame (S10).
    apart: bool,
    /// The line in [`Lines::kept`] was read, but not taken: what came before it had to be handed out first.
    again: Option<u64>,
    strict: bool,
    limit: usize,
}

/// What of the event under way lies in the current read, and need not be copied if the event ends there, too.
#[derive(Default)]
struct Held<'i> {
    name: Option<&'i [u8]>,
    data: Option<&'i [u8]>,
}

/// What a line did.
enum Step {
    More,
    /// It ended an event that has data.
    Dispatch,
    /// It ended a part of an event.
    Part,
    /// It shows that what came before it is a part of an event; it is to be read again after that.
    Before,
    /// It is a bare `[DONE]`.
    BareDone,
}

impl Sse {
    pub(super) fn new(limit: usize, strict: bool) -> Self {
        Self {
            name: Vec::new(),
            data: Vec::new(),
            skip: 0,
            has_data: false,
            start: None,
            lent: false,
            seen_field: false,
            value: Value::new(),
            followed: false,
            apart: false,
            again: None,
            strict,
            limit,
        }
    }

    /// Takes the next event out of the read; None when it is used up.
    pub(super) fn cut<'i>(
        &mut self,
        lines: &mut Lines,
        input: &mut &'i [u8],
    ) -> Result<Option<Cut<'i>>, FrameError> {
        if self.lent {
            self.reset();
        }
        if let Some(at) = self.again.take() {
            match self.kept_line(at, lines)? {
                Step::Part => return Ok(Some(self.dispatch(FrameKind::Line, Held::default()))),
                Step::BareDone => return Ok(Some(Cut::bare_done(at))),
                Step::More | Step::Dispatch | Step::Before => {}
            }
        }
        let mut held = Held::default();
        loop {
            let read = *input;
            let Some(line) = lines.next(input)? else {
                break;
            };
            let step = match line.read {
                Some(bytes) => self.line(bytes, line.at, &mut held)?,
                None => self.kept_line(line.at, lines)?,
            };
            match step {
                Step::More => {}
                Step::Dispatch => return Ok(Some(self.dispatch(FrameKind::Event, held))),
                Step::Part => return Ok(Some(self.dispatch(FrameKind::Line, held))),
                Step::Before => {
                    match line.read {
                        Some(_) => lines.back_to(line.at, input, read),
                        None => self.again = Some(line.at),
                    }
                    return Ok(Some(self.dispatch(FrameKind::Line, held)));
                }
                Step::BareDone => {
                    self.hold(held);
                    return Ok(Some(Cut::bare_done(line.at)));
                }
            }
        }
        self.hold(held);
        Ok(None)
    }

    /// Reads a line that ends no event and keeps its value, wherever it lies.
    pub(super) fn store(&mut self, line: Line<'_>, lines: &mut Lines) -> Result<(), FrameError> {
        match line.read {
            Some(bytes) => self.copied_line(bytes, line.at)?,
            None => self.kept_line(line.at, lines)?,
        };
        Ok(())
    }

    /// What the end of the body leaves: the last line may lack its end, and the last event its blank line.
    pub(super) fn last(&mut self, lines: &mut Lines) -> Result<Option<Cut<'static>>, FrameError> {
        if self.lent {
            self.reset();
        }
        self.again = None;
        if let Some(line) = lines.last() {
            match self.kept_line(line.at, lines)? {
                Step::More | Step::Dispatch => {}
                // In front of the last line, which is read by the next call.
                Step::Before => return Ok(Some(self.dispatch(FrameKind::Line, Held::default()))),
                Step::Part => {
                    return Ok(Some(self.dispatch(FrameKind::Truncated, Held::default())));
                }
                Step::BareDone => return Ok(Some(Cut::bare_done(line.at))),
            }
        }
        // The standard drops this event; but it may be the one that carries the finish reason or the usage.
        Ok(self
            .has_data
            .then(|| self.dispatch(FrameKind::Truncated, Held::default())))
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }

    pub(super) fn data(&self) -> &[u8] {
        self.data.get(self.skip..).unwrap_or_default()
    }

    /// How much of the event under way is kept.
    #[inline]
    pub(super) fn buffered_bytes(&self) -> usize {
        self.name.len() + self.data.len()
    }

    /// Where the line starts that was kept and is still to be taken, without a byte more.
    pub(super) fn line_left(&self) -> Option<u64> {
        self.again
    }

    /// Whether no event comes without further bytes. What was lent is given back.
    #[inline]
    pub(super) fn is_used_up(&mut self) -> bool {
        if self.lent {
            self.reset();
        }
        self.again.is_none()
    }

    /// Whether no event is under way; a field was seen before, and what was lent is given back.
    #[inline]
    pub(super) fn is_between(&mut self) -> bool {
        if self.lent {
            self.reset();
        }
        self.seen_field
            && self.start.is_none()
            && self.name.is_empty()
            && !self.has_data
            && !self.apart
    }

    /// Gives a large event's room back as soon as nobody reads it.
    pub(super) fn release(&mut self) {
        if self.lent && self.data.capacity() > ROOMY {
            self.reset();
        }
    }

    /// Whether an event may hold so much.
    #[inline]
    pub(super) fn allows(&self, length: usize) -> bool {
        length <= self.limit
    }

    pub(super) fn seen_field(&self) -> bool {
        self.seen_field
    }

    fn kept_line(&mut self, at: u64, lines: &mut Lines) -> Result<Step, FrameError> {
        let mut held = Held::default();
        let step = self.line(lines.kept(), at, &mut held)?;
        if let Step::Before = step {
            return Ok(step);
        }
        let first = held.data.take().map(<[u8]>::len);
        self.hold(held);
        if let Some(length) = first {
            // The value is the end of its line, so the buffers change places and a long line is not copied again.
            self.skip = lines.kept().len() - length;
            self.has_data = true;
            lines.swap_kept(&mut self.data);
        }
        lines.forget();
        Ok(step)
    }

    fn copied_line(&mut self, line: &[u8], at: u64) -> Result<Step, FrameError> {
        let mut held = Held::default();
        let step = self.line(line, at, &mut held)?;
        self.hold(held);
        Ok(step)
    }

    #[inline(always)]
    fn line<'i>(
        &mut self,
        line: &'i [u8],
        at: u64,
        held: &mut Held<'i>,
    ) -> Result<Step, FrameError> {
        if line.is_empty() {
            return Ok(self.blank(held));
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            self.field(at);
            return self.add_data(after_space(value), held);
        }
        if self.strict && !line.starts_with(b":") && !line.trim_ascii().is_empty() {
            return Err(FrameError::NotData { offset: at });
        }
        self.other_line(line, at, held)
    }

    fn other_line<'i>(
        &mut self,
        line: &'i [u8],
        at: u64,
        held: &mut Held<'i>,
    ) -> Result<Step, FrameError> {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, rest) = line.split_at_checked(colon).unwrap_or((line, b""));
        let value = after_space(rest.get(1..).unwrap_or_default());
        match name {
            b"" => self.seen_field = true,
            b"data" => {
                self.field(at);
                return self.add_data(value, held);
            }
            b"event" => {
                self.field(at);
                // S16: no ping is made of data that came before; its own event lacks the blank line in front.
                if value != b"ping" || !(self.has_data || held.data.is_some()) {
                    held.name = Some(value);
                }
            }
            b"id" | b"retry" => self.field(at),
            // Not a field of the standard, which would ignore it.
            _ if line.trim_ascii() == DONE => {
                if !self.has_data && held.data.is_none() {
                    return Ok(Step::BareDone);
                }
                return self.add_data(DONE, held);
            }
            _ => {}
        }
        Ok(Step::More)
    }

    #[inline]
    fn blank(&mut self, held: &mut Held<'_>) -> Step {
        if self.has_data || held.data.is_some() {
            self.apart = false;
            return Step::Dispatch;
        }
        // WHATWG: no data, no event; but its name is spent.
        held.name = None;
        self.apart = false;
        self.reset();
        Step::More
    }

    #[inline]
    fn field(&mut self, at: u64) {
        self.seen_field = true;
        self.start.get_or_insert(at);
    }

    #[inline(always)]
    fn add_data<'i>(&mut self, value: &'i [u8], held: &mut Held<'i>) -> Result<Step, FrameError> {
        if !self.has_data && held.data.is_none() && !self.apart {
            self.check(value.len())?;
            held.data = Some(value);
            return Ok(Step::More);
        }
        self.further_data(value, held)
    }

    #[inline]
    fn check(&self, joined: usize) -> Result<(), FrameError> {
        if joined > self.limit {
            let offset = self.start.unwrap_or_default();
            return Err(FrameError::EventTooLong {
                offset,
                limit: self.limit,
            });
        }
        Ok(())
    }

    /// Copies what the read holds, because the read ends here and the event does not.
    fn hold(&mut self, held: Held<'_>) {
        if let Some(name) = held.name {
            self.name.clear();
            self.name.extend_from_slice(name);
        }
        if let Some(data) = held.data {
            self.set_data(data);
        }
    }

    fn set_data(&mut self, data: &[u8]) {
        self.data.clear();
        self.data.extend_from_slice(data);
        self.skip = 0;
        self.has_data = true;
    }

    #[inline]
    fn dispatch<'i>(&mut self, kind: FrameKind, held: Held<'i>) -> Cut<'i> {
        self.lent = true;
        Cut {
            kind,
            event: held.name.map_or(Part::Name, Part::Read),
            data: held.data.map_or(Part::Data, Part::Read),
            offset: self.start.unwrap_or_default(),
        }
    }

    fn reset(&mut self) {
        renew(&mut self.name);
        renew(&mut self.data);
        self.has_data = false;
        self.followed = false;
        self.start = None;
        self.lent = false;
    }
}

/// WHATWG 9.2.6: one space after the colon is dropped, and only one.
fn after_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}
