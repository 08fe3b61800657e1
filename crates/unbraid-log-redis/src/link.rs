//! `Link`: the connection on which all calls of a log share, re-established when it breaks.

mod attempts;
mod confirm;
mod contact;

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use redis::{Cmd, Value};
use tokio::time::{Instant, timeout};

use crate::{
    address::{Address, Connection},
    error::Failure,
    script::Request,
};
use confirm::Confirmations;
use contact::Contact;

/// How long a call may take, with all its attempts.
const CALL: Duration = Duration::from_millis(950);

/// How long connecting may take. It outlives the call that started it, so that a slow network is not tried in vain.
pub(crate) const CONNECT: Duration = Duration::from_secs(3);

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

/// Connects within a bounded time.
pub(crate) async fn connect(address: &Address) -> Result<Connection, Failure> {
    attempts::first(|| address.connect()).await
}

/// One connection, as long as it works.
pub(crate) struct Live {
    connection: Connection,
    confirmations: Confirmations,
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

type Connecting = Shared<BoxFuture<'static, Result<Arc<Live>, Failure>>>;

enum State {
    Live(Arc<Live>),
    Connecting(Connecting),
    /// Not before this time, because of this failure.
    Broken {
        retry_at: Instant,
        failure: Failure,
    },
}

struct Slot {
    state: State,
    backoff: Backoff,
    contact: Contact,
    /// Whether a warning says that the server cannot be reached.
    is_reported: bool,
}

/// The connection for all requests that do not block.
pub(crate) struct Link {
    address: Arc<Address>,
    slot: Arc<Mutex<Slot>>,
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    // Every change is complete before anything that could panic.
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(crate) fn new(address: Arc<Address>, connection: Connection) -> Self {
        let slot = Slot {
            state: State::Live(Live::new(connection)),
            backoff: Backoff::new(),
            contact: Contact::new(),
            is_reported: false,
        };
        Self {
            address,
            slot: Arc::new(Mutex::new(slot)),
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
        let mut used = None;
        let result = timeout(CALL, self.attempts(request, replicas, &mut used)).await;
        let result = match (result, used) {
            (Ok(result), _) => result,
            (Err(_), used) => {
                // The server may be gone without a trace: the next call connects again.
                if let Some(live) = used {
                    self.discard(&live);
                }
                Err(Failure::Timeout)
            }
        };
        let is_answer = !matches!(&result, Err(failure) if failure.breaks_connection());
        lock(&self.slot).contact.note(is_answer);
        result
    }

    /// Whether the server answers again since less than this time, after it did not.
    pub(crate) fn has_recovered_within(&self, time: Duration) -> bool {
        lock(&self.slot).contact.has_recovered_within(time)
    }

    /// Whether the server has answered all the time for this long.
    pub(crate) fn has_answered_for(&self, time: Duration) -> bool {
        lock(&self.slot).contact.has_answered_for(time)
    }

    /// Whether a call has failed within this time, or before the first answer within it.
    pub(crate) fn has_failed_within(&self, time: Duration) -> bool {
        lock(&self.slot).contact.has_failed_within(time)
    }

    async fn attempts(
        &self,
        request: &Request,
        replicas: u32,
        used: &mut Option<Arc<Live>>,
    ) -> Result<Value, Failure> {
        let (live, is_new) = self.live().await?;
        match self.attempt(live, request, replicas, used).await {
            // The server may have been restarted since the last request, which an idle connection does not notice.
            Err(Failure::Connection(_)) if !is_new => {
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

    /// The connection, and whether this call has waited for it.
    async fn live(&self) -> Result<(Arc<Live>, bool), Failure> {
        let connecting = {
            let mut slot = lock(&self.slot);
            match &slot.state {
                State::Live(live) => return Ok((Arc::clone(live), false)),
                State::Connecting(connecting) => connecting.clone(),
                State::Broken { retry_at, failure } if Instant::now() < *retry_at => {
                    return Err(failure.clone());
                }
                State::Broken { .. } => {
                    let connecting = self.start_connecting();
                    slot.state = State::Connecting(connecting.clone());
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
        let mut slot = lock(&self.slot);
        if let State::Connecting(current) = &slot.state
            && current.ptr_eq(failed)
        {
            slot.break_now();
        }
    }

    /// Connects in a task of its own: a call that times out does not abort the attempt that others wait for.
    fn start_connecting(&self) -> Connecting {
        let address = Arc::clone(&self.address);
        let slot = Arc::downgrade(&self.slot);
        let task = tokio::spawn(async move {
            let connected = connect(&address).await.map(Live::new);
            if let Some(slot) = slot.upgrade() {
                lock(&slot).finish_connecting(&address, &connected);
            }
            connected
        });
        let joined = task.map(|joined| {
            joined.unwrap_or_else(|_| Err(Failure::Connection("the runtime shuts down".to_owned())))
        });
        joined.boxed().shared()
    }

    fn discard(&self, live: &Arc<Live>) {
        let mut slot = lock(&self.slot);
        if let State::Live(current) = &slot.state
            && Arc::ptr_eq(current, live)
        {
            slot.break_now();
        }
    }
}

impl Slot {
    /// The next call connects.
    fn break_now(&mut self) {
        self.state = State::Broken {
            retry_at: Instant::now(),
            failure: Failure::Connection("the connection is closed".to_owned()),
        };
    }

    fn finish_connecting(&mut self, address: &Address, connected: &Result<Arc<Live>, Failure>) {
        self.state = match connected {
            Ok(live) => {
                if std::mem::take(&mut self.is_reported) {
                    tracing::info!(%address, "connected to Redis again");
                }
                self.backoff = Backoff::new();
                State::Live(Arc::clone(live))
            }
            Err(failure) => {
                // Once, although there are several attempts a second.
                if !std::mem::replace(&mut self.is_reported, true) {
                    tracing::warn!(%address, reason = failure.reason(), "cannot connect to Redis");
                }
                State::Broken {
                    retry_at: Instant::now() + self.backoff.next(),
                    failure: failure.clone(),
                }
            }
        };
    }
}

impl Live {
    pub(crate) fn new(connection: Connection) -> Arc<Self> {
        Arc::new(Self {
            connection,
            confirmations: Confirmations::default(),
        })
    }
}
