//! Opens a stream for a request, and starts its generation.

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::timeout;
use unbraid_log::{ClaimKey, LogError, Meta, StreamId};

use crate::{
    api_error::ApiError,
    auth::{keys::Principal, links::unix_now},
    fan_out::{Launch, Launched},
    gateway::Gateway,
    generation::{Generation, GenerationArgs, RefusedError, Start},
    streams::{ReaderPermit, StreamPermit},
    views::log_error,
};

/// How long the log may take to open a stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// A stream that is about to be opened.
pub(super) struct Opening {
    pub(super) id: StreamId,
    pub(super) principal: Principal,
    pub(super) permit: StreamPermit,
    pub(super) endpoint: &'static str,
    pub(super) claim: Option<ClaimKey>,
    pub(super) orphan_after: Option<Duration>,
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
        let fan_out = self.launch.fans_out();
        let owner = Some(self.principal.name()).filter(|name| !name.is_empty());
        let meta = Meta::new(self.endpoint, unix_now())
            .with_owner(owner.map(str::to_owned))
            .with_model(request.model_field())
            .with_n(n.then_some(choices))
            .with_fan_out(fan_out)
            .with_claim(self.claim.clone());
        let opened = timeout(OPEN_TIMEOUT, inner.store.open(&self.id, &meta)).await;
        let opened = opened.unwrap_or_else(|_| Err(LogError::unavailable("opening took too long")));
        let writer = opened.map_err(log_error)?;
        let (registration, commands) =
            self.permit
                .register(self.id.clone(), self.endpoint, fan_out);
        let reader = inner.streams.connect(&self.id)?;
        let on_refused = self
            .claim
            .map(|claim| release(gateway.clone(), claim, self.id));
        let args = GenerationArgs {
            start,
            writer,
            registration,
            commands,
            endpoint: self.endpoint,
            expected: choices,
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

/// Frees the key of a request that was refused.
pub(super) fn release(gateway: Gateway, claim: ClaimKey, id: StreamId) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        if let Err(error) = gateway.inner.store.release(&claim, &id).await {
            tracing::warn!(%id, %error, "the idempotency key of a refused request could not be freed");
        }
    })
}

/// Sends the request from within the generation.
pub(super) fn start_later(launch: Launch) -> Start {
    Box::pin(async move {
        match launch.send().await {
            Ok(Launched::Stream { started, .. }) => Ok(started),
            // Nobody waits for the answer as it is, so a provider that does not stream is read as well.
            Ok(Launched::Whole(whole)) => {
                let whole = whole.buffered().await.map_err(RefusedError::from)?;
                launch
                    .completion(&whole)
                    .ok_or_else(|| whole.refused_error())
            }
            Err(error) => Err(error.into()),
        }
    })
}
