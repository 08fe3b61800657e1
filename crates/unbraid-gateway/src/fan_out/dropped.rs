//! Choices that are cancelled while no answer of a fan-out has begun.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::Waker,
};

use futures::task::AtomicWaker;
use unbraid_core::ChoiceIndex;

/// The choices whose requests are to be dropped. The generation adds them, and the task that waits for the first answer drops
/// the requests.
#[derive(Debug, Default)]
pub(crate) struct DroppedChoices {
    choices: Mutex<BTreeSet<ChoiceIndex>>,
    waiter: AtomicWaker,
    has_singles: AtomicBool,
}

impl DroppedChoices {
    /// Adds a choice. Returns whether it has a request of its own, which is closed.
    pub(crate) fn insert(&self, choice: ChoiceIndex) -> bool {
        let choices = self.choices.lock();
        choices
            .unwrap_or_else(PoisonError::into_inner)
            .insert(choice);
        self.waiter.wake();
        self.has_singles.load(Ordering::Acquire)
    }

    /// Each choice has a request of its own.
    pub(super) fn set_singles(&self) {
        self.has_singles.store(true, Ordering::Release);
    }

    /// Whether a choice was added.
    pub(super) fn contains(&self, choice: ChoiceIndex) -> bool {
        let choices = self.choices.lock();
        choices
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&choice)
    }

    /// Wakes a task when a choice is added.
    pub(super) fn register(&self, waker: &Waker) {
        self.waiter.register(waker);
    }
}
