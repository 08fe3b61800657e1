//! `Address`: where the server is, and how a connection to it is established.

mod tls;

use std::{io, path::PathBuf, sync::Arc};

use redis::{
    AsyncConnectionConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo,
    aio::MultiplexedConnection, parse_redis_url,
};
use rustls::{ClientConfig, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    task::AbortHandle,
};
use tokio_rustls::TlsConnector;

use crate::{ConnectError, error::Failure};

/// The address of a server. It keeps the host's name: an address that was resolved once is that of the old server after a
/// failover.
pub(crate) struct Address {
    target: Target,
    login: RedisConnectionInfo,
    tls: Option<(ServerName<'static>, Arc<ClientConfig>)>,
}

enum Target {
    Tcp(String, u16),
    Unix(PathBuf),
}

/// A connection whose requests are answered in their order. Dropping it closes the connection, whatever was requested.
pub(crate) struct Connection {
    pub(crate) commands: MultiplexedConnection,
    driver: AbortHandle,
}

impl Connection {
    /// Whether nothing drives it any more: it was closed, or its runtime was shut down.
    pub(crate) fn is_over(&self) -> bool {
        self.driver.is_finished()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A blocked request would keep the connection open until it is answered.
        self.driver.abort();
    }
}

impl Address {
    pub(crate) fn parse(url: &str, roots: Option<&[u8]>) -> Result<Self, ConnectError> {
        let invalid = |reason| ConnectError::InvalidUrl { reason };
        let mut url = parse_redis_url(url).ok_or_else(|| {
            invalid("expected redis://HOST:PORT, rediss://HOST:PORT or unix:///PATH")
        })?;
        let is_tls = matches!(url.scheme(), "rediss" | "valkeys");
        if is_tls {
            // The client library has no TLS here, so it does not accept the scheme.
            url.set_scheme("redis")
                .map_err(|()| invalid("the scheme is not one of Redis"))?;
        }
        if url.fragment().is_some() {
            return Err(invalid("a fragment has no meaning here"));
        }
        // Its errors name no part of the URL, which may contain a password.
        let info: ConnectionInfo = url
            .into_connection_info()
            .map_err(|_| invalid("the host, the database or the user is invalid"))?;
        let target = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Target::Tcp(host.clone(), *port),
            ConnectionAddr::Unix(path) => Target::Unix(path.clone()),
            _ => return Err(invalid("the address is of an unknown kind")),
        };
        let tls = match &target {
            Target::Tcp(host, _) if is_tls => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| invalid("the host is not a name of a certificate"))?;
                Some((name, tls::config(roots)?))
            }
            Target::Tcp(..) | Target::Unix(_) => None,
        };
        let login = info.redis_settings().clone().set_skip_set_lib_name();
        Ok(Self { target, login, tls })
    }

    /// Resolves the name, and connects. Only the caller limits the time.
    pub(crate) async fn connect(&self) -> Result<Connection, Failure> {
        match (&self.target, &self.tls) {
            (Target::Tcp(host, port), None) => self.log_in(connect_tcp(host, *port).await?).await,
            (Target::Tcp(host, port), Some((name, config))) => {
                let tcp = connect_tcp(host, *port).await?;
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector.connect(name.clone(), tcp).await;
                self.log_in(stream.map_err(|error| tls::failure(&error))?)
                    .await
            }
            #[cfg(unix)]
            (Target::Unix(path), _) => {
                let stream = tokio::net::UnixStream::connect(path).await;
                self.log_in(stream.map_err(|error| Failure::from_io(&error))?)
                    .await
            }
            #[cfg(not(unix))]
            (Target::Unix(_), _) => Err(Failure::Connection(
                "this system has no Unix sockets".to_owned(),
            )),
        }
    }

    async fn log_in<S>(&self, stream: S) -> Result<Connection, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Each call has a limit of its own, over all its attempts.
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(None)
            .set_pipeline_buffer_size(512);
        let (commands, driver) =
            MultiplexedConnection::new_with_config(&self.login, stream, config).await?;
        let driver = tokio::spawn(driver).abort_handle();
        Ok(Connection { commands, driver })
    }
}

async fn connect_tcp(host: &str, port: u16) -> Result<TcpStream, Failure> {
    let resolved = lookup_host((host, port)).await;
    let addresses: Vec<_> = resolved
        .map_err(|_| Failure::Connection("the host's name cannot be resolved".to_owned()))?
        .collect();
    let connect = async {
        let stream = TcpStream::connect(&addresses[..]).await?;
        // A record is small, and its producer waits for the acknowledgement.
        stream.set_nodelay(true)?;
        io::Result::Ok(stream)
    };
    connect.await.map_err(|error| Failure::from_io(&error))
}

/// Shows no user and no password.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.target {
            Target::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Target::Tcp(host, port) => write!(f, "{host}:{port}"),
            Target::Unix(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Result<&str, &str>) {
        let parsed = Address::parse(url, None);
        let shown = parsed.map(|address| address.to_string());
        let expected = expected.map(str::to_owned);
        match (shown, expected) {
            (Err(ConnectError::InvalidUrl { reason }), Err(part)) => {
                assert!(reason.contains(part), "{reason}");
            }
            (shown, expected) => assert_eq!(shown.ok(), expected.ok(), "{url}"),
        }
    }

    #[test]
    fn urls_of_redis_and_valkey_are_accepted() {
        check("redis://h", Ok("h:6379"));
        check("valkey://user:secret@h:1/2", Ok("h:1"));
        check("rediss://:secret@h:1", Ok("h:1"));
        check("redis://[::1]:1", Ok("[::1]:1"));
        check("unix:///run/r.sock?db=1", Ok("/run/r.sock"));
    }

    #[test]
    fn another_url_is_refused_and_not_repeated() {
        check("h:6379", Err("expected redis://"));
        check("http://h", Err("expected redis://"));
        check("redis://:secret@h/x", Err("database"));
        check("redis://0.0.0.0", Err("host"));
        check("rediss://h/#insecure", Err("fragment"));
        check("", Err("expected redis://"));
    }
}
