//! `Publishers`: a connection for each further runtime, on which its producers append.
//!
//! The gateway has a runtime for each of its threads, and an acknowledgement has to wake the producer that waits for it. If the
//! connection belonged to another thread, both would be woken in turn, which takes longer than the request. All else uses the
//! first connection, and so do producers while their own one is not up: this one is a shortcut, and decides nothing.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_nats::{Client, ConnectOptions, ServerAddr, connection};
use tokio::{
    runtime::{self, Handle},
    time::Instant,
};

/// How many runtimes have a connection of their own.
const MAX_CONNECTIONS: usize = 32;

/// When to try again after a connection was refused. The server may allow no more of them.
const RETRY: Duration = Duration::from_secs(10);

pub(crate) struct Publishers {
    options: ConnectOptions,
    addresses: Vec<ServerAddr>,
    /// The runtime of the first connection.
    first: Option<runtime::Id>,
    slots: Arc<Mutex<Vec<Slot>>>,
}

struct Slot {
    runtime: runtime::Id,
    state: State,
}

enum State {
    Connecting,
    Ready(Client),
    Failed { at: Instant },
}

fn lock(slots: &Mutex<Vec<Slot>>) -> MutexGuard<'_, Vec<Slot>> {
    // Every change is complete before anything that could panic.
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

fn current_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl Publishers {
    /// For the runtimes other than this one.
    pub(crate) fn new(options: ConnectOptions, addresses: Vec<ServerAddr>) -> Self {
        Self {
            options,
            addresses,
            first: current_runtime(),
            slots: Arc::default(),
        }
    }

    /// The client of this runtime. `None` if it has none that is connected: it is connected for later calls, unless this is the
    /// runtime of the first connection.
    pub(crate) fn client(&self) -> Option<Client> {
        let runtime = current_runtime()?;
        if self.first == Some(runtime) {
            return None;
        }
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.iter_mut().find(|slot| slot.runtime == runtime) {
            match &slot.state {
                State::Ready(client) => {
                    let is_up = client.connection_state() == connection::State::Connected;
                    return is_up.then(|| client.clone());
                }
                State::Failed { at } if at.elapsed() >= RETRY => slot.state = State::Connecting,
                State::Connecting | State::Failed { .. } => return None,
            }
        } else if slots.len() < MAX_CONNECTIONS {
            let state = State::Connecting;
            slots.push(Slot { runtime, state });
        } else {
            return None;
        }
        self.connect(runtime);
        None
    }

    /// Connects in a task of this runtime: the client's own tasks then run in it, too.
    fn connect(&self, runtime: runtime::Id) {
        let connect = self.options.clone().connect(self.addresses.clone());
        let slots = Arc::downgrade(&self.slots);
        tokio::spawn(async move {
            let connected = connect.await;
            let Some(slots) = slots.upgrade() else {
                return;
            };
            let state = connected.map_or_else(
                |error| {
                    tracing::debug!(%error, "NATS: a thread has no connection of its own");
                    State::Failed { at: Instant::now() }
                },
                State::Ready,
            );
            let mut slots = lock(&slots);
            if let Some(slot) = slots.iter_mut().find(|slot| slot.runtime == runtime) {
                slot.state = state;
            }
        });
    }

    /// Forgets the client of this runtime, which has failed: its tasks may be those of an earlier runtime of the same id.
    pub(crate) fn forget(&self) {
        let runtime = current_runtime();
        lock(&self.slots).retain(|slot| Some(slot.runtime) != runtime);
    }
}

impl fmt::Debug for Publishers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options contain the login.
        f.debug_struct("Publishers").finish_non_exhaustive()
    }
}
