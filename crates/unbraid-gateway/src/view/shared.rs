//! What all readers of a stream share: its journal, its choices, the cuts of its chunks, and the latest frames.

mod cache;
mod lost;

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use cache::{CutCache, FrameCache};
pub(super) use cache::{LastFrame, SharedFrame};
use serde_json::Value;
use tokio::sync::OnceCell;
use unbraid_core::{ChoiceIndex, Config};
use unbraid_log::{End, Event, Follower, Journal, Meta, Record, Seq, StreamEnd};

use super::{
    Start, Target, ViewError, ViewReader, ViewRequest, assemble,
    chunk::Cuts,
    reader::FRAME_BYTES,
    terminal::Terminal,
    track::{ChoiceTrack, Track},
};
use crate::{decoding::Decoding, limits::MAX_REFUSAL_BYTES};

/// One stream as this gateway reads it. There is one for each stream; all its readers share it.
pub(crate) struct StreamView {
    journal: Journal,
    meta: Arc<Meta>,
    track: Mutex<Track>,
    /// Set once a lost stream was decoded for the ends of its choices.
    ends: OnceCell<()>,
    decoding: Decoding,
    cuts: Mutex<CutCache>,
    frames: Mutex<FrameCache>,
    /// Fills the journal, if another gateway produces the stream.
    follower: Option<Follower>,
}

/// The result of opening a view.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "it is moved into a response at once, and a box would cost an allocation for each reader"
)]
pub(crate) enum Opened {
    /// 200: the events.
    Events(ViewReader),
    /// 204: the cursor is that of the view's last event.
    Complete,
}

/// The state of a stream, for its status object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamStatus {
    /// The number of the last event; that of the combined view's last one once it has ended.
    pub(crate) seq: Seq,
    pub(crate) end: Option<StreamEnd>,
    /// All choices that were requested or have appeared, by index.
    pub(crate) choices: Vec<ChoiceStatus>,
}

/// The state of one choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceStatus {
    pub(crate) index: ChoiceIndex,
    /// The number of its last event; 0 if it has not appeared. Once it has ended, that of its view's last event.
    pub(crate) seq: Seq,
    /// How it ended. The choices that are open at the end of the stream end with it.
    pub(crate) end: Option<End>,
    pub(crate) finish_reason: Option<String>,
}

impl StreamView {
    /// The view of a journal. The task that fills the journal keeps it in step with the log.
    pub(crate) fn new(journal: Journal, meta: Arc<Meta>, decoding: Decoding) -> Arc<Self> {
        Self::with_journal(journal, None, meta, decoding)
    }

    /// The view of a stream of another gateway. The copy ends with the view.
    pub(crate) fn with_follower(
        follower: Follower,
        meta: Arc<Meta>,
        decoding: Decoding,
    ) -> Arc<Self> {
        let journal = follower.journal().clone();
        Self::with_journal(journal, Some(follower), meta, decoding)
    }

    /// After how long without a reader another gateway cancels the stream, if it does.
    pub(crate) fn orphaned_elsewhere_after(&self) -> Option<Duration> {
        let is_running = self.follower.is_some() && self.journal.end().is_none();
        self.meta.orphan_after.filter(|_| is_running)
    }

    fn with_journal(
        journal: Journal,
        follower: Option<Follower>,
        meta: Arc<Meta>,
        decoding: Decoding,
    ) -> Arc<Self> {
        Arc::new(Self {
            journal,
            meta,
            track: Mutex::default(),
            ends: OnceCell::new(),
            decoding,
            cuts: Mutex::default(),
            frames: Mutex::default(),
            follower,
        })
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Whether another gateway produces the stream.
    pub(crate) fn is_followed(&self) -> bool {
        self.follower.is_some()
    }

    pub(crate) fn meta(&self) -> &Arc<Meta> {
        &self.meta
    }

    /// How the core should read this stream: of a request for one choice, every index is read as 0 (E12).
    ///
    /// The views follow what the producer has logged, whether or not it uses this.
    pub(crate) fn core_config(meta: &Meta) -> Config {
        Config::default().with_expect_choices(meta.n)
    }

    /// Whether every index in these events is read as choice 0, because the producer has done so.
    pub(super) fn folds_choices<'e>(&self, mut events: impl Iterator<Item = Event<'e>>) -> bool {
        self.meta.n == Some(1)
            && events.all(|event| event.choices().iter().all(|choice| choice.0 == 0))
    }

    /// Whether a choice exists or is expected.
    fn has_choice(&self, track: &Track, index: ChoiceIndex) -> bool {
        index.0 < self.meta.n.unwrap_or(1) || track.choices.contains_key(&index)
    }

    /// How a choice has ended, if it has. Of a lost stream it is known after [`find_ends`](Self::find_ends).
    pub(crate) fn choice_end(&self, index: ChoiceIndex) -> Result<Option<End>, ViewError> {
        let track = self.track();
        if !self.has_choice(&track, index) {
            return Err(ViewError::ChoiceNotFound);
        }
        Ok(track.choice_end(index))
    }

    fn check(&self, track: &Track, target: Target) -> Result<(), ViewError> {
        match target {
            Target::Choice { index, .. } if !self.has_choice(track, index) => {
                Err(ViewError::ChoiceNotFound)
            }
            Target::Choice { .. } | Target::Combined => Ok(()),
        }
    }

    /// Opens a view as events.
    ///
    /// A snapshot decodes all events, which takes milliseconds for an ordinary answer.
    pub(crate) fn open(self: &Arc<Self>, request: &ViewRequest) -> Result<Opened, ViewError> {
        let target = request.target;
        let track = self.track();
        self.check(&track, target)?;
        let last = track.terminal_id(target);
        let tail = track.tail;
        let error = track.error;
        drop(track);
        // A first event that is not of the log precedes the terminal event, which may be an error that came before the end of
        // the choice.
        let position = last
            .or(error)
            .map_or(tail, |last| last.previous().min(tail));
        let (cursor, first) = match (request.start, last) {
            (Start::After(cursor), Some(last)) if cursor == last => {
                return Ok(Opened::Complete);
            }
            // Nothing but the terminal event is left.
            (Start::After(cursor), Some(last)) if cursor > last => (last.previous(), None),
            (Start::After(cursor), _) => (cursor, None),
            (Start::Beginning, _) => (Seq::START, None),
            (Start::Tail, _) => (position, Some(assemble::position(self, position))),
            (Start::Snapshot, _) => (position, Some(assemble::snapshot(self, target, position))),
        };
        let reader = ViewReader::new(Arc::clone(self), target, cursor, cursor.min(tail), error);
        Ok(Opened::Events(match first {
            Some(chunk) => reader.with_first_event(&chunk),
            None => reader,
        }))
    }

    /// The message so far: `chat.completion` or `text_completion`. `with_state` adds the field `unbraid`, which a GET has
    /// and the answer to a POST has not.
    ///
    /// It decodes all events, which takes milliseconds for an ordinary answer.
    pub(crate) fn json(&self, target: Target, with_state: bool) -> Result<String, ViewError> {
        let track = self.track();
        self.check(&track, target)?;
        let terminal = track.terminal(target);
        let seq = terminal.map_or(track.tail, |terminal| terminal.id());
        let (end, upto) = match target {
            Target::Combined => (track.end().map(|end| end.end), track.tail),
            // Its view ends with the choice, whatever the stream has after that.
            Target::Choice { index, .. } => (track.choice_end(index), seq.min(track.tail)),
        };
        drop(track);
        let state = with_state.then_some(assemble::State {
            seq,
            is_running: end.is_none(),
            end,
        });
        Ok(assemble::response(self, target, upto, state))
    }

    /// The data of the error event with which the upstream has ended the stream, if it did.
    pub(crate) fn upstream_error(&self) -> Option<Vec<u8>> {
        let seq = self.track().error?;
        self.whole_event(seq).map(|(_, data)| data)
    }

    /// Whether the upstream's own error was the last event of its views, and the end of the stream is yet to be logged.
    pub(crate) fn awaits_end(&self) -> bool {
        let track = self.track();
        track.error.is_some() && !track.is_sealed()
    }

    /// The event with this number, whose data may be split over several records: its name and its data.
    pub(super) fn whole_event(&self, seq: Seq) -> Option<(Option<String>, Vec<u8>)> {
        let mut reader = self.journal.reader(seq.previous());
        let from = reader.next_seq();
        let mut data = Vec::new();
        while let Ok(batch) = reader.read(FRAME_BYTES)
            && !batch.records.is_empty()
        {
            let events = batch.records.iter().flat_map(Record::events);
            for (number, event) in events.skip_while(|(number, _)| *number < from) {
                data.extend_from_slice(event.payload().unwrap_or_default());
                if number == seq {
                    return Some((event.name().map(str::to_owned), data));
                }
            }
        }
        None
    }

    /// The message with which a server has ended a choice: that of the chunk before its end.
    pub(super) fn reported_message(&self, index: ChoiceIndex) -> Option<String> {
        let chunk = self.track().choices.get(&index)?.ended_by?;
        let (_, data) = self.whole_event(chunk)?;
        if data.len() > 2 * MAX_REFUSAL_BYTES {
            return None;
        }
        let chunk: Value = serde_json::from_slice(&data).ok()?;
        let entries = chunk.get("choices")?.as_array()?;
        let own =
            |entry: &&Value| entry.get("index").and_then(Value::as_u64) == Some(index.0.into());
        let message = entries
            .iter()
            .find(own)?
            .get("error")?
            .get("message")?
            .as_str()?;
        Some(message.to_owned())
    }

    /// Whether cancels have left no choice open. Its producer then closes the upstream.
    pub(crate) fn is_closed_by_cancels(&self) -> bool {
        let track = self.track();
        let mut ends = track.choices.values().map(|choice| choice.end);
        let any_cancelled = ends
            .clone()
            .any(|end| matches!(end, Some((_, End::Cancelled))));
        let expected = self.meta.n.unwrap_or(1);
        any_cancelled
            && ends.all(|end| end.is_some())
            && (0..expected).all(|index| track.choices.contains_key(&ChoiceIndex(index)))
    }

    /// The usage so far, as JSON text.
    pub(crate) fn usage(&self) -> Option<String> {
        let track = self.track();
        let tail = track.tail;
        if let Some(usage) = track.end().and_then(|end| end.usage.clone()) {
            return Some(usage);
        }
        drop(track);
        assemble::usage(self, tail)
    }

    /// The state, with at most `max_expected` choices that have not appeared: a log of others is not trusted with the size of
    /// a list.
    pub(crate) fn status(&self, max_expected: u32) -> StreamStatus {
        let track = self.track();
        let mut indices: Vec<ChoiceIndex> = track.choices.keys().copied().collect();
        let expected = self.meta.n.unwrap_or(1).min(max_expected);
        indices.extend((0..expected).map(ChoiceIndex));
        indices.sort_unstable();
        indices.dedup();
        let choices = indices.into_iter().map(|index| {
            let choice = track.choices.get(&index);
            let view = Target::Choice {
                index,
                keep_index: false,
                part: None,
            };
            let last = |known: &ChoiceTrack| track.terminal(view).map_or(known.seq, Terminal::id);
            ChoiceStatus {
                index,
                seq: choice.map_or(Seq::START, last),
                end: track.choice_end(index),
                finish_reason: choice.and_then(|choice| choice.finish_reason.clone()),
            }
        });
        let choices = choices.collect();
        let terminal = track.terminal(Target::Combined);
        let seq = terminal.map_or(track.tail, Terminal::id);
        StreamStatus {
            seq,
            end: track.end().cloned(),
            choices,
        }
    }

    /// The choices, after everything in the journal.
    pub(super) fn track(&self) -> MutexGuard<'_, Track> {
        let mut track = lock(&self.track);
        if !track.is_sealed() {
            // The end first: then no event can follow the records that are read after it.
            let end = self.journal.end().and_then(Result::ok);
            let records = self.journal.records(track.tail);
            track.read(&records);
            if let Some(end) = end {
                track.seal(end);
            }
        }
        track
    }

    /// The records up to a number, from the first one.
    pub(super) fn records(&self) -> Vec<Record> {
        self.journal.records(Seq::START)
    }

    /// Where a chunk has to be cut. It is found once for all readers.
    pub(super) fn cuts(&self, seq: Seq, event: &Event<'_>, payload: &[u8]) -> Cuts {
        let fold = self.folds_choices(std::iter::once(*event));
        lock(&self.cuts).get_or_find(seq, || Cuts::find(payload, fold))
    }

    /// The frames that the readers of one view share.
    pub(super) fn frames(&self, target: Target) -> Arc<SharedFrame> {
        lock(&self.frames).of(target)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each value is valid after every single change of it.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for StreamView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamView")
            .field("journal", &self.journal)
            .finish_non_exhaustive()
    }
}
