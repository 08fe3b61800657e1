//! Collects the updates of one event, and bounds how many there may be.

use std::borrow::Cow;

use crate::{
    Update, Warning,
    limits::{MAX_CHOICES, MAX_ENTRIES},
    text_delta::UpdateSink,
};

/// Collects the updates of one event. The latest one is held back, so that the last one can be marked.
pub(super) struct Emitter<'a, 's> {
    pub(super) event_index: u64,
    pub(super) held: Option<Update<'a>>,
    pub(super) warnings: Vec<Warning>,
    pub(super) is_chunk: bool,
    pub(super) done: bool,
    /// Whether the end of the stream cut the event: data that is lost at its end was cut (S21).
    pub(super) is_cut: bool,
    /// The name of the event.
    pub(super) event_name: Option<&'a [u8]>,
    /// Why the event is refused although its JSON is valid: by strict mode, or because it ends the stream.
    pub(super) refusal: Option<&'static str>,
    /// Whether the event ends the stream with an error (A11).
    pub(super) is_malformed: bool,
    /// Whether the event is JSON without event-stream framing, which has not been warned about.
    pub(super) is_bare_json: bool,
    budget: Budget,
    has_warned_skipped: bool,
    lost: Lost,
    /// Data that was lost after the last good value. The end of the stream may have cut it.
    lost_tail: Lost,
    sink: &'s mut dyn UpdateSink,
}

/// How much more the event may bring: [`MAX_ENTRIES`] of each kind, however many JSON values the event consists of.
struct Budget {
    choices: usize,
    calls: usize,
    /// Updates that belong to no choice.
    stream_updates: usize,
    /// Ends of choices after the rest was used up.
    ends: usize,
}

/// Data of an event that was not JSON. It is counted and not kept, because an event may consist of millions of lines.
#[derive(Default)]
struct Lost {
    fragments: usize,
    bytes: usize,
}

impl<'a, 's> Emitter<'a, 's> {
    pub(super) fn new(event_index: u64, sink: &'s mut dyn UpdateSink) -> Self {
        Self {
            event_index,
            held: None,
            warnings: Vec::new(),
            is_chunk: false,
            done: false,
            is_cut: false,
            event_name: None,
            refusal: None,
            is_malformed: false,
            is_bare_json: false,
            budget: Budget {
                choices: MAX_ENTRIES,
                calls: MAX_ENTRIES,
                stream_updates: MAX_ENTRIES,
                ends: MAX_CHOICES,
            },
            has_warned_skipped: false,
            lost: Lost::default(),
            lost_tail: Lost::default(),
            sink,
        }
    }

    /// Whether the event has used up a budget, so that the rest of it is skipped.
    pub(super) fn is_full(&self) -> bool {
        self.budget.choices == 0 || self.budget.stream_updates == 0
    }

    /// Counts a fragment of data that is not JSON.
    pub(super) fn count_lost(&mut self, bytes: usize) {
        self.lost_tail.fragments += 1;
        self.lost_tail.bytes += bytes;
    }

    /// Whether the end of the stream cut the event.
    pub(super) fn has_cut_data(&self) -> bool {
        self.is_cut && self.lost_tail.fragments > 0
    }

    /// A good value follows the data that was lost so far, so the end of the stream did not cut that data.
    pub(super) fn confirm_lost(&mut self) {
        let Lost { fragments, bytes } = std::mem::take(&mut self.lost_tail);
        self.lost.fragments += fragments;
        self.lost.bytes += bytes;
    }

    /// Counts each line of a text as lost without decoding it.
    pub(super) fn count_lost_lines(&mut self, text: &str) {
        if !text.is_empty() {
            let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
            self.lost_tail.fragments += ends + usize::from(!text.ends_with('\n'));
            self.lost_tail.bytes += text.len();
        }
    }

    /// Whether the budget allows an update of a choice. Tool calls that exceed the budget are removed.
    pub(super) fn admit_choice_update(&mut self, update: &mut Update<'_>) -> bool {
        let calls = &mut update.tool_calls;
        // One warning for the event, whichever budget is used up first.
        if self.budget.choices == 0 || calls.len() > self.budget.calls {
            self.warn_skipped();
        }
        if self.budget.choices == 0 {
            return false;
        }
        self.budget.choices -= 1;
        // The update itself stays: its text and its finish reason cost no call.
        calls.truncate(self.budget.calls);
        self.budget.calls -= calls.len();
        true
    }

    /// Whether an update says how its choice has ended, which is not skipped with the rest of the event. Nothing else of it is
    /// kept.
    pub(super) fn admit_end(&mut self, update: &mut Update<'_>) -> bool {
        let is_end = update.finish_reason.is_some() && self.budget.ends > 0;
        if is_end {
            self.budget.ends -= 1;
            *update = Update {
                choice: update.choice,
                finish_reason: update.finish_reason.take(),
                done: update.done,
                is_chunk: true,
                ..Update::default()
            };
        }
        is_end
    }

    /// Whether the budget allows an update that belongs to no choice.
    pub(super) fn admit_stream_update(&mut self) -> bool {
        if self.budget.stream_updates == 0 {
            self.warn_skipped();
        }
        let has_budget = self.budget.stream_updates > 0;
        self.budget.stream_updates -= usize::from(has_budget);
        has_budget
    }

    /// Warns that the rest is skipped, once for each event.
    pub(super) fn warn_skipped(&mut self) {
        if !std::mem::replace(&mut self.has_warned_skipped, true) {
            self.warn(
                "E11",
                format!("more than {MAX_ENTRIES} entries in one event; the rest was skipped"),
            );
        }
    }

    pub(super) fn push(&mut self, mut update: Update<'a>) {
        update.event_index = self.event_index.into();
        if update.error.is_some() && update.choice.is_none() {
            // The error ends the stream, so a loss before it is reported with it or never.
            self.confirm_lost();
            self.warn_lost();
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.append(&mut update.warnings);
        update.warnings = warnings;
        // Only the last update of an event is marked, and only `finish` knows which one that is.
        if let Some(ready) = self.held.replace(update) {
            self.sink.update(&ready);
        }
    }

    pub(super) fn warn(&mut self, code: &'static str, message: impl Into<Cow<'static, str>>) {
        self.warnings
            .push(Warning::new(code, self.event_index, message));
    }

    /// Adds one warning (X13) for all lost data, and another (S21) for the end of an event that was cut.
    pub(super) fn warn_lost(&mut self) {
        if !self.is_cut {
            self.confirm_lost();
        }
        let Lost { fragments, bytes } = std::mem::take(&mut self.lost);
        match fragments {
            0 => {}
            1 => self.warn(
                "X13",
                format!("a chunk of {bytes} bytes that is not JSON was skipped"),
            ),
            _ => self.warn(
                "X13",
                format!("{fragments} chunks that are not JSON were skipped, {bytes} bytes"),
            ),
        }
        let tail = std::mem::take(&mut self.lost_tail);
        if tail.fragments > 0 {
            let bytes = tail.bytes;
            self.warn("S21", format!("the last event was cut after {bytes} bytes"));
        }
    }

    /// Ends the event after the updates so far, and starts the next one. False if there are none.
    pub(super) fn flush(&mut self) -> bool {
        let Some(mut last) = self.held.take() else {
            return false;
        };
        last.last_of_event = true;
        self.sink.update(&last);
        self.event_index += 1;
        true
    }

    pub(super) fn finish(mut self) {
        self.warn_lost();
        // Warnings and the end mark need an update to carry them, even if the event brought none.
        let needs_update = self.held.is_none() || !self.warnings.is_empty() || self.done;
        if needs_update {
            let done = self.done;
            self.push(Update {
                done,
                ..Update::default()
            });
        }
        if let Some(mut last) = self.held.take() {
            last.last_of_event = true;
            // A keep-alive or an end mark has no chunk of its own, but shows that this is a stream.
            last.is_chunk |= self.is_chunk;
            self.sink.update(&last);
        }
    }
}
