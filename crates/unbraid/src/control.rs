//! What handles ask of the reader: cancel a choice, cancel all, or finish off a stream that nobody reads any more.

use std::{
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use ractor::ActorCell;
use unbraid_core::ChoiceIndex;

use crate::{sync::command_queue::Requests, sync::wait_list::SharedWaker};

/// One wish of a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Cancel(ChoiceIndex),
    CancelAll,
    /// These have won, in rising order: every other choice is cancelled, those too that have not come yet.
    Keep(Arc<[ChoiceIndex]>),
    /// Every handle is gone and every choice has ended: read a bounded rest, so that the connection can be used again.
    Drain,
}

/// Requests on their way, and how to end the reader if it must not go on.
#[derive(Debug, Default)]
pub(crate) struct Control {
    requests: Requests<Request>,
    life: Mutex<Life>,
}

#[derive(Debug, Default)]
struct Life {
    /// Whether every choice has ended, so that only the stream's rest is missing.
    ended: bool,
    /// The reader, while it runs. A handle that outlives the stream must not pin a dead mailbox.
    reader: Option<ActorCell>,
    /// The reader is done; on another thread that can come before its start is told.
    done: bool,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn started(&self, reader: ActorCell) {
        let mut life = self.lock();
        if !life.done {
            life.reader = Some(reader);
        }
    }

    /// The reader is done, or never started: requests are refused from here on.
    pub(crate) fn finished(&self) {
        let mut life = self.lock();
        life.reader = None;
        life.done = true;
        drop(life);
        // It drops a waker, which may run foreign code: not under the lock.
        let missed = self.requests.close();
        if !missed.is_empty() {
            tracing::trace!(
                requests = missed.len(),
                "the stream closed before these requests were read"
            );
        }
    }

    pub(crate) fn set_ended(&self, ended: bool) {
        self.lock().ended = ended;
    }

    /// Leaves a request for the reader. One that is refused has nothing to do: when a reader is done each of its choices
    /// has its end.
    pub(crate) fn ask(&self, request: Request) {
        if !self.requests.ask(request) {
            tracing::trace!("a request came after the stream had closed");
        }
    }

    /// Every handle is gone.
    fn abandon(&self) {
        let mut life = self.lock();
        let ended = life.ended;
        let reader = if ended { None } else { life.reader.take() };
        drop(life);
        match reader {
            Some(reader) => reader.kill(),
            None if ended => self.ask(Request::Drain),
            // It is being started, by a thread that still has to say so: it reads this before anything else.
            None => self.ask(Request::CancelAll),
        }
    }

    /// Requests that have come; `left` is the waker that the reader left here before.
    pub(crate) fn poll(
        &self,
        cx: &Context<'_>,
        left: &mut Option<SharedWaker>,
    ) -> Poll<Vec<Request>> {
        self.requests.poll(cx, left)
    }

    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<ActorCell> {
        self.lock().reader.clone()
    }
}

/// The reader's end of its [`Control`]: dropped, however the reader ended, it refuses further requests.
#[derive(Debug)]
pub(crate) struct Receiver(Arc<Control>);

impl Receiver {
    pub(crate) fn new(control: &Arc<Control>) -> Self {
        Self(Arc::clone(control))
    }
}

impl Deref for Receiver {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.0
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.finished();
    }
}

/// The ways to all readers of a completion: one, or one a source where several are joined.
#[derive(Debug, Default)]
pub(crate) struct Controls(Mutex<Readers>);

#[derive(Debug, Default)]
struct Readers {
    controls: Vec<Arc<Control>>,
    /// What ended it for all readers, that nobody holds it any more included: none may be added.
    over: Option<Request>,
}

impl Controls {
    fn lock(&self) -> MutexGuard<'_, Readers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The way to a further reader; `None` if the completion is over. What is asked of all from here on is asked of this
    /// one, too, even if it has not started yet.
    pub(crate) fn add(&self) -> Option<Arc<Control>> {
        let mut readers = self.lock();
        if readers.over.is_some() {
            return None;
        }
        let control = Arc::new(Control::default());
        readers.controls.push(Arc::clone(&control));
        Some(control)
    }

    /// Each reader takes it; a wish for a choice means nothing to those that do not have it.
    pub(crate) fn ask(&self, request: Request) {
        let mut readers = self.lock();
        if matches!(request, Request::CancelAll | Request::Keep(_)) {
            readers.over = Some(request.clone());
        }
        let controls = readers.controls.clone();
        drop(readers);
        controls
            .iter()
            .for_each(|control| control.ask(request.clone()));
    }

    /// Every handle is gone.
    fn abandon(&self) {
        let mut readers = self.lock();
        readers.over = Some(Request::CancelAll);
        let controls = std::mem::take(&mut readers.controls);
        drop(readers);
        controls.iter().for_each(|control| control.abandon());
    }

    #[cfg(test)]
    pub(crate) fn reader(&self) -> Option<ActorCell> {
        self.lock().controls.first()?.reader()
    }
}

/// Shared by all handles of a completion. No count of actor references ends an actor; the last guard does.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) controls: Arc<Controls>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.controls.abandon();
    }
}
