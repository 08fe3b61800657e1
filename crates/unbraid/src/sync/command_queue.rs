//! A command queue for a task that checks it on every poll. An atomic flag spares the lock while the queue is empty.
//!
//! The task registers its waker under the lock that guards the commands, so it misses none. A sender sets the flag before
//! it takes the waker out to wake it, so a task that was woken for a command also sees the flag.

use std::{
    sync::PoisonError,
    task::{Context, Poll, Waker},
};

use smallvec::SmallVec;

use super::{
    primitives::{AtomicBool, Mutex, MutexGuard, Ordering, clone_waker},
    wait_list::{drop_waker, wake},
};

#[derive(Debug)]
pub(crate) struct CommandQueue<C> {
    state: Mutex<State<C>>,
    /// Whether the queue may hold a command. The receiver reads it before it takes the lock. `Release` and `Acquire` pair
    /// a sender's store with the receiver's load; the commands themselves are ordered by the lock.
    has_commands: AtomicBool,
}

#[derive(Debug)]
struct State<C> {
    /// Most streams get one at most, when the last handle is dropped.
    commands: SmallVec<[C; 1]>,
    waker: Option<Waker>,
    /// Whether there is a task that will receive the commands.
    open: bool,
}

impl<C> Default for CommandQueue<C> {
    /// The queue is open before anybody polls it, so that a command sent while the task is being started is not lost.
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                commands: SmallVec::new(),
                waker: None,
                open: true,
            }),
            has_commands: AtomicBool::new(false),
        }
    }
}

impl<C: PartialEq> CommandQueue<C> {
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses all further commands and returns those that were not received.
    #[must_use]
    pub(crate) fn close(&self) -> SmallVec<[C; 1]> {
        let mut state = self.lock();
        // Under the lock that takes the commands, so each command is either returned here or refused by `send`.
        state.open = false;
        let commands = std::mem::take(&mut state.commands);
        let waker = state.waker.take();
        drop(state);
        drop_waker(waker); // it may run foreign code: not under the lock
        commands
    }

    /// Queues a command; returns false if the queue is closed. A command that is already queued is not queued again.
    #[must_use]
    pub(crate) fn send(&self, command: C) -> bool {
        let mut state = self.lock();
        if !state.open {
            return false;
        }
        // A program may cancel in a loop. Without duplicates the queue is bounded by the number of choices.
        if !state.commands.contains(&command) {
            state.commands.push(command);
        }
        self.has_commands.store(true, Ordering::Release);
        let waker = state.waker.take();
        drop(state);
        waker.iter().for_each(wake);
        drop_waker(waker);
        true
    }

    /// Receives the queued commands. `registered` is a clone of the waker that the task registered last. It lies with the task,
    /// which compares it on every poll.
    pub(crate) fn poll(&self, cx: &Context<'_>, registered: &mut Option<Waker>) -> Poll<Vec<C>> {
        let same_task = registered
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        // A command that is sent after this load finds the registered waker, and wakes this task again.
        if same_task && !self.has_commands.load(Ordering::Acquire) {
            return Poll::Pending;
        }
        // Cloned and replaced here, since both run foreign code.
        if !same_task {
            *registered = Some(clone_waker(cx.waker()));
        }
        let waker = clone_waker(cx.waker());
        // The flag is cleared under the lock: `send` sets it there,
        // so a command that arrives now is not hidden by the store below.
        let mut state = self.lock();
        if state.commands.is_empty() {
            self.has_commands.store(false, Ordering::Release);
            let replaced = state.waker.replace(waker);
            drop(state);
            drop(replaced); // it may run foreign code: not under the lock
            return Poll::Pending;
        }
        self.has_commands.store(false, Ordering::Release);
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        // The sender took the registered waker out, so the next poll has to register again. Its drop may run foreign
        // code: not under the lock.
        *registered = None;
        Poll::Ready(commands.into_vec())
    }
}
