//! `ViewReader`: one response, as frames of its body.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, CompletionKind};
use unbraid_log::{Batch, End, Event, JournalReader, LogError, Record, Seq};

use super::{
    Target,
    chunk::{CallNumbers, Rewritten, Selection, SyntheticChunks, kind_of},
    frame::Frame,
    shared::{LastFrame, SharedFrame, StreamView},
    terminal::{self, Terminal},
};
use crate::upstream_error;

/// About how many bytes one frame has. A much longer event is divided.
pub(super) const FRAME_BYTES: usize = 64 * 1024;

/// How many batches without an event of the view are read in one poll: a megabyte.
const MAX_EMPTY_BATCHES: usize = 16;

/// The longest frame that is kept for other readers: live readers share short frames, and an idle stream must not keep
/// the long one with which a reader has caught up.
const MAX_SHARED_BYTES: usize = 4 * 1024;

/// The events of one view, from its start. Dropping it frees its place among the stream's readers.
// What a delta needs comes first: see docs/design/020.
#[repr(C)]
pub(crate) struct ViewReader {
    /// The rest of a frame that is too long for one write.
    rest: Bytes,
    has_ended: bool,
    is_first: bool,
    /// Finds the last event of a choice whose end is not in the log. Every other event was returned.
    ends: Option<BoxFuture<'static, ()>>,
    /// What was read and not shown yet, and the number at which it continues.
    batch: Batch,
    reader: JournalReader,
    next: Seq,
    /// Events up to this number are not shown.
    after: Seq,
    last_id: Seq,
    target: Target,
    kind: CompletionKind,
    /// The number of the upstream's error event.
    error: Option<Seq>,
    /// The parts of an event whose last part has not been read.
    parts: Vec<u8>,
    view: Arc<StreamView>,
    frames: Arc<SharedFrame>,
    calls: CallNumbers,
}

impl ViewReader {
    /// A reader of the events after a cursor, which reads the journal from `start` on.
    pub(super) fn new(
        view: Arc<StreamView>,
        target: Target,
        after: Seq,
        start: Seq,
        error: Option<Seq>,
    ) -> Self {
        // Calls without an index are numbered from the first one.
        let start = if target.needs_all_events() {
            Seq::START
        } else {
            start
        };
        let reader = view.journal().reader(start);
        Self {
            frames: view.frames(target),
            next: reader.next_seq(),
            reader,
            batch: Batch::default(),
            kind: kind_of(&view.meta().endpoint),
            view,
            target,
            after,
            last_id: after,
            rest: Bytes::new(),
            is_first: true,
            ends: None,
            has_ended: false,
            parts: Vec::new(),
            error,
            calls: CallNumbers::default(),
        }
    }

    /// Begins with an event that is not of the log, at the cursor.
    pub(super) fn with_first_event(mut self, data: &[u8]) -> Self {
        let mut frame = Frame::new(true);
        frame.event(self.after, None, data);
        self.is_first = false;
        self.rest = frame.into_bytes().into();
        self
    }

    /// The id of the last event that was returned, if only in part; before the first one, the cursor of the request.
    pub(crate) fn cursor(&self) -> Seq {
        self.last_id
    }

    /// Whether everything that was returned so far consists of whole events.
    pub(crate) fn is_between_events(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next frame of the body: everything that is ready, up to about 64 KiB, or a part of a longer event. `None` at the
    /// end of the view.
    ///
    /// An error says that the log has failed, not the stream. The connection then ends without a terminal event, so that
    /// the client resumes.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, LogError>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.next_write())));
        }
        for _ in 0..MAX_EMPTY_BATCHES {
            if self.has_ended {
                return Poll::Ready(None);
            }
            if let Some(ends) = &mut self.ends {
                ready!(ends.poll_unpin(cx));
                self.rest = self.last_frame();
                if self.rest.is_empty() {
                    return Poll::Ready(None);
                }
                return Poll::Ready(Some(Ok(self.next_write())));
            }
            if self.batch.is_empty() {
                match self.reader.poll_batch(cx, FRAME_BYTES) {
                    Poll::Ready(Ok(batch)) => self.batch = batch,
                    Poll::Ready(Err(error)) => {
                        self.has_ended = true;
                        return Poll::Ready(Some(Err(error)));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            let batch = std::mem::take(&mut self.batch);
            let bytes = self.frame(batch);
            if !bytes.is_empty() {
                self.rest = bytes;
                return Poll::Ready(Some(Ok(self.next_write())));
            }
        }
        // A long stream that has nothing for this view must not hold the thread.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What one write takes of the rest: all of it, unless it is a very long event. A client that reads it slowly makes
    /// progress with each write, and is not mistaken for one that has stopped reading.
    fn next_write(&mut self) -> Bytes {
        if self.rest.len() <= FRAME_BYTES {
            return std::mem::take(&mut self.rest);
        }
        self.rest.split_to(FRAME_BYTES)
    }

    /// The next frame of a batch. What exceeds the frame is kept for the next one.
    fn frame(&mut self, batch: Batch) -> Bytes {
        let (from, to) = (self.next, self.reader.next_seq());
        // The reader knows whether it is alone. The count lies elsewhere.
        let has_siblings = !self.reader.is_alone() && Arc::strong_count(&self.frames) > 1;
        let is_shareable = has_siblings && self.has_no_state(from) && batch.end.is_none();
        if is_shareable && let Some(shared) = self.frames.get(from, to) {
            self.last_id = shared.last_id;
            self.next = to;
            return shared.bytes;
        }
        let mut frame = Frame::new(self.is_first);
        self.events(&batch, &mut frame);
        let is_complete = self.next == to;
        if !is_complete {
            self.batch = batch;
        } else if batch.end.is_some() && !self.has_ended {
            let known = self.view.track().terminal(self.target);
            match known {
                Some(terminal) => self.write_terminal(terminal, &mut frame),
                None => {
                    let view = Arc::clone(&self.view);
                    self.ends = Some(async move { view.find_ends().await }.boxed());
                }
            }
        }
        self.is_first = frame.is_first();
        let bytes = Bytes::from(frame.into_bytes());
        let is_small = bytes.len() <= MAX_SHARED_BYTES;
        if is_shareable && is_complete && is_small && !self.has_ended && self.has_no_state(from) {
            self.frames.set(LastFrame {
                from,
                to,
                bytes: bytes.clone(),
                last_id: self.last_id,
            });
        }
        bytes
    }

    /// The terminal event alone, once it is known.
    fn last_frame(&mut self) -> Bytes {
        self.ends = None;
        let mut frame = Frame::new(self.is_first);
        let known = self.view.track().terminal(self.target);
        // The journal is sealed, and the ends that it lacks were found, so it is known.
        let terminal = known.unwrap_or(Terminal::Error(self.next, End::ProducerLost));
        self.write_terminal(terminal, &mut frame);
        frame.into_bytes().into()
    }

    /// Writes the events of a batch until the frame is full, or the view has ended.
    fn events(&mut self, batch: &Batch, frame: &mut Frame) {
        let from = self.next;
        let events = batch.records.iter().flat_map(Record::events);
        for (seq, event) in events.skip_while(|(seq, _)| *seq < from) {
            if self.has_ended || frame.len() >= FRAME_BYTES {
                return;
            }
            self.event(seq, &event, frame);
            self.next = seq.next();
        }
    }

    /// Whether a frame that begins at this number depends on nothing but the numbers of its events.
    fn has_no_state(&self, from: Seq) -> bool {
        !self.is_first
            && !self.target.needs_all_events()
            && self.parts.is_empty()
            && self.error.is_none()
            && self.after < from
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>, frame: &mut Frame) {
        match event {
            Event::Part { payload } => self.parts.extend_from_slice(payload),
            Event::ChoiceEnd { choice, end, .. } => self.choice_end(seq, *choice, *end, frame),
            Event::Error { .. } => {
                self.parts.clear();
                self.error = self.error.or(Some(seq));
                if self.target == Target::Combined {
                    self.write_terminal(Terminal::UpstreamError(seq), frame);
                }
            }
            event => {
                let Some(payload) = event.payload() else {
                    return;
                };
                if self.parts.is_empty() {
                    return self.chunk(seq, event, payload, frame);
                }
                let mut whole = std::mem::take(&mut self.parts);
                whole.extend_from_slice(payload);
                self.chunk(seq, event, &whole, frame);
            }
        }
    }

    fn chunk(&mut self, seq: Seq, event: &Event<'_>, payload: &[u8], frame: &mut Frame) {
        let is_new = seq > self.after;
        let Target::Choice {
            index,
            keep_index,
            part,
        } = self.target
        else {
            if is_new {
                frame.event(seq, event.name(), payload);
                self.last_id = seq;
            }
            return;
        };
        let choices = event.choices();
        if !choices.contains(index) || !(is_new || self.target.needs_all_events()) {
            return;
        }
        let selection = Selection {
            choice: index.0,
            keep_index,
            is_only_choice: choices.iter().all(|choice| choice == index),
            part,
            kind: self.kind,
            is_always_shown: false,
        };
        let cuts = self.view.cuts(seq, event, payload);
        let rewritten = cuts.apply(payload, selection, &mut self.calls);
        if !is_new {
            return;
        }
        match rewritten {
            Rewritten::LeftOut => return,
            Rewritten::Unchanged(data) => frame.event(seq, event.name(), data),
            Rewritten::Changed(data) => frame.event(seq, event.name(), &data),
            Rewritten::Pieces(before, index, after) => {
                let pieces = [before, index.as_bytes(), after];
                frame.event_of_pieces(seq, event.name(), pieces);
            }
        }
        self.last_id = seq;
    }

    fn choice_end(&mut self, seq: Seq, choice: ChoiceIndex, end: End, frame: &mut Frame) {
        match self.target {
            Target::Choice { index, .. } if index == choice => {
                let terminal = Terminal::of_choice(seq, end, self.error);
                self.write_terminal(terminal, frame);
            }
            Target::Choice { .. } | Target::Combined => {}
        }
    }

    /// Writes the last event of the view, unless it is the one after which the client has resumed: a request that comes once
    /// the log has the end gets 204. That of a lost producer is written, whatever it is: before it was lost, it may have shown
    /// another event with this number, which the log does not have.
    fn write_terminal(&mut self, terminal: Terminal, frame: &mut Frame) {
        let id = terminal.id();
        self.has_ended = true;
        let is_lost = matches!(terminal, Terminal::Error(_, End::ProducerLost));
        if id == self.after && frame.is_first() && !is_lost && !self.is_seal_of_lost(id) {
            return;
        }
        match terminal {
            Terminal::Done(_) => frame.event(id, None, terminal::DONE),
            Terminal::CancelledAndDone(_) => {
                // A client that resumes after it gets the end, and at worst this chunk again, which changes nothing.
                frame.event(id.previous(), None, self.cancelled_chunk().as_bytes());
                frame.event(id, None, terminal::DONE);
            }
            Terminal::Error(_, end) => {
                frame.event(id, None, self.error_data(end).as_bytes());
            }
            Terminal::UpstreamError(_) => self.write_upstream_error(id, frame),
        }
        self.last_id = id;
    }

    /// Whether this is the number of the seal of a lost producer. A choice with a finish reason ends there with `[DONE]`.
    fn is_seal_of_lost(&self, id: Seq) -> bool {
        let journal = self.view.journal();
        let is_lost = matches!(journal.end(), Some(Ok(end)) if end.end == End::ProducerLost);
        is_lost && id > journal.tail()
    }

    /// The event of an end that is an error. That of the whole stream has the text that its status has, and that of a choice
    /// the one that the server has reported for it.
    fn error_data(&self, end: End) -> String {
        if let (Target::Choice { index, .. }, End::ServerError) = (self.target, end) {
            let reported = self.view.reported_message(index);
            let error = terminal::error_with_message(end, reported.as_deref());
            return json!({ "error": error }).to_string();
        }
        let of_stream = match self.view.journal().end() {
            Some(Ok(last)) if self.target == Target::Combined && last.end == end => last.error,
            _ => None,
        };
        let error = of_stream.filter(|_| end == End::ServerError);
        let error = error.and_then(|text| serde_json::from_str::<Value>(&text).ok());
        match error {
            Some(mut error) => {
                if let Some(fields) = error.as_object_mut() {
                    fields.remove(upstream_error::MEMBER);
                }
                json!({ "error": error }).to_string()
            }
            None => terminal::error_event(end),
        }
    }

    /// Writes the upstream's error event, which may be a good deal before the end of the choice.
    fn write_upstream_error(&self, seq: Seq, frame: &mut Frame) {
        match self.view.whole_event(seq) {
            Some((name, data)) => frame.event(seq, name.as_deref(), &data),
            // The journal contains the event, because its number is from there.
            None => {
                let event = terminal::error_event(End::ServerError);
                frame.event(seq, None, event.as_bytes());
            }
        }
    }

    /// The last chunk of a choice that was cancelled before it appeared.
    fn cancelled_chunk(&self) -> String {
        let index = match self.target {
            Target::Choice {
                index, keep_index, ..
            } if keep_index => index,
            Target::Choice { .. } | Target::Combined => ChoiceIndex(0),
        };
        let metadata = unbraid_core::Metadata::default();
        let meta = self.view.meta();
        SyntheticChunks::new(&metadata, &meta.endpoint)
            .with_request(meta.created, meta.model.as_deref())
            .cancelled(index)
    }
}

impl fmt::Debug for ViewReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewReader")
            .field("target", &self.target)
            .field("last_id", &self.last_id.0)
            .field("has_ended", &self.has_ended)
            .finish_non_exhaustive()
    }
}
