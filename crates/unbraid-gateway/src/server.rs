//! Serves a gateway on a socket: HTTP/1.1, HTTP/2 and TLS on one port, and an end that does not wait for readers forever.

mod activity;
mod bare_errors;
mod connection;
mod guarded_io;
mod guarded_writes;
pub(crate) mod kill;
mod preface;
mod request_body;
mod shutdown;
mod tls;
mod workers;

use std::{future::Future, io, num::NonZero, path::Path, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};
use tokio_rustls::TlsAcceptor;

use self::{connection::Connection, guarded_writes::GuardedWrites, workers::Workers};
use crate::{
    error::BuildError,
    gateway::{Gateway, GatewayService},
};

/// How long the last events may take to reach readers after the drain's deadline.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Serves a [`Gateway`] on a socket of its own.
///
/// HTTP/1.1 and HTTP/2 (with prior knowledge, or by ALPN with TLS) share the port.
///
/// # Examples
///
/// ```
/// use tokio::net::TcpListener;
/// use unbraid_gateway::{Gateway, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = Gateway::builder("http://127.0.0.1:8000/v1").build()?;
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// // The second argument is a future that ends when the server is to drain, such as a signal.
/// Server::new(gateway).serve(listener, async {}).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use]
pub struct Server {
    gateway: Gateway,
    tls: Option<tls::Acceptor>,
    metrics_only: bool,
    workers: Option<NonZero<usize>>,
}

impl Server {
    /// Creates a server without TLS.
    pub fn new(gateway: Gateway) -> Self {
        Self {
            gateway,
            tls: None,
            metrics_only: false,
            workers: None,
        }
    }

    /// Secures connections with a certificate chain and its private key, both in PEM.
    ///
    /// # Errors
    ///
    /// [`BuildError::File`] and [`BuildError::Tls`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(gateway: unbraid_gateway::Gateway) -> Result<(), unbraid_gateway::BuildError> {
    /// let server = unbraid_gateway::Server::new(gateway).tls("cert.pem".as_ref(), "key.pem".as_ref())?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn tls(mut self, certificate: &Path, key: &Path) -> Result<Self, BuildError> {
        self.tls = Some(tls::Acceptor::read(certificate, key)?);
        Ok(self)
    }

    /// Serves only `/metrics`, without a key, for a socket that nobody else can reach.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(gateway: unbraid_gateway::Gateway) {
    /// let server = unbraid_gateway::Server::new(gateway).metrics_only();
    /// # }
    /// ```
    pub fn metrics_only(mut self) -> Self {
        self.metrics_only = true;
        self
    }

    /// Serves connections on so many threads of the server's own, in place of the runtime that calls
    /// [`serve`](Self::serve).
    ///
    /// Each thread has a runtime of its own, and a connection stays on its thread, with the generations that its requests start.
    /// So a delta crosses no thread, which takes less processor time than a runtime with several threads. `unbraid serve` has a
    /// thread for each core.
    ///
    /// The threads end with the server: a generation that still runs then ends as `producer_lost`.
    /// [`serve`](Self::serve) may return a moment before they have dropped their tasks. Tasks that follow a shared log for all
    /// readers run on them, too: give a gateway that others serve as well, or that is used after the server, no threads.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::{num::NonZero, thread::available_parallelism};
    ///
    /// # fn example(gateway: unbraid_gateway::Gateway) {
    /// let cores = available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    /// let server = unbraid_gateway::Server::new(gateway).workers(cores);
    /// # }
    /// ```
    pub fn workers(mut self, count: NonZero<usize>) -> Self {
        self.workers = Some(count);
        self
    }

    /// Serves connections until `shutdown` is ready, and then drains.
    ///
    /// While it drains, new connections are refused, idle ones close at once, views close between two events, and
    /// generations continue with the bodies of their POSTs. What still runs after the drain timeout ends as
    /// `producer_lost`. Servers of one gateway share the drain.
    ///
    /// # Errors
    ///
    /// That of a thread that cannot be started; none that a single connection causes.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the socket and all connections at once.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let (drain, drained) = watch::channel(false);
        let service = self.gateway.service_for(self.metrics_only);
        let workers = self.workers.map(Workers::start).transpose()?;
        let mut connections = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok((socket, _)) => {
                        let connection = self.connection(&service, drained.clone());
                        match workers.as_ref().and_then(Workers::place) {
                            None => connections.spawn(connection.serve(socket)),
                            Some((runtime, place)) => {
                                let served = workers::serve(connection, socket, place);
                                connections.spawn_on(served, &runtime)
                            }
                        };
                    }
                    // The usual error is too many open files. It passes when other connections close.
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(Duration::from_millis(20)).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        if self.metrics_only {
            return Ok(());
        }
        self.gateway.drain();
        // A receiver that is gone belongs to a connection that has closed.
        let _no_connections = drain.send(true);
        self.finish(connections).await;
        Ok(())
    }

    fn connection(&self, service: &GatewayService, drained: watch::Receiver<bool>) -> Connection {
        Connection {
            service: service.clone(),
            tls: self.tls.as_ref().map(tls::Acceptor::acceptor),
            stall: self.gateway.reader_stall(),
            stalls: self.gateway.inner.stalls.clone(),
            max_discarded: self.gateway.max_discarded(),
            drained,
        }
    }

    /// Waits for generations and connections, at most for the drain timeout.
    async fn finish(&self, mut connections: JoinSet<()>) {
        let deadline = Instant::now() + self.gateway.drain_timeout();
        let all_ended = async {
            self.gateway.all_ended().await;
            while connections.join_next().await.is_some() {}
        };
        tokio::select! {
            () = all_ended => return,
            () = sleep_until(deadline) => {}
        }
        self.gateway.end_as_lost().await;
        let closed = async { while connections.join_next().await.is_some() {} };
        // What remains is closed when the set is dropped.
        let _timed_out = tokio::time::timeout(LAST_EVENTS, closed).await;
    }
}

/// A socket, with or without TLS.
type Tls = tokio_rustls::server::TlsStream<GuardedWrites<TcpStream>>;
type MaybeTls = Option<TlsAcceptor>;

#[cfg(test)]
mod tests;
