//! `RedisLog`: the log in Redis.

use std::{fmt, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};
use tokio::time::timeout;
use unbraid_log::{
    Claim, ClaimKey, Command, LogError, LogStatus, LogStore, LogWriter, Meta, Record, Seq, StreamId,
};

use crate::{
    ConnectError, RedisOptions,
    address::Address,
    background::Background,
    error::Failure,
    hub::Hub,
    inbox::Inbox,
    inner::{Inner, MetaTtl, within_a_second},
    keys::Keys,
    link::{CONNECT, Link, connect},
    reader, server,
    writer::RedisWriter,
};

/// A lease is much shorter than the day by which the meta data of a stream that runs are kept longer than those of one that is over.
const LONGEST_LEASE: Duration = Duration::from_secs(3600);

/// A log in Redis or Valkey, 7.0 or later. `Clone` is cheap, and all clones share their connections.
///
/// Dropping the last clone, writer and reader closes the connections, and ends nothing else.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use unbraid_log::LogStore;
/// use unbraid_log_redis::{RedisLog, RedisOptions};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = RedisOptions::default().with_prefix("answers");
/// let log = RedisLog::connect("redis://127.0.0.1:6379", options).await?;
/// for warning in log.warnings() {
///     eprintln!("warning: {warning}");
/// }
/// println!("commands for {} arrive here", log.gateway());
/// let log: Arc<dyn LogStore> = Arc::new(log);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisLog {
    inner: Arc<Inner>,
}

impl RedisLog {
    /// Connects to a server, and checks it: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]`, `rediss://` with TLS, or
    /// `unix:///PATH[?db=DB&user=USER&pass=PASSWORD]`; `valkey` and `valkeys` are accepted, too.
    ///
    /// After that the log reconnects by itself, and resolves the host's name again each time.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]. It takes at most six seconds.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection; nothing is written.
    pub async fn connect(url: &str, options: RedisOptions) -> Result<Self, ConnectError> {
        let prefix = &options.prefix;
        if prefix.is_empty() || prefix.contains(['{', '}']) || prefix.contains(char::is_control) {
            return Err(ConnectError::InvalidOption {
                reason: "the prefix is empty, or contains a brace or a control character",
            });
        }
        if options.lease > LONGEST_LEASE {
            return Err(ConnectError::InvalidOption {
                reason: "the lease is longer than an hour",
            });
        }
        let address = Address::parse(url, options.root_certificates.as_deref())?;
        let address = Arc::new(address);
        let connected = connect(&address).await;
        let connection = connected.map_err(|failure| server::connect_error(failure, &address))?;
        let checked = timeout(CONNECT, server::check(&connection, &address, &options)).await;
        let warnings =
            checked.unwrap_or_else(|_| Err(server::connect_error(Failure::Timeout, &address)))?;
        let gateway = match &options.gateway {
            Some(gateway) => gateway.clone(),
            None => random_name()?,
        };
        let keys = Keys::new(options.prefix.clone(), gateway);
        let inner = Inner {
            link: Link::new(address, connection),
            keys,
            hub: Hub::new(options.lease, MetaTtl::new(&options)),
            inbox: Inbox::new(),
            heartbeat: Background::default(),
            options,
            warnings,
        };
        inner.keep_in_contact();
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// What the server should be configured differently for, as sentences for its operator.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.inner.warnings.clone()
    }

    /// The name under which this gateway receives commands.
    #[must_use]
    pub fn gateway(&self) -> &str {
        self.inner.keys.gateway()
    }
}

/// 128 random bits, as text.
fn random_name() -> Result<String, ConnectError> {
    let id = StreamId::random().map_err(|_| ConnectError::InvalidOption {
        reason: "the operating system provides no random numbers for the gateway's name",
    })?;
    Ok(id.as_str().to_owned())
}

impl LogStore for RedisLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        let open = async {
            // An attempt whose answer was lost is recognized by it.
            let nonce = StreamId::random()?.as_str().to_owned();
            self.inner.create(id, meta, &nonce).await?;
            let log = Arc::clone(&self.inner);
            let writer = RedisWriter::new(log, id.clone(), meta, nonce);
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        };
        within_a_second(open).boxed()
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        let reopen = async {
            let nonce = StreamId::random()?.as_str().to_owned();
            let log = Arc::clone(&self.inner);
            let writer = RedisWriter::new(log, id.clone(), meta, nonce);
            // It also creates the stream that the server has lost.
            match writer.renew_lease().await {
                Ok(()) => Ok(Box::new(writer) as Box<dyn LogWriter>),
                Err(LogError::Sealed | LogError::Expired) => Err(LogError::Exists),
                Err(error) => Err(error),
            }
        };
        within_a_second(reopen).boxed()
    }

    fn backend(&self) -> &'static str {
        "redis"
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        reader::read(Arc::clone(&self.inner), id.clone(), after)
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        async { Ok(self.inner.find(id).await?.status) }.boxed()
    }

    fn may_lack_streams(&self) -> BoxFuture<'_, bool> {
        self.inner.may_lack_streams().boxed()
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        within_a_second(self.inner.seal_lost(id)).boxed()
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        within_a_second(self.inner.erase(id)).boxed()
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        within_a_second(self.inner.claim(key, id)).boxed()
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.inner.release(key, id).boxed()
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        within_a_second(self.inner.send_command(id, command)).boxed()
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.inner.received_commands().stream()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.inner.received_commands().stream_of(id)
    }
}

impl fmt::Debug for RedisLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisLog")
            .field("address", &self.inner.link.address().to_string())
            .field("gateway", &self.gateway())
            .field("options", &self.inner.options)
            .finish_non_exhaustive()
    }
}
