//! Passes one event's updates on, and bounds how many there may be.

use std::borrow::Cow;

use crate::{Update, Warning, limits::MAX_ENTRIES, text_delta::UpdateSink};

/// Collects an event's updates, holding one back so that the last one can be marked.
pub(super) struct Out<'a, 's> {
    pub(super) at: u64,
    pub(super) held: Option<Update<'a>>,
    pub(super) warnings: Vec<Warning>,
    pub(super) is_chunk: bool,
    pub(super) done: bool,
    /// The end of the stream cut the event: what is lost at its end was cut (S21).
    pub(super) cut: bool,
    /// Why strict mode refuses the event, where that is not its JSON.
    pub(super) refusal: Option<&'static str>,
    room: Room,
    skipped: bool,
    lost: Lost,
    /// What was lost after the last good value: the end of the stream may have cut it.
    tail: Lost,
    sink: &'s mut dyn UpdateSink,
}

/// How much more the event may bring: [`MAX_ENTRIES`] of each kind, however many values it is made of.
struct Room {
    choices: usize,
    calls: usize,
    /// News of the stream itself.
    others: usize,
}

/// What of an event was no JSON. It is counted and not kept: an event may be made of millions of lines.
#[derive(Default)]
struct Lost {
    pieces: usize,
    bytes: usize,
}

impl<'a, 's> Out<'a, 's> {
    pub(super) fn new(at: u64, sink: &'s mut dyn UpdateSink) -> Self {
        Self {
            at,
            held: None,
            warnings: Vec::new(),
            is_chunk: false,
            done: false,
            cut: false,
            refusal: None,
            room: Room {
                choices: MAX_ENTRIES,
                calls: MAX_ENTRIES,
                others: MAX_ENTRIES,
            },
            skipped: false,
            lost: Lost::default(),
            tail: Lost::default(),
            sink,
        }
    }

    /// Whether the event has brought all that it may: the rest of it is skipped.
    pub(super) fn is_full(&self) -> bool {
        self.room.choices == 0 || self.room.others == 0
    }

    /// Counts a piece of so many bytes that is not JSON.
    pub(super) fn lose(&mut self, bytes: usize) {
        self.tail.pieces += 1;
        self.tail.bytes += bytes;
    }

    /// A good value follows what was lost so far, which was not cut off, then.
    pub(super) fn good_follows(&mut self) {
        let Lost { pieces, bytes } = std::mem::take(&mut self.tail);
        self.lost.pieces += pieces;
        self.lost.bytes += bytes;
    }

    /// Counts each line of a text that is not looked at any closer.
    pub(super) fn lose_lines(&mut self, text: &str) {
        if !text.is_empty() {
            let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
            self.tail.pieces += ends + usize::from(!text.ends_with('\n'));
            self.tail.bytes += text.len();
        }
    }

    /// Whether there is room for an update of a choice; calls beyond it are taken away.
    pub(super) fn admits(&mut self, update: &mut Update<'_>) -> bool {
        let calls = &mut update.tool_calls;
        if self.room.choices == 0 || calls.len() > self.room.calls {
            self.skip();
        }
        if self.room.choices == 0 {
            return false;
        }
        self.room.choices -= 1;
        calls.truncate(self.room.calls);
        self.room.calls -= calls.len();
        true
    }

    /// Whether there is room for news of the stream itself.
    pub(super) fn admits_other(&mut self) -> bool {
        if self.room.others == 0 {
            self.skip();
        }
        let admits = self.room.others > 0;
        self.room.others -= usize::from(admits);
        admits
    }

    /// Warns that the rest is skipped, once an event.
    pub(super) fn skip(&mut self) {
        if !std::mem::replace(&mut self.skipped, true) {
            self.warn(
                "E11",
                format!("more than {MAX_ENTRIES} entries in one event; the rest was skipped"),
            );
        }
    }

    pub(super) fn push(&mut self, mut update: Update<'a>) {
        update.event_index = self.at.into();
        if update.error.is_some() && update.choice.is_none() {
            // The error ends the stream: what was lost before it is reported with it or never.
            self.good_follows();
            self.warn_of_loss();
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut update.warnings);
        update.warnings = warnings;
        if let Some(ready) = self.held.replace(update) {
            self.sink.update(&ready);
        }
    }

    pub(super) fn warn(&mut self, code: &'static str, message: impl Into<Cow<'static, str>>) {
        self.warnings.push(Warning::new(code, self.at, message));
    }

    /// X13 once, however much was lost; what stands last in an event that was cut is S21.
    pub(super) fn warn_of_loss(&mut self) {
        if !self.cut {
            self.good_follows();
        }
        let Lost { pieces, bytes } = std::mem::take(&mut self.lost);
        match pieces {
            0 => {}
            1 => self.warn(
                "X13",
                format!("a chunk of {bytes} bytes that is no JSON was skipped"),
            ),
            _ => self.warn(
                "X13",
                format!("{pieces} chunks that are no JSON were skipped, {bytes} bytes"),
            ),
        }
        let cut = std::mem::take(&mut self.tail);
        if cut.pieces > 0 {
            let bytes = cut.bytes;
            self.warn("S21", format!("the last event was cut after {bytes} bytes"));
        }
    }

    pub(super) fn finish(mut self) {
        self.warn_of_loss();
        let pending = self.held.is_none() || !self.warnings.is_empty() || self.done;
        if pending {
            let done = self.done;
            self.push(Update {
                done,
                ..Update::default()
            });
        }
        if let Some(mut last) = self.held.take() {
            last.last_of_event = true;
            last.is_chunk |= self.is_chunk;
            self.sink.update(&last);
        }
    }
}
