//! `CommandQueue`: the commands that have arrived at a gateway.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use tokio::sync::{
    Notify,
    mpsc::{self, Receiver, Sender},
    watch,
};

use crate::{Command, LogError, StreamId};

/// Commands that wait until the gateway takes them. An engine puts in what it receives.
///
/// Each log has one, which its clones share: so it is the log that knows who receives which command.
pub struct CommandQueue {
    shared: Arc<Shared>,
}

/// A gateway takes commands at once, so more than this means that it no longer runs.
pub(crate) const MAX_COMMANDS: usize = 65_536;

struct Shared {
    capacity: usize,
    state: Mutex<State>,
    /// Wakes the streams of all commands.
    added: Notify,
    /// Changes when something is taken, and is closed with the queue and its streams.
    taken: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    /// The streams whose commands have a receiver of their own.
    receivers: HashMap<StreamId, Sender<Command>>,
    /// The commands to all other streams.
    others: VecDeque<(StreamId, Command)>,
    /// How many streams of them there are.
    listeners: usize,
}

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
        Self {
            shared: Arc::new(Shared {
                capacity,
                state: Mutex::default(),
                added: Notify::new(),
                taken: watch::Sender::new(()),
            }),
        }
    }

    /// The end for a task that receives commands. It is closed once the queue and its streams are dropped.
    #[must_use]
    pub fn sender(&self) -> CommandSender {
        CommandSender {
            shared: Arc::downgrade(&self.shared),
            taken: self.shared.taken.subscribe(),
        }
    }

    /// Puts in a command of this process.
    ///
    /// # Errors
    ///
    /// [`LogError::Unavailable`] if the queue is full: then the gateway takes none.
    pub fn send(&self, id: &StreamId, command: Command) -> Result<(), LogError> {
        match self.shared.put(id, command) {
            true => Ok(()),
            false => Err(LogError::unavailable(
                "too many commands wait for the producer",
            )),
        }
    }

    /// The commands to streams without a receiver of their own, those that wait included. It never ends, not even if the log
    /// is dropped. Of several each command reaches one.
    #[must_use]
    pub fn stream(&self) -> BoxStream<'static, (StreamId, Command)> {
        let listener = Listener::new(Arc::clone(&self.shared));
        let received = stream::unfold(listener, |listener| async move {
            let command = listener.next().await;
            Some((command, listener))
        });
        received.boxed()
    }

    /// The commands to one stream, those that wait included. It never ends. Of several for one stream, the latest receives
    /// what follows.
    #[must_use]
    pub fn stream_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        let route = Route::new(Arc::clone(&self.shared), id.clone());
        let received = stream::unfold(route, |mut route| async move {
            // The route has a sender, too, so this does not end.
            let command = route.receiver.recv().await?;
            Some((command, route))
        });
        received.boxed()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete before anything that could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts in a command; returns false if the queue is full.
    fn put(&self, id: &StreamId, command: Command) -> bool {
        let mut state = self.state();
        if let Some(receiver) = state.receivers.get(id) {
            // A producer that has left so many takes none.
            let _full = receiver.try_send(command);
            return true;
        }
        if state.others.len() >= self.capacity {
            // A process whose producers have receivers of their own takes no others, and must not wait for that.
            if state.listeners > 0 || state.receivers.is_empty() {
                return false;
            }
            state.others.pop_front();
        }
        state.others.push_back((id.clone(), command));
        drop(state);
        self.added.notify_waiters();
        true
    }
}

/// The end of a [`CommandQueue`] for a task of an engine.
pub struct CommandSender {
    shared: Weak<Shared>,
    taken: watch::Receiver<()>,
}

impl CommandSender {
    /// Puts in a command, if there is room. Gives it back otherwise.
    ///
    /// # Errors
    ///
    /// The command, if the queue is full or closed.
    pub fn try_send(&self, command: (StreamId, Command)) -> Result<(), (StreamId, Command)> {
        let shared = self.shared.upgrade();
        match shared.is_some_and(|shared| shared.put(&command.0, command.1)) {
            true => Ok(()),
            false => Err(command),
        }
    }

    /// Puts in a command as soon as there is room.
    ///
    /// # Errors
    ///
    /// The command, if the queue is closed.
    pub async fn send(&self, mut command: (StreamId, Command)) -> Result<(), (StreamId, Command)> {
        let mut taken = self.taken.clone();
        loop {
            taken.mark_unchanged();
            match self.try_send(command) {
                Ok(()) => return Ok(()),
                Err(refused) => command = refused,
            }
            if taken.changed().await.is_err() {
                return Err(command);
            }
        }
    }

    /// Waits until the queue is closed.
    pub async fn closed(&self) {
        let mut taken = self.taken.clone();
        while taken.changed().await.is_ok() {}
    }
}

/// A receiver of the commands to all streams that have none of their own.
struct Listener(Arc<Shared>);

impl Listener {
    fn new(shared: Arc<Shared>) -> Self {
        shared.state().listeners += 1;
        Self(shared)
    }

    async fn next(&self) -> (StreamId, Command) {
        loop {
            // Before the queue is checked: what is added after that wakes it.
            let added = self.0.added.notified();
            if let Some(command) = self.take() {
                return command;
            }
            added.await;
        }
    }

    fn take(&self) -> Option<(StreamId, Command)> {
        let command = self.0.state().others.pop_front();
        if command.is_some() {
            self.0.taken.send_replace(());
        }
        command
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.state().listeners -= 1;
        self.0.taken.send_replace(());
    }
}

/// The receiver of the commands to one stream.
struct Route {
    shared: Arc<Shared>,
    id: StreamId,
    sender: Sender<Command>,
    receiver: Receiver<Command>,
}

impl Route {
    fn new(shared: Arc<Shared>, id: StreamId) -> Self {
        let (sender, receiver) = mpsc::channel(shared.capacity);
        let mut state = shared.state();
        let State {
            receivers, others, ..
        } = &mut *state;
        receivers.insert(id.clone(), sender.clone());
        others.retain(|(to, command)| {
            let is_own = *to == id;
            if is_own {
                // There were no more than its capacity.
                let _full = sender.try_send(*command);
            }
            !is_own
        });
        drop(state);
        shared.taken.send_replace(());
        Self {
            shared,
            id,
            sender,
            receiver,
        }
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let current = state.receivers.get(&self.id);
        // A later receiver of the same stream stays.
        if current.is_some_and(|current| current.same_channel(&self.sender)) {
            state.receivers.remove(&self.id);
        }
    }
}

impl fmt::Debug for CommandQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state();
        f.debug_struct("CommandQueue")
            .field("waiting", &state.others.len())
            .field("receivers", &state.receivers.len())
            .finish()
    }
}

impl fmt::Debug for CommandSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CommandSender(..)")
    }
}

#[cfg(test)]
mod tests;
