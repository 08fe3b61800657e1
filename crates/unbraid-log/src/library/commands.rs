//! Commands to the recordings of this process.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::{Command, StreamId};

/// The recordings that run. Every recording listens to the commands of its log, and each command reaches one of them, so it
/// has to be passed on. Ids are unique over all logs.
static RECORDINGS: Mutex<Option<HashMap<StreamId, UnboundedSender<Command>>>> = Mutex::new(None);

fn recordings() -> MutexGuard<'static, Option<HashMap<StreamId, UnboundedSender<Command>>>> {
    RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The commands of one recording.
#[derive(Debug)]
pub(super) struct Inbox {
    id: StreamId,
    pub(super) sender: UnboundedSender<Command>,
    pub(super) receiver: UnboundedReceiver<Command>,
}

impl Inbox {
    pub(super) fn new(id: StreamId) -> Self {
        let (sender, receiver) = unbounded_channel();
        recordings()
            .get_or_insert_default()
            .insert(id.clone(), sender.clone());
        Self {
            id,
            sender,
            receiver,
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        if let Some(recordings) = &mut *recordings() {
            recordings.remove(&self.id);
        }
    }
}

/// Passes a command on to its recording. One for a stream that is not recorded any more is dropped.
pub(super) fn dispatch(id: &StreamId, command: Command) {
    if let Some(recording) = recordings().as_ref().and_then(|all| all.get(id)) {
        // A recording that has just ended does not need it.
        let _ended = recording.send(command);
    }
}
