//! `Gateway`: everything behind the socket, as a tower service.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{Router, body::Body};
use bytes::Bytes;
use futures::StreamExt;
use http::{Request, Response};
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower_service::Service;
use unbraid_log::{LogStore, MemoryLog, MemoryOptions};

use crate::{
    api_error::ApiError,
    auth::{Auth, cors::Cors, hosts::AllowedHosts, keys::KeyRing, links::LinkSigner},
    bodies::BodyMemory,
    config::{Config, GatewayBuilder, OnLogFailure, Options},
    decoding::Decoding,
    error::BuildError,
    fan_out::models::SingleChoiceModels,
    generation::Supervisor,
    idempotency::PendingRequests,
    limits::{DISCARD_BYTES, MIN_LINK_SECRET},
    metrics::Metrics,
    reader::stalls::Stalls,
    routes,
    streams::{Command, StreamLimits, Streams},
    upstream::Upstream,
    views::{Views, WriteCheck, WriteReports},
};

/// A gateway: it forwards requests to one upstream, and keeps the answers as streams.
///
/// It is a tower service ([`service`](Self::service)), which an axum application mounts under its own router, or which
/// [`Server`](crate::Server) serves on a socket. `Clone` gives another handle of the same gateway. Dropping the last
/// handle, service and response ends all generations as `producer_lost`. The body of a response that follows a stream keeps
/// the gateway, and so does a request with an `Idempotency-Key` until its answer begins, although its client may have left.
///
/// # Examples
///
/// ```
/// use axum::Router;
/// use unbraid_gateway::Gateway;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unbraid_gateway::BuildError> {
/// let gateway = Gateway::builder("http://127.0.0.1:8000/v1").public_path("/llm").build()?;
/// let app: Router = Router::new().nest_service("/llm", gateway.service());
/// assert!(gateway.metrics().contains("unbraid_streams_running 0"));
/// gateway.reload_keys()?; // nothing to do without an auth file
/// gateway.drain(); // new requests get 503
/// gateway.all_ended().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Gateway {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) options: Options,
    pub(crate) store: Arc<dyn LogStore>,
    pub(crate) views: Views,
    pub(crate) decoding: Decoding,
    pub(crate) bodies: BodyMemory,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) auth: Auth,
    pub(crate) streams: Streams,
    pub(crate) stalls: Stalls,
    pub(crate) models: Arc<SingleChoiceModels>,
    pub(crate) pending: PendingRequests,
    pub(crate) metrics: Metrics,
    pub(crate) writes: Arc<WriteReports>,
    write_check: WriteCheck,
    pub(crate) supervisor: Supervisor,
    /// Cancelled once the gateway drains.
    pub(crate) drain: CancellationToken,
    memory: Option<MemoryLog>,
    /// Ends the task that takes commands.
    _commands: DropGuard,
}

/// Ends a task when it is dropped.
struct DropGuard(tokio::task::AbortHandle);

impl Drop for DropGuard {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Gateway {
    /// Configures a gateway for an upstream: the base URL to which `chat/completions` is appended.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = unbraid_gateway::Gateway::builder("http://127.0.0.1:8000/v1");
    /// ```
    pub fn builder(upstream: impl Into<String>) -> GatewayBuilder {
        GatewayBuilder::new(upstream.into())
    }

    pub(crate) fn new(config: Config, hosts: AllowedHosts, cors: Cors) -> Result<Self, BuildError> {
        let supervisor = Supervisor::start()?;
        let backend = config
            .options
            .log
            .as_ref()
            .map_or("memory", |log| log.backend());
        let metrics = Metrics::new(backend);
        let options = config.options.clone();
        let keys = options
            .auth_file
            .as_deref()
            .map(KeyRing::read)
            .transpose()?;
        let upstream = Upstream::new(&config, keys.is_some(), metrics.clone())?;
        let links = LinkSigner::new(&link_secret(&options)?);
        let (store, memory) = match &options.log {
            Some(store) => (Arc::clone(store), None),
            None => {
                let memory = MemoryLog::new(memory_options(&options));
                (Arc::new(memory.clone()) as Arc<dyn LogStore>, Some(memory))
            }
        };
        let limits = StreamLimits {
            streams: options.max_streams,
            streams_per_principal: options.max_streams_per_principal,
            readers: options.max_readers,
        };
        let streams = Streams::new(limits, metrics.clone());
        let decoding = Decoding::default();
        let commands = tokio::spawn(take_commands(Arc::clone(&store), streams.clone()));
        Ok(Self {
            inner: Arc::new(Inner {
                views: Views::new(
                    Arc::clone(&store),
                    memory.clone(),
                    streams.clone(),
                    options.lease,
                    decoding.clone(),
                ),
                decoding,
                bodies: BodyMemory::new(options.max_memory),
                store,
                upstream: Arc::new(upstream),
                auth: Auth {
                    keys,
                    hosts,
                    cors,
                    links,
                },
                streams,
                stalls: Stalls::new(options.reader_stall),
                models: Arc::default(),
                pending: PendingRequests::default(),
                writes: Arc::new(WriteReports::new(metrics.clone())),
                write_check: WriteCheck::default(),
                metrics,
                supervisor,
                drain: CancellationToken::new(),
                memory,
                options,
                _commands: DropGuard(commands.abort_handle()),
            }),
        })
    }

    /// Returns the gateway as a tower service. It is always ready.
    #[must_use]
    pub fn service(&self) -> GatewayService {
        self.service_for(false)
    }

    pub(crate) fn service_for(&self, metrics_only: bool) -> GatewayService {
        let router = if metrics_only {
            routes::metrics_router(self.clone())
        } else {
            routes::router(self.clone())
        };
        GatewayService { router }
    }

    /// Returns the metrics in the OpenMetrics text format.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.inner.metrics.set_log_bytes(self.bytes() as u64);
        self.inner.metrics.encode()
    }

    /// Reads the auth file again. If that fails, the keys stay as they were.
    ///
    /// # Errors
    ///
    /// [`BuildError::File`], [`BuildError::AuthFile`] and [`BuildError::SharedKey`].
    pub fn reload_keys(&self) -> Result<(), BuildError> {
        self.inner
            .auth
            .keys
            .as_ref()
            .map_or(Ok(()), KeyRing::reload)
    }

    /// Starts to drain: new POSTs get 503, `/readyz` too, and views close between two events. Generations continue.
    pub fn drain(&self) {
        self.inner.drain.cancel();
    }

    /// Waits until no generation runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn all_ended(&self) {
        self.inner.streams.all_ended().await;
    }

    /// Ends every generation as `producer_lost`, and waits for the seals at most for a second. If the gateway
    /// drains, requests that still wait for the upstream's response are then answered with 503, and nothing more is sent to the
    /// upstream.
    ///
    /// # Examples
    ///
    /// ```
    /// # async fn example(gateway: unbraid_gateway::Gateway) {
    /// gateway.drain();
    /// gateway.end_as_lost().await;
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// The generations end although the future is dropped.
    pub async fn end_as_lost(&self) {
        self.inner.streams.end_as_lost();
        let _timed_out = timeout(Duration::from_secs(1), self.inner.streams.all_sealed()).await;
        // After the seals, so that no generation whose request waits ends with this error.
        if self.is_draining() {
            self.inner.upstream.stop();
        }
    }

    pub(crate) fn reader_stall(&self) -> Duration {
        self.inner.options.reader_stall
    }

    /// Bytes of a refused request's body that are read: a body that is not much too large is.
    pub(crate) fn max_discarded(&self) -> usize {
        let max_body = self.inner.options.max_body;
        max_body.saturating_add(DISCARD_BYTES)
    }

    pub(crate) fn drain_timeout(&self) -> Duration {
        self.inner.options.drain
    }

    /// The memory of all streams: of those that the memory log keeps, or of those of a shared log that this gateway
    /// produces or reads.
    fn bytes(&self) -> usize {
        match &self.inner.memory {
            Some(memory) => memory.bytes(),
            None => self.inner.streams.local_bytes() + self.inner.views.followed_bytes(),
        }
    }

    /// Whether there is room for a stream. The memory log frees what it can; a shared log keeps nothing here but what runs, is
    /// read, or could not be written yet, and its streams have one limit with the bodies of requests.
    pub(crate) fn has_memory(&self) -> bool {
        match &self.inner.memory {
            Some(memory) => memory.make_room(),
            None => self.has_memory_for(0),
        }
    }

    /// Whether there is room for so many bytes of a request's body. With streams in memory, bodies have a limit of the same size
    /// of their own.
    pub(crate) fn has_memory_for(&self, bytes: usize) -> bool {
        let streams = match &self.inner.memory {
            Some(_) => 0,
            None => self.bytes(),
        };
        self.has_memory_for_bodies(streams.saturating_add(bytes))
    }

    /// Whether the bodies of requests, and so many bytes, take no more than the limit on memory.
    pub(crate) fn has_memory_for_bodies(&self, bytes: usize) -> bool {
        let bodies = self.inner.bodies.bytes().saturating_add(bytes);
        bodies as u64 <= self.inner.options.max_memory
    }

    /// The log of this process, unless streams are kept elsewhere.
    pub(crate) fn memory(&self) -> Option<&MemoryLog> {
        self.inner.memory.as_ref()
    }

    /// Whether a request can be kept: with the policy `fail` the log has to answer, and to take events. Otherwise the upstream
    /// would be paid for an answer that nobody gets.
    pub(crate) async fn check_log(&self) -> Result<(), ApiError> {
        if self.inner.options.on_log_failure == OnLogFailure::Degrade || self.memory().is_some() {
            return Ok(());
        }
        let Inner {
            views,
            store,
            writes,
            write_check,
            ..
        } = &*self.inner;
        views.check_log().await?;
        let takes_events = write_check.run(&**store, writes.failures()).await;
        takes_events.map_err(|error| views.refused(error))?;
        views.took_event();
        Ok(())
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.inner.drain.is_cancelled()
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("streams", &self.inner.streams)
            .field("is_draining", &self.is_draining())
            .finish_non_exhaustive()
    }
}

fn memory_options(options: &Options) -> MemoryOptions {
    MemoryOptions::default()
        .with_ttl(options.ttl)
        .with_lease(options.lease)
        .with_max_bytes(usize::try_from(options.max_memory).unwrap_or(usize::MAX))
}

fn link_secret(options: &Options) -> Result<Vec<u8>, BuildError> {
    if let Some(secret) = &options.link_secret {
        return match secret.len() {
            0..MIN_LINK_SECRET => Err(BuildError::LinkSecret),
            _ => Ok(secret.clone()),
        };
    }
    let mut secret = vec![0; 32];
    SystemRandom::new()
        .fill(&mut secret)
        .map_err(|_| BuildError::Random)?;
    Ok(secret)
}

/// Passes the commands that reach this gateway through the log on to the generations.
async fn take_commands(store: Arc<dyn LogStore>, streams: Streams) {
    let mut commands = store.commands();
    while let Some((id, command)) = commands.next().await {
        let Some(live) = streams.live(&id) else {
            continue;
        };
        match command {
            unbraid_log::Command::Cancel(choice) => live.send(Command::Cancel(choice, None)),
            unbraid_log::Command::Read => live.send(Command::ReadElsewhere),
            // That of a later version.
            _ => false,
        };
    }
}

/// A [`Gateway`] as a tower service for HTTP requests.
///
/// # Examples
///
/// ```
/// use http::{Request, StatusCode};
/// use tower_service::Service;
/// use unbraid_gateway::{Gateway, GatewayService};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), unbraid_gateway::BuildError> {
/// let mut service: GatewayService = Gateway::builder("http://127.0.0.1:8000/v1").build()?.service();
/// let request = Request::get("http://localhost/healthz").body(axum::body::Body::empty()).unwrap();
/// let response = service.call(request).await.unwrap();
/// assert_eq!(response.status(), StatusCode::OK);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct GatewayService {
    router: Router,
}

impl<B> Service<Request<B>> for GatewayService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.router.call(request.map(Body::new)))
    }
}

#[cfg(test)]
mod tests;
