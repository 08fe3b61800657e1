//! The route to one choice: what has arrived for it since the last delivery, and who owns its log.

use tokio::task::JoinHandle;
use unbraid_core::{ChoiceIndex, Position, internal::Delta};

use crate::{
    state::{
        batch::Batch,
        choice_log::{ChoiceLog, FirstDelta},
    },
    sync::{
        shared::Deferred,
        wait_list::{Interest, WakeList},
    },
};

/// The route to one choice.
#[derive(Debug)]
pub(super) struct ChoiceRoute {
    /// The index within the source. That within the completion is the log's.
    pub(super) source_index: ChoiceIndex,
    pub(super) log: ChoiceLog,
    pub(super) stage: Stage,
    pub(super) end: RouteEnd,
    /// What the delta that was applied since the last delivery has changed.
    pub(super) applied: Interest,
    /// What has arrived since the last delivery.
    pub(super) batch: Batch,
    /// The wakers of the last delivery, which the next one most likely wakes again.
    pub(super) wake_list: WakeList,
    /// How many batches in succession found no waiter, and no actor either. A batch that would copy the transcript counts as
    /// [`UNATTENDED`] of them.
    pub(super) unattended: u8,
    pub(super) actor: Option<JoinHandle<()>>,
}

/// How many batches of a choice the reader applies itself, one after the other, before the choice gets an actor
/// (docs/design/023). Starting one costs as much as applying some ten deltas, and it needs 6 kB.
const UNATTENDED: u8 = 4;

/// How far a choice is known outside of the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Handles cannot find the choice. Nobody else reads its log, so what arrives is applied at once.
    New,
    /// The reader owns the log. The choice's actor is started once [`UNATTENDED`] batches in succession have found nobody who would
    /// apply them, and the reader has an actor itself.
    Announced,
    /// The choice actor owns the log, unless it did not start.
    Started,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteEnd {
    Open,
    /// The choice has its end. A choice that was cut by its own limit is among these: its error is not the stream's.
    Ended,
    /// The choice ended with an error that the stream reports.
    Failed,
    /// The caller cancelled the choice.
    Cancelled,
}

impl ChoiceRoute {
    /// The route to a choice that is not announced yet.
    pub(super) fn new(source_index: ChoiceIndex, log: ChoiceLog) -> Self {
        Self {
            source_index,
            log,
            stage: Stage::New,
            end: RouteEnd::Open,
            applied: Interest::NONE,
            batch: Batch::default(),
            wake_list: WakeList::default(),
            unattended: 0,
            actor: None,
        }
    }

    /// Whether anything has arrived since the last delivery.
    #[inline]
    pub(super) fn has_work(&self) -> bool {
        self.applied != Interest::NONE || !self.batch.is_empty()
    }

    /// The first delta of a read is applied at once. Many servers send one event at a time, and then nothing is copied into a
    /// batch, nor out of it.
    #[inline]
    pub(super) fn delta(&mut self, delta: Delta<'_>, position: Position) {
        if let Delta::Text(text) = delta
            && !self.has_work()
        {
            match self.log.apply_first(text, position) {
                FirstDelta::Applied(changed) => {
                    self.applied = changed;
                    return;
                }
                // If nobody takes the batch, it is the last copy that the reader makes.
                FirstDelta::WouldCopy => self.unattended = UNATTENDED,
                FirstDelta::NeedsBatch => {}
            }
        }
        self.batch.push_delta(delta, position);
    }

    pub(super) fn deliver(
        &mut self,
        append: impl FnOnce(&ChoiceLog, Interest, &mut Batch, &mut WakeList) -> Deferred,
    ) {
        let applied = std::mem::replace(&mut self.applied, Interest::NONE);
        self.unattended = match append(&self.log, applied, &mut self.batch, &mut self.wake_list) {
            // A delta that was applied at once says nothing about the consumers.
            Deferred::Nothing => self.unattended,
            Deferred::ToNobody => self.unattended.saturating_add(1),
            Deferred::ToWaiter | Deferred::ToOwner => 0,
        };
        if self.end != RouteEnd::Open {
            // Nobody waits for more of the choice, and a kept waker would outlive a cursor that is dropped now.
            self.wake_list = WakeList::default();
        }
    }

    /// Whether nobody keeps up with what arrives, so that an actor has to.
    pub(super) fn needs_actor(&self) -> bool {
        self.unattended >= UNATTENDED && self.end == RouteEnd::Open
    }
}
