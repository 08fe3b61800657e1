//! `NatsLog`: the log and its options.

use std::{fmt, future::ready, sync::Arc};

use futures::{FutureExt, future::BoxFuture, stream::BoxStream};
use unbraid_log::{
    Claim, ClaimKey, Command, LogError, LogStatus, LogStore, LogWriter, Meta, Record, Seq,
    StreamId, internal::CommandQueue,
};

use crate::{
    NatsError, NatsOptions,
    api::{Api, Store},
    commands,
    connection::Connection,
    inner::{Inner, within},
    names::{Names, is_token},
    permissions, probe, reader, streams, sweep,
};

/// A log in NATS JetStream, which any number of gateways on any number of machines share. `Clone` gives another handle.
///
/// Three tasks belong to it: one receives commands, one removes streams that have expired, and one asks the server whether it
/// is there while leases are looked at. They end when the last handle, writer and reader is dropped.
///
/// # Examples
///
/// ```no_run
/// use futures::StreamExt;
/// use unbraid_log::{End, Event, LogStore, Meta, RecordBuilder, Seq, StreamEnd, StreamId};
/// use unbraid_log_nats::{NatsLog, NatsOptions};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let log = NatsLog::connect("nats://127.0.0.1:4222", NatsOptions::default()).await?;
/// let id = StreamId::random()?;
/// let mut writer = log.open(&id, &Meta::new("/v1/chat/completions", 1_790_000_000)).await?;
/// let mut builder = RecordBuilder::new(Seq(1));
/// builder.push(&Event::chunk(&[0.into()], b"{}"));
/// while let Some(record) = builder.take() {
///     writer.append(&record).await?;
/// }
/// writer.seal(&StreamEnd::new(End::Finished)).await?;
///
/// let other = NatsLog::connect("nats://127.0.0.1:4222", NatsOptions::default()).await?;
/// assert_eq!(other.read(&id, Seq::START).count().await, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone)]
pub struct NatsLog {
    inner: Arc<Inner>,
    warnings: Arc<[String]>,
}

impl NatsLog {
    /// Connects to a server, and creates the two JetStream streams of the log unless they exist.
    ///
    /// The URL is `nats://HOST:PORT`, or `tls://`, with `USER:PASSWORD@` or `TOKEN@` before the host. Several servers are
    /// separated by commas.
    ///
    /// # Errors
    ///
    /// Every [`NatsError`]. Only the first connection has to succeed: a lost one is always made again.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the connection.
    pub async fn connect(url: &str, options: NatsOptions) -> Result<Self, NatsError> {
        let names = Names::new(&options.prefix)?;
        let gateway = gateway_name(&options)?;
        check_durations(&options)?;
        let connection = Connection::open(url, &options, &gateway).await?;
        let configs = streams::configs(&names, &options);
        let api = Api::new(connection, options.domain.as_deref(), configs);
        let needed = || names.permissions(options.domain.as_deref());
        let warnings = tokio::select! {
            biased;
            refusal = api.connection.refused() => return Err(refusal.into_error(needed())),
            warnings = prepare(&api, &names) => warnings?,
        };
        if let Some(refusal) = api.connection.refusal() {
            return Err(refusal.into_error(needed()));
        }
        let queue = CommandQueue::new(commands::CAPACITY);
        let sender = queue.sender();
        let inner = Arc::new(Inner::new(api, names, options, gateway, queue));
        tokio::spawn(commands::follow(Arc::downgrade(&inner), sender));
        tokio::spawn(sweep::run(Arc::downgrade(&inner)));
        let used = inner.leases_used();
        tokio::spawn(probe::run(Arc::downgrade(&inner), used));
        Ok(Self {
            inner,
            warnings: warnings.into(),
        })
    }

    /// What an operator should know about the server and the streams, as of the connection. Empty if there is nothing.
    ///
    /// A client cannot read the server's `sync_interval`: see the crate's documentation for what its default loses.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        self.warnings.to_vec()
    }

    /// The name of this gateway, to which commands are addressed.
    #[must_use]
    pub fn gateway(&self) -> &str {
        &self.inner.gateway
    }
}

/// Creates the streams of the log, and tries what the log does with them.
async fn prepare(api: &Api, names: &Names) -> Result<Vec<String>, NatsError> {
    api.check_jetstream().await?;
    let mut warnings = api.ensure_stream(Store::Log).await?;
    warnings.extend(api.ensure_stream(Store::Values).await?);
    permissions::try_all(api, names).await;
    Ok(warnings)
}

fn gateway_name(options: &NatsOptions) -> Result<String, NatsError> {
    let invalid = |reason| NatsError::InvalidOption {
        option: "gateway",
        reason,
    };
    match &options.gateway {
        Some(name) if is_token(name) => Ok(name.clone()),
        Some(_) => Err(invalid("1 to 64 of the characters A-Z, a-z, 0-9, _ and -")),
        None => {
            let random = StreamId::random();
            let random = random.map_err(|_| invalid("the system has no random numbers"))?;
            Ok(random.as_str().to_owned())
        }
    }
}

/// Times that JetStream can store, as nanoseconds in 63 bits.
fn check_durations(options: &NatsOptions) -> Result<(), NatsError> {
    let year = 366 * streams::DAY;
    let named = [
        ("ttl", options.ttl),
        ("lease", options.lease),
        ("claim_pending", options.claim_pending),
    ];
    for (option, duration) in named {
        if duration.is_zero() || duration > year {
            return Err(NatsError::InvalidOption {
                option,
                reason: "more than nothing, and at most a year",
            });
        }
    }
    Ok(())
}

impl LogStore for NatsLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        async move {
            let writer = within(self.inner.open(id, meta)).await?;
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        }
        .boxed()
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        async move {
            let writer = within(self.inner.reopen(id, meta)).await?;
            Ok(Box::new(writer) as Box<dyn LogWriter>)
        }
        .boxed()
    }

    fn backend(&self) -> &'static str {
        "nats"
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        reader::read(Arc::clone(&self.inner), id, after)
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        within(self.inner.status(id)).boxed()
    }

    fn may_lack_streams(&self) -> BoxFuture<'_, bool> {
        // A restart of the server ends every connection.
        ready(self.inner.api.connection.may_lack_streams()).boxed()
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        within(self.inner.seal_lost(id)).boxed()
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        within(self.inner.erase(id)).boxed()
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        within(self.inner.claim(key, id)).boxed()
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        within(self.inner.release(key, id)).boxed()
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.inner.send_command(id, command).boxed()
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.inner.commands.stream()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.inner.commands.stream_of(id)
    }
}

impl fmt::Debug for NatsLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsLog")
            .field("gateway", &self.inner.gateway)
            .field("link", &*self.inner.api.connection.link().borrow())
            .finish_non_exhaustive()
    }
}
