//! The log of one choice: its transcript, read by any number of cursors, and what the reader has left to be added to it.
//!
//! The choice's actor owns it. What comes for the choice is put beside the transcript and applied by whoever looks
//! first: by a consumer that waited for it, or by the actor where none does. So a delta passes from the reader to its
//! consumer with one wake, and no reader sees a transcript that lags.

use std::{
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use unbraid_core::{
    ChoiceEnd, ChoiceError, ChoiceIndex, CompletionKind, Config, Position, Transcript,
    choice::ChoiceMachine, piece::DeltaKind,
};

use crate::{
    state::batch::Batch,
    state::completion::BoardWriter,
    state::shared_transcript::SharedTranscript,
    sync::shared::{Look, Settle, Watched},
    sync::wait_list::{Due, Topics},
};

/// When things happened to a choice, counted from the start of the completion.
///
/// # Examples
///
/// ```
/// let timing = unbraid::Timing::default();
/// assert_eq!(timing.first_delta, None);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timing {
    /// Until its first delta had come.
    pub first_delta: Option<Duration>,
    /// Until its end had.
    pub end: Option<Duration>,
}

/// What a choice's cursors read, and all that it takes to write it.
#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) transcript: SharedTranscript,
    pub(crate) timing: Timing,
    machine: ChoiceMachine,
    /// What has come and is not applied yet.
    batch: Batch,
    /// Where the last step that was applied stands.
    place: Position,
    started: Instant,
    /// When the batch was last added to, if that will be told.
    came: Option<Instant>,
    /// Nothing more will come.
    closed: bool,
    /// Nothing more is taken.
    sealed: bool,
    panicked: bool,
}

impl Record {
    /// How the choice's streams end: `None` while it is open, else with or without an error.
    pub(crate) fn over(&self) -> Option<Option<ChoiceError>> {
        let end = self.transcript.end()?;
        Some(if end.is_error() || self.transcript.is_discarded() {
            self.transcript.result().and_then(Result::err)
        } else {
            None
        })
    }

    /// What was found by a look at all events in front of `seq`.
    pub(crate) fn found<R>(&self, seq: usize, found: R) -> Look<R> {
        if seq >= self.transcript.event_count() && self.transcript.end().is_none() {
            Look::All(found)
        } else {
            Look::Some(found)
        }
    }

    /// Takes a batch, and says what it will change.
    fn take(&mut self, batch: &mut Batch) -> Topics {
        if self.sealed {
            *batch = Batch::default(); // the choice was lost: it has its end already
            return Topics::ALL;
        }
        if self.timing.first_delta.is_none() || !batch.is_text() || self.batch.is_large() {
            self.settle(); // what came before has another time
            self.came = Some(Instant::now());
        }
        let topics = self.topics(batch);
        self.batch.append(batch);
        topics
    }

    /// What a batch will change: one text, where it has nothing but plain pieces of that, or else anything.
    ///
    /// What was put off before it makes no difference: plain pieces leave the next ones plain, and of all else everybody
    /// was told who has not looked since.
    fn topics(&self, batch: &Batch) -> Topics {
        let plain = |(lane, role): &_| self.machine.is_plain(*lane, *role, &self.transcript);
        match batch.only().filter(plain) {
            Some((DeltaKind::Content | DeltaKind::Reasoning | DeltaKind::Refusal, _)) => {
                Topics::TEXTS
            }
            Some((DeltaKind::Arguments(_), _)) => Topics::CALLS,
            None => Topics::ALL,
        }
    }

    /// Ends the choice as lost if it has no other end.
    fn seal(&mut self) {
        self.sealed = true;
        self.batch = Batch::default();
        if self.transcript.end().is_none() {
            self.came = Some(Instant::now());
            let Self {
                machine,
                transcript,
                place,
                ..
            } = self;
            // A machine that has panicked may do so again, or take itself for ended: nobody may wait for it.
            let ended = AssertUnwindSafe(|| machine.finish(ChoiceEnd::Lost, *place, transcript));
            self.panicked |= catch_unwind(ended).is_err();
            self.transcript.lose(self.place);
            self.stamp();
        }
    }

    fn stamp(&mut self) {
        if self.timing.first_delta.is_some() && self.transcript.end().is_none() {
            return; // nothing new: that is nearly always so
        }
        let since = self.came.map(|came| came - self.started);
        // Event 0 is the start: the first delta is the second event, unless that is the end already.
        let ended = usize::from(self.transcript.end().is_some());
        if self.timing.first_delta.is_none() && self.transcript.event_count() > 1 + ended {
            self.timing.first_delta = since;
        }
        if self.timing.end.is_none() && self.transcript.end().is_some() {
            self.timing.end = since;
        }
    }
}

impl Settle for Record {
    #[inline]
    fn settle(&mut self) {
        if !self.batch.is_empty() {
            self.apply();
        }
    }
}

impl Record {
    fn apply(&mut self) {
        let Self {
            transcript,
            machine,
            batch,
            place,
            ..
        } = self;
        *place = batch.last_place().unwrap_or(*place);
        // A panic here ends this choice, and not the task of a consumer that happened to look.
        let applied = catch_unwind(AssertUnwindSafe(|| batch.apply(machine, transcript)));
        if applied.is_err() {
            self.panicked = true;
            self.seal();
        }
        self.stamp();
    }
}

/// The log of a choice; a clone is the same log.
///
/// What never changes is outside of the lock. That may be held for as long as a large update takes to be applied, and
/// whoever searches the choices for an index must not wait for one of them.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    index: ChoiceIndex,
    record: Arc<Watched<Record>>,
}

impl Deref for Log {
    type Target = Arc<Watched<Record>>;

    fn deref(&self) -> &Arc<Watched<Record>> {
        &self.record
    }
}

impl Log {
    pub(crate) fn of_choice(
        index: ChoiceIndex,
        shape: CompletionKind,
        options: &Config,
        started: Instant,
    ) -> Self {
        let record = Record {
            transcript: SharedTranscript::new(Transcript::new(index, shape)),
            timing: Timing::default(),
            machine: ChoiceMachine::new(options),
            batch: Batch::default(),
            place: Position::default(),
            started,
            came: None,
            closed: false,
            sealed: false,
            panicked: false,
        };
        Self {
            index,
            record: Arc::new(Watched::new(record)),
        }
    }

    /// The index of the choice within the completion. It takes no lock.
    pub(crate) fn index(&self) -> ChoiceIndex {
        self.index
    }

    /// Takes what has come for the choice, and leaves an empty batch in its place.
    pub(crate) fn give(&self, batch: &mut Batch, due: &mut Due) {
        self.put(due, |record| record.take(batch));
    }

    /// As [`give`](Self::give), and applies it before anybody is woken. Who looks meanwhile waits for the lock.
    pub(crate) fn give_applied(&self, batch: &mut Batch, due: &mut Due) {
        self.put(due, |record| {
            let topics = record.take(batch);
            record.settle();
            topics
        });
    }

    /// Ends the choice as lost if it has no other end.
    pub(crate) fn seal(&self) {
        if self.read(|record| record.transcript.end().is_none()) {
            self.change(Record::seal);
        }
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&self) {
        self.tell_owner(|record| record.closed = true);
    }
}

/// The one who answers for a log. Whatever becomes of it, nobody is left waiting: dropped, it seals the choice as lost.
///
/// It also holds the board open: dropped last, after the reader and all other choices, it closes the stream as lost. A board
/// that closed before would let a consumer of all events end before it has seen the end of this choice.
#[derive(Debug)]
pub(crate) struct Owner {
    log: Log,
    /// Dropped after the log is sealed.
    _board: Arc<BoardWriter>,
}

impl Owner {
    pub(crate) fn new(log: Log, board: Arc<BoardWriter>) -> Self {
        Self { log, _board: board }
    }

    /// Applies what has come so far.
    pub(crate) fn settle(&self) {
        self.log.read(|_| {});
    }

    /// Applies what nobody else does, until nothing more will come.
    pub(crate) async fn tend(&self) {
        self.log.tend(|record| record.closed || record.sealed).await;
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.log.retire(Record::seal);
        if self.log.read(|record| record.panicked) {
            tracing::error!("a choice was lost: its machine panicked"); // not under the lock: it runs foreign code
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::completion::{Board, Listing};

    #[tokio::test]
    async fn a_log_is_sealed_even_if_its_machine_takes_itself_for_ended() {
        let log = Log::of_choice(
            ChoiceIndex(0),
            CompletionKind::Chat,
            &Config::default(),
            Instant::now(),
        );
        let place = Position::default();
        log.change(|record| {
            let mut other = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
            record
                .machine
                .finish(ChoiceEnd::Interrupted, place, &mut other);
        });
        let board = Arc::new(Board::new(Listing::default()));
        let writer = Arc::new(BoardWriter::new(&board));
        let owner = Owner::new(log.clone(), Arc::clone(&writer));
        drop(writer);
        assert!(board.read(|listing| listing.closed.is_none()));
        drop(owner);
        assert!(board.read(|listing| listing.closed.is_some()));
        assert!(log.read(|record| matches!(record.transcript.end(), Some(ChoiceEnd::Lost))));
        assert!(log.read(|record| record.timing.end.is_some()));
    }
}
