//! `CommandQueue`: the commands that have arrived at a gateway.

use std::{fmt, sync::Arc};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::sync::{Mutex, mpsc};

use crate::{Command, LogError, StreamId};

/// Commands that wait until the gateway takes them. An engine puts in what it receives.
pub struct CommandQueue {
    sender: mpsc::Sender<(StreamId, Command)>,
    /// Shared by all streams of commands: each command reaches one.
    receiver: Arc<Mutex<mpsc::Receiver<(StreamId, Command)>>>,
}

/// A gateway takes commands at once, so more than this means that it no longer runs.
pub(crate) const MAX_COMMANDS: usize = 65_536;

/// The queue of a log in one process, which keeps all commands.
impl Default for CommandQueue {
    fn default() -> Self {
        Self::new(MAX_COMMANDS)
    }
}

impl CommandQueue {
    /// A queue for this many commands.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let (sender, receiver) = mpsc::channel(capacity);
        Self {
            sender,
            receiver: Arc::new(Mutex::new(receiver)),
        }
    }

    /// The end for a task that receives commands. It is closed once the queue and its streams are dropped.
    #[must_use]
    pub fn sender(&self) -> mpsc::Sender<(StreamId, Command)> {
        self.sender.clone()
    }

    /// Puts in a command of this process.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`] if the queue is full: then the gateway takes none.
    pub fn send(&self, id: &StreamId, command: Command) -> Result<(), LogError> {
        let sent = self.sender.try_send((id.clone(), command));
        sent.map_err(|_| LogError::unavailable("too many commands wait for the producer"))
    }

    /// The commands, those that wait included. It never ends, not even if the log is dropped.
    #[must_use]
    pub fn stream(&self) -> BoxStream<'static, (StreamId, Command)> {
        let receiver = Arc::clone(&self.receiver);
        let received = stream::unfold(receiver, |receiver| async move {
            let command = receiver.lock().await.recv().await?;
            Some((command, receiver))
        });
        received.chain(stream::pending()).boxed()
    }
}

impl fmt::Debug for CommandQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waiting = self.sender.max_capacity() - self.sender.capacity();
        f.debug_struct("CommandQueue")
            .field("waiting", &waiting)
            .finish()
    }
}
