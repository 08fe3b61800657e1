//! The log of one choice: a transcript that any number of cursors read, and a batch that the reader has appended to it.
//!
//! An appended batch is stored beside the transcript, and the next task that takes the lock applies it: a waiting consumer,
//! or the choice's actor if nobody waits, or else the reader itself. So a delta reaches its consumer with one wake-up, and no
//! cursor ever reads a transcript that lags behind the log.

use std::{
    ops::Deref,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;
use unbraid_core::{
    ChoiceEnd, ChoiceError, ChoiceIndex, CompletionKind, Config, Event, Position, Transcript,
    internal::{ChoiceMachine, Delta, DeltaKind, TextDelta, prefetch},
};

use super::{batch::Batch, shared_transcript::SharedTranscript};
use crate::sync::{
    shared::{ApplyPending, Deferred, Pending, Read, Shared},
    wait_list::{Interest, WakeList},
};

/// When a choice got its first delta and its end, measured from the start of the completion.
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
    /// The time until its first delta arrived.
    pub first_delta: Option<Duration>,
    /// The time until its end arrived.
    pub end: Option<Duration>,
}

/// What the cursors of a choice read, and everything that is needed to write it.
#[derive(Debug)]
// What a delta of text needs lies together, as in the reader.
#[repr(C)]
pub(crate) struct LogState {
    /// What has been appended and is not applied yet.
    batch: Batch,
    phase: Phase,
    machine: ChoiceMachine,
    pub(crate) transcript: SharedTranscript,
    /// The position of the last entry that was applied.
    position: Position,
    pub(crate) timing: Timing,
    started: Instant,
    /// When the pending batch arrived, if the timing will need it. Reading the clock for each text batch would cost more
    /// than the batch.
    arrived: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The reader may append more.
    Open,
    /// The reader has appended everything.
    Complete,
    /// The choice has its end, and further batches are dropped.
    Sealed {
        /// Whether a panic of the choice's machine sealed it.
        panicked: bool,
    },
}

impl LogState {
    /// How the choice's streams end: `None` while it is open, otherwise the error that they end with, if any.
    pub(crate) fn stream_end(&self) -> Option<Option<ChoiceError>> {
        let end = self.transcript.end()?;
        Some(if end.is_error() || self.transcript.is_discarded() {
            self.transcript.result().and_then(Result::err)
        } else {
            None
        })
    }

    /// The position of the choice's end, once it has one.
    pub(crate) fn end_position(&self) -> Option<Position> {
        let events = (0..self.transcript.event_count()).rev();
        let mut events = events.filter_map(|seq| self.transcript.event(seq));
        events
            .find(|event| matches!(event.event, Event::End(_)))
            .map(|end| end.position)
    }

    /// Classifies what a cursor found when it read every event before `seq`.
    pub(crate) fn read_until<R>(&self, seq: usize, found: R) -> Read<R> {
        if seq >= self.transcript.event_count() && self.transcript.end().is_none() {
            Read::CaughtUp(found)
        } else {
            Read::Partial(found)
        }
    }

    /// Applies a delta that nothing precedes.
    fn apply_first(&mut self, delta: &TextDelta<'_>, position: Position) -> FirstDelta {
        if !self.batch.is_empty() || !delta.extras.is_empty() {
            return FirstDelta::NeedsBatch;
        }
        if self.transcript.is_copied_by_a_write() {
            return FirstDelta::WouldCopy;
        }
        self.transcript.prefetch();
        let changes = self.changes_of_text(delta.text_kind, delta.role);
        self.write(position, |machine, transcript| {
            #[cfg(test)]
            super::batch::before_apply(delta.text);
            machine.apply(Delta::Text(delta), position, transcript);
        });
        // After a panic of the machine the choice has its end.
        let ended = self.transcript.end().is_some();
        FirstDelta::Applied(if ended { Interest::ALL } else { changes })
    }

    /// Stores a batch, and returns what it will change.
    fn accept(&mut self, batch: &mut Batch) -> Interest {
        if batch.is_empty() {
            return Interest::NONE;
        }
        if let Phase::Sealed { .. } = self.phase {
            *batch = Batch::default(); // the choice was lost: it has its end already
            return Interest::ALL;
        }
        // Text after the first delta changes no timing, so it may join the pending batch. Otherwise that is applied first,
        // because one time of arrival is kept for the whole batch.
        if self.timing.first_delta.is_none() || !batch.is_text() || self.batch.is_large() {
            self.apply_pending(); // the pending batch arrived at another time
            self.arrived = Some(Instant::now());
        }
        // Before the batch is appended, which leaves an empty one in its place.
        let changes = self.changes_of(batch);
        self.batch.append(batch);
        changes
    }

    /// What a batch will change: one text if it only continues that, otherwise anything.
    ///
    /// Pending batches need no check: a batch that only continues one text does not change what the next one is, and any other has already
    /// notified every waiter that has not read it.
    fn changes_of(&self, batch: &Batch) -> Interest {
        let single = batch.single_text();
        single.map_or(Interest::ALL, |(kind, role)| {
            self.changes_of_text(kind, role)
        })
    }

    /// What a piece of text changes.
    fn changes_of_text(&self, kind: DeltaKind, role: Option<&str>) -> Interest {
        if !self.machine.only_continues(kind, role, &self.transcript) {
            return Interest::ALL;
        }
        match kind {
            DeltaKind::Content | DeltaKind::Reasoning | DeltaKind::Refusal => Interest::TEXT,
            DeltaKind::Arguments(_) => Interest::CALLS,
        }
    }

    fn is_open(&self) -> bool {
        self.phase == Phase::Open
    }

    fn has_panicked(&self) -> bool {
        self.phase == Phase::Sealed { panicked: true }
    }

    /// A sealed log stays sealed: its machine may have panicked before the reader was done.
    fn complete(&mut self) {
        if self.phase == Phase::Open {
            self.phase = Phase::Complete;
        }
    }

    /// Refuses further batches, and ends the choice as lost if it has no other end.
    fn seal(&mut self) {
        self.seal_after(false);
    }

    fn seal_after(&mut self, panicked: bool) {
        let mut panicked = panicked || self.has_panicked();
        // Only a panic leaves anything in it. Half of that may have been applied, so it is not tried again.
        self.batch = Batch::default();
        if self.transcript.end().is_none() {
            self.arrived = Some(Instant::now());
            let Self {
                machine,
                transcript,
                position,
                ..
            } = self;
            // A machine that has panicked may panic again, or may believe that it has ended. `lose` ends the transcript in
            // any case, so that no waiter is left hanging.
            let finish =
                AssertUnwindSafe(|| machine.finish(ChoiceEnd::Lost, *position, transcript));
            panicked |= catch_unwind(finish).is_err();
            self.transcript.lose(self.position);
            self.record_timing();
        }
        self.phase = Phase::Sealed { panicked };
    }

    /// Applies one piece of work. A panic ends the choice.
    fn write(
        &mut self,
        position: Position,
        work: impl FnOnce(&mut ChoiceMachine, &mut Transcript),
    ) {
        if let Phase::Sealed { .. } = self.phase {
            return; // the choice was lost: it has its end already
        }
        let Self {
            transcript,
            machine,
            ..
        } = self;
        self.position = position;
        if catch_unwind(AssertUnwindSafe(|| work(machine, transcript))).is_err() {
            self.seal_after(true);
        }
        // The clock is read only if the timing needs it, as in `accept`.
        if self.timing.first_delta.is_none() || self.transcript.end().is_some() {
            self.arrived = Some(Instant::now());
            self.record_timing();
        }
    }

    fn apply_batch(&mut self) {
        let Self {
            transcript,
            machine,
            batch,
            position,
            ..
        } = self;
        // Before the batch is applied: if that panics, the choice ends after everything that had arrived for it.
        *position = batch.last_position().unwrap_or(*position);
        // A panic ends this choice, and not the task of the consumer that happened to apply the batch.
        let applied = catch_unwind(AssertUnwindSafe(|| batch.apply(machine, transcript)));
        if applied.is_err() {
            self.seal_after(true);
        }
        self.record_timing();
    }

    fn record_timing(&mut self) {
        let ended = self.transcript.end().is_some();
        if self.timing.first_delta.is_some() && !ended {
            return; // nothing to record: this is nearly always so
        }
        // From the arrival and not from now: a batch may wait for its consumer, which is not the server's delay.
        let elapsed = self.arrived.map(|arrived| arrived - self.started);
        // Event 0 is the start: the first delta is the second event, unless that is already the end.
        if self.timing.first_delta.is_none()
            && self.transcript.event_count() > 1 + usize::from(ended)
        {
            self.timing.first_delta = elapsed;
        }
        if self.timing.end.is_none() && ended {
            self.timing.end = elapsed;
        }
    }
}

impl ApplyPending for LogState {
    #[inline]
    fn pending(&self) -> Pending {
        if !self.batch.is_empty() {
            Pending::Work
        } else if self.is_open() {
            Pending::Nothing
        } else {
            Pending::End
        }
    }

    #[inline]
    fn apply_pending(&mut self) {
        if !self.batch.is_empty() {
            self.apply_batch();
        }
    }
}

/// What became of the first delta of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FirstDelta {
    /// It was applied, and changed this.
    Applied(Interest),
    /// It has to be part of a batch: another one precedes it, or it is more than a piece of text.
    NeedsBatch,
    /// The same, because a snapshot lives: the next write copies the whole transcript.
    WouldCopy,
}

/// The log of a choice; a clone is the same log.
///
/// The index is kept outside of the lock. The lock may be held for as long as it takes to apply a large update, and a
/// search for a choice by its index must not wait for that.
#[derive(Debug, Clone)]
pub(crate) struct ChoiceLog {
    index: ChoiceIndex,
    state: Arc<Shared<LogState>>,
}

impl Deref for ChoiceLog {
    type Target = Arc<Shared<LogState>>;

    fn deref(&self) -> &Arc<Shared<LogState>> {
        &self.state
    }
}

impl ChoiceLog {
    pub(crate) fn new(
        index: ChoiceIndex,
        kind: CompletionKind,
        config: &Arc<Config>,
        started: Instant,
    ) -> Self {
        let state = LogState {
            batch: Batch::default(),
            phase: Phase::Open,
            machine: ChoiceMachine::new(Arc::clone(config)),
            transcript: SharedTranscript::new(Transcript::new(index, kind)),
            position: Position::default(),
            timing: Timing::default(),
            started,
            arrived: None,
        };
        Self {
            index,
            state: Arc::new(Shared::new(state)),
        }
    }

    /// What has arrived of the choice, to be read without the lock. A write meanwhile copies it.
    pub(crate) fn snapshot(&self) -> Arc<Transcript> {
        self.state.read_mut(|state| state.transcript.snapshot())
    }

    /// Loads the start of the log, although it may be locked.
    #[inline]
    pub(crate) fn prefetch(&self) {
        prefetch(Arc::strong_count(&self.state) as u64);
    }

    /// The index of the choice within the completion. It takes no lock.
    pub(crate) fn index(&self) -> ChoiceIndex {
        self.index
    }

    /// Applies a delta of a choice that is not announced yet. Its text is not copied into a batch first.
    pub(crate) fn apply_delta(&self, delta: Delta<'_>, position: Position) {
        self.write(position, |machine, transcript| {
            #[cfg(test)]
            super::batch::before_apply(match delta {
                Delta::Text(delta) => delta.text,
                Delta::Update(update) => update.content.as_ref().map_or("", |text| &text.text),
            });
            machine.apply(delta, position, transcript);
        });
    }

    /// Applies work of a choice that is not announced yet, so that nobody waits for it. A panic ends the choice.
    pub(crate) fn write(
        &self,
        position: Position,
        work: impl FnOnce(&mut ChoiceMachine, &mut Transcript),
    ) {
        self.change_silently(|state| state.write(position, work));
    }

    /// Applies a delta without waking anyone, if that takes little time. The caller passes what it changes to the next
    /// [`append`](Self::append).
    #[inline]
    pub(crate) fn apply_first(&self, delta: &TextDelta<'_>, position: Position) -> FirstDelta {
        self.change_silently(|state| state.apply_first(delta, position))
    }

    /// Appends a batch, and leaves an empty one in its place. `applied` is what was changed since the last call.
    pub(crate) fn append(
        &self,
        applied: Interest,
        batch: &mut Batch,
        wake_list: &mut WakeList,
    ) -> Deferred {
        self.defer(wake_list, |state| applied.and(state.accept(batch)))
    }

    /// As [`append`](Self::append), and applies the batch before anyone is woken. Meanwhile readers wait for the lock.
    pub(crate) fn append_and_apply(
        &self,
        applied: Interest,
        batch: &mut Batch,
        wake_list: &mut WakeList,
    ) -> Deferred {
        self.defer(wake_list, |state| {
            let changes = state.accept(batch);
            state.apply_pending();
            applied.and(changes)
        })
    }

    /// Applies batches as the log's owner, until nothing more will be appended.
    pub(crate) async fn apply_until_complete(&self) {
        self.drive(|state| !state.is_open()).await;
    }

    /// Ends the choice as lost if it has no other end.
    pub(crate) fn seal(&self) {
        // `modify` wakes every waiter, and nearly every log has its end by now.
        if self.read(|state| state.transcript.end().is_none()) {
            self.modify(LogState::seal);
        }
    }

    /// As [`seal`](Self::seal), by the log's owner, which reads it no more. Returns whether the choice's machine panicked.
    pub(crate) fn seal_by_owner(&self) -> bool {
        self.detach_owner(LogState::seal);
        self.read(LogState::has_panicked)
    }

    /// Notes that the reader has appended everything.
    pub(crate) fn complete(&self) {
        self.notify_owner(LogState::complete);
    }

    /// Makes the choice's machine believe that it has ended, as a bug would.
    #[cfg(test)]
    pub(crate) fn finish_machine_only(&self) {
        self.modify(|state| {
            let mut other = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
            let end = ChoiceEnd::Interrupted;
            state.machine.finish(end, Position::default(), &mut other);
        });
    }
}
