//! Opens a stream for a request, and starts its generation.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::time::sleep;
use unbraid_log::{
    ClaimKey, LogError, LogStore, Meta, Producer, ProducerObserver, ProducerOptions, StreamId,
};

use crate::{
    api_error::ApiError,
    auth::{keys::Principal, links::unix_now},
    fan_out::{Launch, Launched},
    gateway::Gateway,
    generation::{Generation, GenerationArgs, GenerationLog, RefusedError, Start},
    streams::{ReaderPermit, StreamPermit},
};

/// The pause between attempts to free a key.
const RELEASE_PAUSE: Duration = Duration::from_secs(2);

/// A stream that is about to be opened.
pub(super) struct Opening {
    pub(super) id: StreamId,
    pub(super) principal: Principal,
    pub(super) permit: StreamPermit,
    pub(super) endpoint: &'static str,
    pub(super) claim: Option<ClaimKey>,
    pub(super) orphan_after: Option<Duration>,
    /// Whether each choice has a request of its own, as far as that is known.
    pub(super) fan_out: bool,
    pub(super) launch: Launch,
}

impl Opening {
    /// Opens the log, and starts the generation. The permit counts as its first reader until it is dropped.
    pub(super) async fn open(
        self,
        gateway: &Gateway,
        start: Start,
    ) -> Result<ReaderPermit, ApiError> {
        let inner = &gateway.inner;
        let request = &self.launch.request;
        let choices = request.choices();
        let n = request.n().is_some() || choices > 1;
        let owner = Some(self.principal.name()).filter(|name| !name.is_empty());
        let (created, model) = (unix_now(), request.model_field());
        let meta = Meta::new(self.endpoint, created)
            .with_owner(owner.map(str::to_owned))
            .with_model(model.clone())
            .with_n(n.then_some(choices))
            .with_fan_out(self.fan_out)
            .with_claim(self.claim.clone())
            .with_orphan_after(self.orphan_after);
        let log = open_log(gateway, &self.id, meta).await;
        let log = log.map_err(|error| {
            inner.writes.note_failure();
            inner.views.refused(error)
        })?;
        let (registration, commands) =
            self.permit
                .register(self.id.clone(), self.endpoint, self.fan_out);
        let reader = inner.streams.connect(&self.id)?;
        let on_refused = self
            .claim
            .map(|claim| release(Arc::clone(&inner.store), claim, self.id));
        let args = GenerationArgs {
            start,
            log,
            is_shared: inner.store.is_shared(),
            registration,
            commands,
            endpoint: self.endpoint,
            created,
            model,
            expected: choices,
            dropped: Arc::clone(&self.launch.dropped),
            orphan_after: self.orphan_after,
            wants_usage: request.wants_usage(),
            on_refused,
            metrics: inner.metrics.clone(),
        };
        inner
            .supervisor
            .spawn(Generation::new(args, &inner.options));
        Ok(reader)
    }
}

/// Opens the log of a stream. One that is not in this process gets a producer, which waits for it for a second.
async fn open_log(gateway: &Gateway, id: &StreamId, meta: Meta) -> Result<GenerationLog, LogError> {
    if let Some(memory) = gateway.memory() {
        return memory.open(id, &meta).await.map(GenerationLog::Memory);
    }
    let inner = &gateway.inner;
    let options = ProducerOptions::default()
        .with_lease(inner.options.lease)
        .with_ttl(inner.options.ttl)
        .with_on_failure(inner.options.on_log_failure.into())
        .with_observer(Arc::clone(&inner.writes) as Arc<dyn ProducerObserver>);
    let producer = Producer::open(Arc::clone(&inner.store), id, &meta, options).await?;
    let producer = Arc::new(producer);
    inner.streams.enter_local(id, &producer, Arc::new(meta));
    Ok(GenerationLog::Shared(producer))
}

/// Frees a key that may have been claimed, once the log answers.
pub(super) async fn release_later(store: Arc<dyn LogStore>, claim: ClaimKey, id: StreamId) {
    const ATTEMPTS: u32 = 30;
    for _ in 0..ATTEMPTS {
        sleep(RELEASE_PAUSE).await;
        if store.release(&claim, &id).await.is_ok() {
            return;
        }
    }
}

/// Frees the key of a request that was refused.
pub(super) fn release(
    store: Arc<dyn LogStore>,
    claim: ClaimKey,
    id: StreamId,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if let Err(error) = store.release(&claim, &id).await {
            tracing::warn!(%id, %error, "the idempotency key of a refused request could not be freed");
        }
    })
}

/// Sends the request from within the generation.
pub(super) fn start_later(launch: Launch) -> Start {
    // A cancel may come before it is sent.
    launch.announce_singles();
    Box::pin(async move {
        match launch.send().await {
            Ok(Launched::Stream { started, .. }) => Ok(started),
            // Nobody waits for the answer as it is, so a provider that does not stream is read as well.
            Ok(Launched::Whole(whole)) => {
                let whole = whole
                    .buffered(launch.request.memory())
                    .await
                    .map_err(RefusedError::from)?;
                launch
                    .completion(&whole)
                    .ok_or_else(|| whole.refused_error())
            }
            Err(error) => Err(error.into()),
        }
    })
}
