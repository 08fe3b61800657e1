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
    /// `None` for the one that several share.
    runtime: Option<runtime::Id>,
    state: State,
    backoff: Backoff,
}

pub(super) struct Slots {
    slots: Vec<Slot>,
    /// That of all further runtimes, and of calls outside of any.
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

    /// The owner of the slot that a runtime uses: itself, or `None` if it has to share one. An attempt to connect keeps the
    /// owner, because by its end the runtime may have got a slot of its own.
    pub(super) fn owner(&mut self, runtime: Option<runtime::Id>) -> Option<runtime::Id> {
        let is_its = |slot: &Slot| slot.runtime == runtime;
        if runtime.is_none() || self.slots.iter().any(is_its) {
            return runtime;
        }
        self.slots.retain(|slot| !slot.is_over());
        if self.slots.len() >= MAX_CONNECTIONS {
            return None;
        }
        self.slots.push(Slot::new(runtime));
        runtime
    }

    /// The state of an owner's connection. A new one is not connected.
    pub(super) fn of(&mut self, owner: Option<runtime::Id>) -> &mut State {
        &mut self.slot(owner).state
    }

    fn slot(&mut self, owner: Option<runtime::Id>) -> &mut Slot {
        let own = self.slots.iter_mut().find(|slot| slot.runtime == owner);
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
        owner: Option<runtime::Id>,
        address: &Address,
        connected: &Result<Arc<Live>, Failure>,
    ) {
        let slot = self.slot(owner);
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

    /// Whether nothing is lost with it: its runtime was shut down, or its next call would connect anyway.
    fn is_over(&self) -> bool {
        match &self.state {
            State::Live(live) => live.connection.is_over(),
            State::Connecting(_) => false,
            State::Broken { retry_at, .. } => *retry_at <= Instant::now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn connecting() -> State {
        State::Connecting(std::future::pending().boxed().shared())
    }

    #[test]
    fn each_runtime_has_a_slot_and_those_beyond_the_limit_share_one() {
        let mut slots = Slots {
            slots: Vec::new(),
            shared: Slot::new(None),
            contact: Contact::new(),
            is_reported: false,
        };
        let runtimes = [(); MAX_CONNECTIONS + 2].map(|()| {
            let builder = &mut runtime::Builder::new_current_thread();
            builder.build().unwrap()
        });
        let ids = runtimes.iter().map(|runtime| Some(runtime.handle().id()));
        for (number, id) in ids.clone().enumerate() {
            let owner = slots.owner(id);
            assert_eq!(owner, id.filter(|_| number < MAX_CONNECTIONS));
            assert_eq!(slots.owner(id), owner);
            *slots.of(owner) = connecting();
        }
        // The place of a runtime whose connection is broken is free; an attempt for the shared slot still ends in that one.
        let last = ids.last().unwrap();
        *slots.of(Some(runtimes[0].handle().id())) = State::not_connected();
        assert_eq!(slots.owner(last), last);
        slots.finish_connecting(None, &address(), &Err(Failure::Timeout));
        assert!(matches!(slots.shared.state, State::Broken { .. }));
        assert_eq!(slots.slots.len(), MAX_CONNECTIONS);
    }

    fn address() -> Address {
        Address::parse("redis://127.0.0.1:1", None).unwrap()
    }
}
