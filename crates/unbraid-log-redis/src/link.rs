//! `Link`: the connections that all calls of a log share, re-established when they break.
//!
//! Each runtime has one of its own. The gateway has a runtime for each of its threads, and the answer to an append has to
//! wake the producer that waits for it: if the connection belonged to another thread, both would be woken in turn, which
//! takes longer than the request.

mod attempts;
mod confirm;
mod contact;
mod heartbeat;
mod slots;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use redis::{Cmd, Value};
use tokio::{
    runtime,
    time::{Instant, timeout},
};
use unbraid_log::internal::REPAIR_TIME;

use crate::{
    address::{Address, Connection},
    error::Failure,
    script::Request,
    server,
};
use confirm::Confirmations;
pub(crate) use slots::Backoff;
use slots::{Connecting, Slots, State, current_runtime, lock};

/// How long a call may take, with all its attempts.
const CALL: Duration = Duration::from_millis(950);

/// How long connecting may take. It outlives the call that started it, so that a slow network is not tried in vain.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);

/// Connects within a bounded time.
pub(crate) async fn connect(address: &Address) -> Result<Connection, Failure> {
    attempts::first(|| address.connect()).await
}

/// One connection, as long as it works.
pub(crate) struct Live {
    connection: Connection,
    confirmations: Confirmations,
    /// Whether the server is known to run for longer than producers need to write again what a new one lacks.
    is_old: AtomicBool,
}

impl Live {
    /// Sends a command, and waits for its answer.
    async fn query(&self, cmd: &Cmd) -> Result<Value, Failure> {
        let mut commands = self.connection.commands.clone();
        let value: Value = cmd.query_async(&mut commands).await?;
        Ok(value)
    }

    pub(crate) async fn request(&self, request: &Request) -> Result<Value, Failure> {
        match (self.query(&request.cmd).await, request.load()) {
            (Err(Failure::Server(code)), Some(load)) if code == "NOSCRIPT" => {
                self.query(&load).await?;
                self.query(&request.cmd).await
            }
            (result, _) => result,
        }
    }

    /// Waits until this many replicas have everything that was written on this connection.
    async fn confirm(self: &Arc<Self>, replicas: u32) -> Result<(), Failure> {
        if replicas == 0 {
            return Ok(());
        }
        let confirmed = self.confirmations.next(self, replicas).await?;
        if confirmed < i64::from(replicas) {
            return Err(Failure::Replicas);
        }
        Ok(())
    }
}

/// The connections for all requests that do not block. Clones share them.
#[derive(Clone)]
pub(crate) struct Link {
    address: Arc<Address>,
    slots: Arc<Mutex<Slots>>,
}

impl Link {
    pub(crate) fn new(address: Arc<Address>, connection: Connection) -> Self {
        let slots = Slots::new(current_runtime(), Live::new(connection));
        Self {
            address,
            slots: Arc::new(Mutex::new(slots)),
        }
    }

    pub(crate) fn address(&self) -> &Arc<Address> {
        &self.address
    }

    /// Sends a request that may be repeated: once more if the connection turns out to be broken.
    pub(crate) async fn call(&self, request: &Request) -> Result<Value, Failure> {
        self.call_confirmed(request, 0).await
    }

    /// The same, and waits until the replicas have what it has written.
    pub(crate) async fn call_confirmed(
        &self,
        request: &Request,
        replicas: u32,
    ) -> Result<Value, Failure> {
        self.call_on(request, replicas, true, &mut None).await
    }

    /// Sends a claim, once. If the connection is broken, the server may have been started again, and may lack the claim of another
    /// gateway: whether it does has to be asked before the claim is repeated. That of a holder is repeated soon anyway.
    pub(crate) async fn claim(&self, request: &Request, replicas: u32) -> Result<Value, Failure> {
        self.call_on(request, replicas, false, &mut None).await
    }

    /// `used` is set to the connection of the answer.
    async fn call_on(
        &self,
        request: &Request,
        replicas: u32,
        repeats: bool,
        used: &mut Option<Arc<Live>>,
    ) -> Result<Value, Failure> {
        let result = timeout(CALL, self.attempts(request, replicas, repeats, used)).await;
        let result = result.unwrap_or_else(|_elapsed| {
            // The server may be gone without a trace: the next call connects again.
            if let Some(live) = used {
                self.discard(live);
            }
            Err(Failure::Timeout)
        });
        let mut slots = lock(&self.slots);
        match &result {
            Err(failure) if failure.breaks_connection() => slots.contact.note(false),
            Err(failure) if failure.refuses_writes() => slots.contact.note_refusal(),
            _ => slots.contact.note(true),
        }
        result
    }

    /// Whether the server may have been started less than [`REPAIR_TIME`] ago. No connection outlives its server, so on each it is
    /// asked only until it was not.
    pub(crate) async fn may_be_new(&self) -> Result<bool, Failure> {
        if self.is_known_old() {
            return Ok(false);
        }
        let mut used = None;
        let info = Request::command("INFO").arg("server");
        let info = self.call_on(&info, 0, true, &mut used).await?;
        // Whole seconds, which may be less than one late.
        let is_new = server::uptime(&info).is_some_and(|uptime| uptime <= REPAIR_TIME);
        if let Some(live) = used.filter(|_| !is_new) {
            live.is_old.store(true, Ordering::Relaxed);
        }
        Ok(is_new)
    }

    /// Whether the connection of this runtime has found the server to be old.
    fn is_known_old(&self) -> bool {
        let mut slots = lock(&self.slots);
        let owner = slots.owner(current_runtime());
        matches!(slots.of(owner), State::Live(live) if live.is_old.load(Ordering::Relaxed))
    }

    /// Whether the server answers again since less than this time, after it did not.
    pub(crate) fn has_recovered_within(&self, time: Duration) -> bool {
        lock(&self.slots).contact.has_recovered_within(time)
    }

    /// Whether the server has answered all the time for this long.
    pub(crate) fn has_answered_for(&self, time: Duration) -> bool {
        lock(&self.slots).contact.has_answered_for(time)
    }

    /// The time, in microseconds, that the server's clock does not exceed unless it was moved.
    pub(crate) fn latest_time(&self) -> u64 {
        lock(&self.slots).contact.latest_time()
    }

    /// Whether a call has failed within this time, or before the first answer within it.
    pub(crate) fn has_failed_within(&self, time: Duration) -> bool {
        lock(&self.slots).contact.has_failed_within(time)
    }

    async fn attempts(
        &self,
        request: &Request,
        replicas: u32,
        repeats: bool,
        used: &mut Option<Arc<Live>>,
    ) -> Result<Value, Failure> {
        let (live, is_new) = self.live().await?;
        match self.attempt(live, request, replicas, used).await {
            // The server may have been restarted since the last request, which an idle connection does not notice.
            Err(Failure::Connection(_)) if repeats && !is_new => {
                let (live, _) = self.live().await?;
                self.attempt(live, request, replicas, used).await
            }
            result => result,
        }
    }

    async fn attempt(
        &self,
        live: Arc<Live>,
        request: &Request,
        replicas: u32,
        used: &mut Option<Arc<Live>>,
    ) -> Result<Value, Failure> {
        *used = Some(Arc::clone(&live));
        let mut result = live.request(request).await;
        if result.is_ok()
            && let Err(failure) = live.confirm(replicas).await
        {
            result = Err(failure);
        }
        if let Err(failure) = &result
            && failure.breaks_connection()
        {
            self.discard(&live);
        }
        result
    }

    /// The connection of this runtime, and whether this call has waited for it.
    async fn live(&self) -> Result<(Arc<Live>, bool), Failure> {
        let connecting = {
            let mut slots = lock(&self.slots);
            let owner = slots.owner(current_runtime());
            let state = slots.of(owner);
            match state {
                State::Live(live) => return Ok((Arc::clone(live), false)),
                State::Connecting(connecting) => connecting.clone(),
                State::Broken { retry_at, failure } if Instant::now() < *retry_at => {
                    return Err(failure.clone());
                }
                State::Broken { .. } => {
                    let connecting = self.start_connecting(owner);
                    *state = State::Connecting(connecting.clone());
                    connecting
                }
            }
        };
        match connecting.clone().await {
            Ok(live) => Ok((live, true)),
            Err(failure) => {
                self.forget(&connecting);
                Err(failure)
            }
        }
    }

    /// An attempt stores its own result, unless its runtime was shut down: the next call may be on another one.
    fn forget(&self, failed: &Connecting) {
        lock(&self.slots).break_where(
            |state| matches!(state, State::Connecting(current) if current.ptr_eq(failed)),
        );
    }

    /// Connects in a task of its own: a call that times out does not abort the attempt that others wait for.
    fn start_connecting(&self, owner: Option<runtime::Id>) -> Connecting {
        let address = Arc::clone(&self.address);
        let slots = Arc::downgrade(&self.slots);
        let task = tokio::spawn(async move {
            let connected = connect(&address).await.map(Live::new);
            if let Some(slots) = slots.upgrade() {
                lock(&slots).finish_connecting(owner, &address, &connected);
            }
            connected
        });
        let joined = task.map(|joined| {
            joined.unwrap_or_else(|_| Err(Failure::Connection("the runtime shuts down".to_owned())))
        });
        joined.boxed().shared()
    }

    fn discard(&self, live: &Arc<Live>) {
        lock(&self.slots).break_where(
            |state| matches!(state, State::Live(current) if Arc::ptr_eq(current, live)),
        );
    }
}

impl Live {
    pub(crate) fn new(connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            connection,
            confirmations: Confirmations::default(),
            is_old: AtomicBool::new(false),
        })
    }
}
