//! Controls the readers of a completion: the commands that handles send, and the end when the last handle is dropped.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use ractor::ActorCell;
use smallvec::SmallVec;
use tokio::task::JoinHandle;
use unbraid_core::ChoiceIndex;

use crate::sync::command_queue::CommandQueue;

/// What a handle can ask of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    /// Cancels one choice.
    Cancel(ChoiceIndex),
    CancelAll,
    /// The last handle was dropped before the reader had started.
    Abandon,
    /// Cancels every choice but these, which are in ascending order, including choices that have not appeared yet.
    KeepOnly(Arc<[ChoiceIndex]>),
    /// Every handle is gone and every choice has ended: reads a bounded rest, so that the connection can be reused.
    Drain,
}

/// Controls one reader: its commands, and its task or actor in case that it must be ended.
#[derive(Debug, Default)]
pub(crate) struct ReaderControl {
    commands: CommandQueue<Command>,
    state: Mutex<ControlState>,
}

#[derive(Debug, Default)]
struct ControlState {
    lifecycle: Lifecycle,
    /// Whether every choice has ended, so that only the rest of the stream is missing.
    all_choices_ended: bool,
}

/// The reader's task and actor are known only while it runs: a handle that outlives the stream must not keep a dead mailbox
/// alive.
#[derive(Debug, Default)]
enum Lifecycle {
    #[default]
    Starting,
    /// The reader runs, and has no actor yet.
    Unsupervised(JoinHandle<()>),
    /// The actor owns the reader's task.
    Supervised(ActorCell),
    /// The reader is done. If it runs on another thread, it may be done before its start is recorded.
    Done,
}

impl ReaderControl {
    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the task of a reader that was started.
    pub(crate) fn set_task(&self, task: JoinHandle<()>) {
        self.advance(Lifecycle::Unsupervised(task));
    }

    /// Takes the task of the reader, for the actor to which it shall belong.
    pub(crate) fn take_task(&self) -> Option<JoinHandle<()>> {
        let mut state = self.lock();
        match std::mem::take(&mut state.lifecycle) {
            Lifecycle::Unsupervised(task) => Some(task),
            other => {
                state.lifecycle = other;
                None
            }
        }
    }

    /// Records the actor that owns the reader's task now.
    pub(crate) fn set_supervised(&self, actor: ActorCell) {
        self.advance(Lifecycle::Supervised(actor));
    }

    fn advance(&self, next: Lifecycle) {
        let mut state = self.lock();
        if matches!(state.lifecycle, Lifecycle::Starting) {
            state.lifecycle = next;
        }
    }

    /// Records that the reader is done or was never started, and refuses further commands.
    pub(crate) fn set_done(&self) {
        self.lock().lifecycle = Lifecycle::Done;
        // Closing the queue drops a waker, which may run foreign code: not under the lock.
        let unread = self.commands.close();
        if !unread.is_empty() {
            tracing::trace!(
                commands = unread.len(),
                "the stream closed before these commands were read"
            );
        }
    }

    pub(crate) fn set_all_choices_ended(&self, ended: bool) {
        self.lock().all_choices_ended = ended;
    }

    /// Sends a command to the reader. A refused command has nothing to do: when a reader is done, each of its choices has
    /// its end.
    pub(crate) fn send(&self, command: Command) {
        if !self.commands.send(command) {
            tracing::trace!("a command arrived after the stream had closed");
        }
    }

    /// Ends the reader, because the last handle was dropped.
    fn abandon(&self) {
        let mut state = self.lock();
        if state.all_choices_ended {
            drop(state);
            return self.send(Command::Drain);
        }
        let lifecycle = std::mem::replace(&mut state.lifecycle, Lifecycle::Done);
        drop(state);
        match lifecycle {
            Lifecycle::Unsupervised(task) => task.abort(),
            Lifecycle::Supervised(actor) => actor.kill(),
            // The reader's task or actor has not been recorded yet. The reader sees this command before it reads on.
            Lifecycle::Starting | Lifecycle::Done => self.send(Command::Abandon),
        }
    }

    /// Receives the queued commands. `registered` is the waker that the reader registered last.
    pub(crate) fn poll(
        &self,
        cx: &Context<'_>,
        registered: &mut Option<Waker>,
    ) -> Poll<Vec<Command>> {
        self.commands.poll(cx, registered)
    }

    /// Ends the reader from outside, as a kill of its actor or a shutdown of its runtime does.
    #[cfg(test)]
    pub(crate) fn kill_reader(&self) {
        match &self.lock().lifecycle {
            Lifecycle::Unsupervised(task) => task.abort(),
            Lifecycle::Supervised(actor) => actor.kill(),
            other => panic!("no reader runs: {other:?}"),
        }
    }

    /// The reader's actor, if it has one.
    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<ActorCell> {
        match &self.lock().lifecycle {
            Lifecycle::Supervised(actor) => Some(actor.clone()),
            Lifecycle::Starting | Lifecycle::Unsupervised(_) | Lifecycle::Done => None,
        }
    }
}

/// The reader's end of its [`ReaderControl`]. However the reader ends, dropping this refuses further commands.
#[derive(Debug)]
pub(crate) struct CommandReceiver(Arc<ReaderControl>);

impl CommandReceiver {
    pub(crate) fn new(control: &Arc<ReaderControl>) -> Self {
        Self(Arc::clone(control))
    }
}

impl Deref for CommandReceiver {
    type Target = ReaderControl;

    fn deref(&self) -> &ReaderControl {
        &self.0
    }
}

impl Drop for CommandReceiver {
    fn drop(&mut self) {
        self.0.set_done();
    }
}

/// The controls of all readers of a completion, one per source.
#[derive(Debug, Default)]
pub(crate) struct ReaderControls(Mutex<Controls>);

#[derive(Debug, Default)]
struct Controls {
    readers: SmallVec<[Arc<ReaderControl>; 1]>,
    /// Whether a command, or the drop of the last handle, has ended the completion for all readers. No reader is added
    /// then.
    ended: bool,
}

impl ReaderControls {
    fn lock(&self) -> MutexGuard<'_, Controls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the control of a further reader; `None` if the completion has ended. From here on the reader receives every
    /// command that is sent to all, even if it has not started yet.
    pub(crate) fn add(&self) -> Option<Arc<ReaderControl>> {
        let mut controls = self.lock();
        if controls.ended {
            return None;
        }
        let control = Arc::new(ReaderControl::default());
        controls.readers.push(Arc::clone(&control));
        Some(control)
    }

    /// Sends a command to every reader. A reader ignores a command about a choice that it does not have.
    pub(crate) fn send(&self, command: Command) {
        let mut controls = self.lock();
        controls.ended |= matches!(command, Command::CancelAll | Command::KeepOnly(_));
        let readers = controls.readers.clone();
        drop(controls);
        readers
            .iter()
            .for_each(|reader| reader.send(command.clone()));
    }

    fn abandon(&self) {
        let mut controls = self.lock();
        controls.ended = true;
        let readers = std::mem::take(&mut controls.readers);
        drop(controls);
        readers.iter().for_each(|reader| reader.abandon());
    }

    #[cfg(test)]
    pub(crate) fn kill_reader(&self) {
        self.lock().readers[0].kill_reader();
    }

    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<ActorCell> {
        self.lock().readers.first()?.reader()
    }
}

/// Ends the readers of a completion when its last handle is dropped. All handles share one, because an actor does not end
/// when the last reference to it is dropped.
#[derive(Debug)]
pub(crate) struct CancelOnDrop {
    pub(crate) controls: ReaderControls,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.controls.abandon();
    }
}
