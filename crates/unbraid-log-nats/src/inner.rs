//! What all handles of a log share.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use tokio::{
    sync::watch,
    time::{Instant, timeout},
};
use unbraid_log::{LogError, Meta, StreamId, internal::CommandQueue};

use crate::{
    NatsOptions,
    api::{ANSWER, Ack, Api, Failure, Store, Stored},
    entry::{Entry, Origin, clock_draft, lease_draft, open_draft},
    leases::Leases,
    names::Names,
    writer::NatsWriter,
};

/// The longest time that a call takes.
const CALL: Duration = Duration::from_secs(1);

/// An estimate of the server's clock is good for this long.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) api: Api,
    pub(crate) names: Names,
    pub(crate) options: NatsOptions,
    /// The name of this gateway.
    pub(crate) gateway: String,
    pub(crate) leases: Leases,
    /// Those of the claims whose streams are not open yet.
    pub(crate) claim_leases: Leases,
    pub(crate) commands: CommandQueue,
    /// The tokens of streams whose opening has no known result.
    unsure: Mutex<HashMap<StreamId, String>>,
    clock: Mutex<Option<(Instant, SystemTime)>>,
    clock_check: tokio::sync::Mutex<()>,
    /// When a lease was looked at last.
    leases_used: watch::Sender<Option<Instant>>,
}

/// Bounds a call of the log.
pub(crate) async fn within<T>(
    call: impl Future<Output = Result<T, LogError>>,
) -> Result<T, LogError> {
    match timeout(CALL, call).await {
        Ok(result) => result,
        Err(_) => Err(LogError::unavailable("NATS does not answer in time")),
    }
}

impl Inner {
    pub(crate) fn new(
        api: Api,
        names: Names,
        options: NatsOptions,
        gateway: String,
        commands: CommandQueue,
    ) -> Self {
        Self {
            api,
            names,
            options,
            gateway,
            leases: Leases::default(),
            claim_leases: Leases::default(),
            commands,
            unsure: Mutex::default(),
            clock: Mutex::default(),
            clock_check: tokio::sync::Mutex::default(),
            leases_used: watch::Sender::new(None),
        }
    }

    /// Notes that a lease is looked at, for which it has to be known since when the server has been there.
    pub(crate) fn lease_is_used(&self) {
        self.leases_used.send_replace(Some(Instant::now()));
    }

    /// When a lease was looked at last.
    pub(crate) fn leases_used(&self) -> watch::Receiver<Option<Instant>> {
        self.leases_used.subscribe()
    }

    /// What is known about a stream beside its events.
    pub(crate) async fn origin(&self, id: &StreamId) -> Result<Option<Origin>, LogError> {
        let stored = self.api.last(Store::Values, self.names.meta(id)).await?;
        stored.as_ref().map(Origin::decode).transpose()
    }

    /// The last message of a stream's log, and when it was stored.
    pub(crate) async fn tail(
        &self,
        id: &StreamId,
    ) -> Result<Option<(Entry, SystemTime)>, LogError> {
        let decode = |stored: Stored| {
            let time = stored.time;
            Entry::decode(stored).map(|entry| (entry, time))
        };
        self.stored_tail(id).await?.map(decode).transpose()
    }

    pub(crate) async fn stored_tail(&self, id: &StreamId) -> Result<Option<Stored>, LogError> {
        Ok(self.api.last(Store::Log, self.names.records(id)).await?)
    }

    /// The first message of a stream's log with at least this number.
    pub(crate) async fn entry(
        &self,
        id: &StreamId,
        sequence: u64,
    ) -> Result<Option<Entry>, LogError> {
        let subject = self.names.records(id);
        let stored = self.api.next(Store::Log, subject, sequence).await?;
        stored.map(Entry::decode).transpose()
    }

    /// The time by the server's clock. Wall clocks of gateways are compared with nothing.
    pub(crate) async fn server_time(&self) -> Result<SystemTime, LogError> {
        if let Some(time) = self.estimated_time() {
            return Ok(time);
        }
        // Of many callers one asks the server.
        // Nobody may poll that one, as in the check of a stream. Then each of the others asks.
        let _one = timeout(ANSWER, self.clock_check.lock()).await;
        if let Some(time) = self.estimated_time() {
            return Ok(time);
        }
        let written = self
            .api
            .publish_anew(Store::Values, clock_draft(self.names.clock()));
        written.await?;
        let asked = Instant::now();
        let stored = self.api.last(Store::Values, self.names.clock()).await?;
        let Some(stored) = stored else {
            return Err(LogError::unavailable("JetStream has lost a message"));
        };
        *self.clock() = Some((asked, stored.time));
        Ok(stored.time + asked.elapsed())
    }

    fn estimated_time(&self) -> Option<SystemTime> {
        let (asked, time) = (*self.clock())?;
        let elapsed = asked.elapsed();
        (elapsed < CLOCK_CHECK).then_some(time + elapsed)
    }

    fn clock(&self) -> std::sync::MutexGuard<'_, Option<(Instant, SystemTime)>> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a stream.
    pub(crate) async fn open(
        self: &Arc<Self>,
        id: &StreamId,
        meta: &Meta,
    ) -> Result<NatsWriter, LogError> {
        let attempt = Attempt::new(self, id)?;
        if let Some(claim) = &meta.claim {
            self.keep_claim(claim, id).await?;
        }
        let lease = match self.open_values(id, meta, &attempt.token).await {
            Err(error) if !error.is_temporary() => {
                attempt.end();
                return Err(error);
            }
            opened => opened?,
        };
        let token = attempt.end();
        let meta = Arc::new(meta.clone());
        Ok(NatsWriter::new(
            Arc::clone(self),
            id.clone(),
            meta,
            token,
            lease,
        ))
    }

    /// The writer of a stream that this gateway may have opened, or a new stream.
    pub(crate) async fn reopen(
        self: &Arc<Self>,
        id: &StreamId,
        meta: &Meta,
    ) -> Result<NatsWriter, LogError> {
        match self.open(id, meta).await {
            Err(LogError::Exists) => {}
            opened => return opened,
        }
        let origin = self.origin(id).await?.filter(|origin| !origin.is_expired);
        let origin = origin.ok_or(LogError::Exists)?;
        let log = Arc::clone(self);
        NatsWriter::resume(log, id.clone(), Arc::new(meta.clone()), origin.token).await
    }

    /// Writes the lease, and then the meta data, by which the stream can be found. Returns the number of the lease.
    pub(crate) async fn open_values(
        &self,
        id: &StreamId,
        meta: &Meta,
        token: &str,
    ) -> Result<u64, LogError> {
        let full = |failure| match failure {
            Failure::Full(_) | Failure::NotWritten(_) => LogError::Full,
            failure => failure.into(),
        };
        let lease = lease_draft(self.names.lease(id), self.options.lease);
        let lease = self
            .api
            .publish_anew(Store::Values, lease)
            .await
            .map_err(full)?;
        let draft = open_draft(self.names.meta(id), meta, &self.gateway, token).after(0);
        let stored = self
            .api
            .publish_anew(Store::Values, draft)
            .await
            .map_err(full)?;
        let lease = match lease {
            Ack::Stored(sequence) => sequence,
            Ack::Duplicate | Ack::Conflict => 0,
        };
        if matches!(stored, Ack::Stored(_)) {
            return Ok(lease);
        }
        // An earlier attempt of the same call may have been carried out without an answer.
        match self.origin(id).await? {
            Some(origin) if origin.token == token && !origin.is_expired => Ok(lease),
            _ => Err(LogError::Exists),
        }
    }
}

/// An attempt to open a stream. Unless it succeeds or fails for certain, the next attempt has the same token.
struct Attempt<'a> {
    inner: &'a Inner,
    id: &'a StreamId,
    token: String,
    is_unsure: bool,
}

/// More tokens than this are not kept: then a stream that was opened without an answer is lost to its gateway.
const MAX_UNSURE: usize = 65_536;

impl<'a> Attempt<'a> {
    fn new(inner: &'a Inner, id: &'a StreamId) -> Result<Self, LogError> {
        let known = inner.unsure().remove(id);
        let token = match known {
            Some(token) => token,
            None => StreamId::random()?.as_str().to_owned(),
        };
        Ok(Self {
            inner,
            id,
            token,
            is_unsure: true,
        })
    }

    fn end(mut self) -> String {
        self.is_unsure = false;
        std::mem::take(&mut self.token)
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut unsure = self.inner.unsure();
        if self.is_unsure && unsure.len() < MAX_UNSURE {
            unsure.insert(self.id.clone(), std::mem::take(&mut self.token));
        }
    }
}

impl Inner {
    fn unsure(&self) -> std::sync::MutexGuard<'_, HashMap<StreamId, String>> {
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
