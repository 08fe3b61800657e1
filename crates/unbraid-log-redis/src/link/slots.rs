//! `Slots`: a connection for each runtime.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::{BoxFuture, Shared};
use tokio::{
    runtime::{self, Handle},
    time::Instant,
};

use super::{Live, contact::Contact};
use crate::{address::Address, error::Failure};

/// How many runtimes have a connection of their own. Further ones share one.
const MAX_CONNECTIONS: usize = 32;

/// Calls fail at once for this long after a connection was refused; doubled by each further one. A lease is judged only when
/// the server has answered for as long as it lasts, so the longest pause delays the end of a lost stream.
const MIN_BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_millis(250);

/// A pause between attempts to connect that grows, without a call's answer becoming older than [`MAX_BACKOFF`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff(Duration);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self(MIN_BACKOFF)
    }

    pub(crate) fn next(&mut self) -> Duration {
        let pause = self.0;
        self.0 = (pause * 2).min(MAX_BACKOFF);
        pause
    }
}

/// An attempt to connect that all calls of a runtime wait for.
pub(super) type Connecting = Shared<BoxFuture<'static, Result<Arc<Live>, Failure>>>;

pub(super) enum State {
    Live(Arc<Live>),
    Connecting(Connecting),
    /// Not before this time, because of this failure.
    Broken {
        retry_at: Instant,
        failure: Failure,
    },
}

/// The connection of a runtime.
struct Slot {
    /// `None` outside of any.
    runtime: Option<runtime::Id>,
    state: State,
    backoff: Backoff,
}

pub(super) struct Slots {
    slots: Vec<Slot>,
    /// That of all further runtimes.
    shared: Slot,
    /// On whichever connection: it is one server.
    pub(super) contact: Contact,
    /// Whether a warning says that the server cannot be reached.
    is_reported: bool,
}

pub(super) fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    // Every change is complete before anything that could panic.
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn current_runtime() -> Option<runtime::Id> {
    Handle::try_current().ok().map(|runtime| runtime.id())
}

impl Slots {
    /// With the first connection.
    pub(super) fn new(runtime: Option<runtime::Id>, live: Arc<Live>) -> Self {
        let first = Slot {
            state: State::Live(live),
            ..Slot::new(runtime)
        };
        Self {
            slots: vec![first],
            shared: Slot::new(None),
            contact: Contact::new(),
            is_reported: false,
        }
    }

    /// The state of a runtime's connection. A new one is not connected.
    pub(super) fn of(&mut self, runtime: Option<runtime::Id>) -> &mut State {
        &mut self.slot(runtime).state
    }

    fn slot(&mut self, runtime: Option<runtime::Id>) -> &mut Slot {
        let is_its = |slot: &Slot| slot.runtime == runtime;
        if !self.slots.iter().any(is_its) {
            // Those of runtimes that were shut down.
            self.slots.retain(|slot| !slot.is_over());
            if self.slots.len() < MAX_CONNECTIONS {
                self.slots.push(Slot::new(runtime));
            }
        }
        let own = self.slots.iter_mut().find(|slot| is_its(slot));
        own.unwrap_or(&mut self.shared)
    }

    /// The next call connects.
    pub(super) fn break_where(&mut self, is_broken: impl Fn(&State) -> bool) {
        let mut slots = self.slots.iter_mut().chain([&mut self.shared]);
        if let Some(slot) = slots.find(|slot| is_broken(&slot.state)) {
            slot.state = State::not_connected();
        }
    }

    pub(super) fn finish_connecting(
        &mut self,
        runtime: Option<runtime::Id>,
        address: &Address,
        connected: &Result<Arc<Live>, Failure>,
    ) {
        let slot = self.slot(runtime);
        match connected {
            Ok(live) => {
                slot.backoff = Backoff::new();
                slot.state = State::Live(Arc::clone(live));
                if std::mem::take(&mut self.is_reported) {
                    tracing::info!(%address, "connected to Redis again");
                }
            }
            Err(failure) => {
                slot.state = State::Broken {
                    retry_at: Instant::now() + slot.backoff.next(),
                    failure: failure.clone(),
                };
                // Once, although there are several attempts a second.
                if !std::mem::replace(&mut self.is_reported, true) {
                    tracing::warn!(%address, reason = failure.reason(), "cannot connect to Redis");
                }
            }
        }
    }
}

impl State {
    fn not_connected() -> Self {
        Self::Broken {
            retry_at: Instant::now(),
            failure: Failure::Connection("the connection is closed".to_owned()),
        }
    }
}

impl Slot {
    fn new(runtime: Option<runtime::Id>) -> Self {
        Self {
            runtime,
            state: State::not_connected(),
            backoff: Backoff::new(),
        }
    }

    /// Whether the task of its connection has ended.
    fn is_over(&self) -> bool {
        matches!(&self.state, State::Live(live) if live.connection.is_over())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_runtime_has_a_slot_and_those_beyond_the_limit_share_one() {
        let mut slots = Slots {
            slots: Vec::new(),
            shared: Slot::new(None),
            contact: Contact::new(),
            is_reported: false,
        };
        let runtimes: Vec<_> = (0..MAX_CONNECTIONS + 2)
            .map(|_| {
                let builder = &mut runtime::Builder::new_current_thread();
                builder.build().unwrap()
            })
            .collect();
        for runtime in &runtimes {
            let id = Some(runtime.handle().id());
            for _ in 0..2 {
                assert!(matches!(slots.of(id), State::Broken { .. }));
            }
        }
        assert_eq!(slots.slots.len(), MAX_CONNECTIONS);
        for (number, runtime) in runtimes.iter().enumerate() {
            let id = Some(runtime.handle().id());
            let has_own = slots.slot(id).runtime == id;
            assert_eq!(has_own, number < MAX_CONNECTIONS);
        }
    }
}
