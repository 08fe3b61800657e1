//! The running generations of this gateway, and the readers of all streams: what limits and commands need to find.

mod ended;
mod registration;
mod reports;

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::Instant,
};
use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Meta, Producer, StreamId};

use self::ended::EndedStreams;
pub(crate) use self::registration::Registration;
pub(crate) use self::reports::connect;
use crate::{
    api_error::ApiError,
    auth::keys::Principal,
    metrics::{Metrics, UpstreamState},
};

/// What the producer of a generation is asked for.
#[derive(Debug)]
pub(crate) enum Command {
    /// Cancel one choice, or all, and report what became of it.
    Cancel(Option<ChoiceIndex>, Option<oneshot::Sender<Cancelled>>),
    /// The last reader left at this time, so that the generation may be orphaned.
    ReaderLeft(Instant),
    /// Another gateway has a reader, or had one until now.
    ReadElsewhere,
    /// End as `producer_lost`, because the gateway exits.
    EndAsLost,
}

/// The result of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cancelled {
    /// How the choice ended: `cancelled`, or its earlier end.
    pub(crate) end: End,
    pub(crate) upstream: UpstreamState,
}

/// A running generation, as others see it.
pub(crate) struct Live {
    pub(crate) id: StreamId,
    commands: mpsc::UnboundedSender<Command>,
    readers: AtomicUsize,
    /// When the upstream was last read, in nanoseconds since the table was created.
    received: AtomicU64,
    base: Instant,
    /// Whether each choice is known to have a request of its own.
    fanned_out: AtomicBool,
}

impl Live {
    pub(crate) fn send(&self, command: Command) -> bool {
        self.commands.send(command).is_ok()
    }

    /// Cancels one choice or all; `None` if the generation ended meanwhile.
    pub(crate) async fn cancel(&self, choice: Option<ChoiceIndex>) -> Option<Cancelled> {
        let (reply, cancelled) = oneshot::channel();
        self.send(Command::Cancel(choice, Some(reply)));
        cancelled.await.ok()
    }

    pub(crate) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Acquire) > 0
    }

    /// Notes that the upstream was read.
    pub(crate) fn set_received(&self, now: Instant) {
        let nanos = now.duration_since(self.base).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.received.store(nanos, Ordering::Relaxed);
    }

    /// The time since the upstream was last read.
    pub(crate) fn since_received(&self, now: Instant) -> Duration {
        let received = Duration::from_nanos(self.received.load(Ordering::Relaxed));
        now.duration_since(self.base).saturating_sub(received)
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// All generations and readers of one gateway.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Shared>);

struct Shared {
    table: Mutex<Table>,
    running: watch::Sender<usize>,
    /// Generations, and streams that this gateway produces in a shared log which does not have their end yet.
    unsealed: watch::Sender<usize>,
    limits: StreamLimits,
    metrics: Metrics,
    base: Instant,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamLimits {
    pub(crate) streams: usize,
    pub(crate) streams_per_principal: usize,
    pub(crate) readers: usize,
}

#[derive(Default)]
struct Table {
    live: HashMap<StreamId, Arc<Live>>,
    /// The streams that this gateway produces in a shared log, until that has their end.
    local: HashMap<StreamId, LocalStream>,
    readers: HashMap<StreamId, usize>,
    /// Streams of other gateways whose readers here are reported to their producers.
    reported: HashSet<StreamId>,
    by_principal: HashMap<Principal, usize>,
    /// Those that had a request for each choice, although the log does not say so: its entry is written when a stream opens, and
    /// a provider may turn out to refuse or ignore `n` later. Only their status shows it.
    fanned_out: EndedStreams<()>,
    /// Those that the log did not take for as long as they are kept.
    given_up: EndedStreams<Arc<Meta>>,
}

/// A stream that this gateway produces in a shared log. Its readers here read its memory, and get what the log does not
/// have while it fails.
#[derive(Debug, Clone)]
pub(crate) struct LocalStream {
    pub(crate) producer: Arc<Producer>,
    pub(crate) meta: Arc<Meta>,
}

/// The place of a stream among those of this gateway. Dropping it says that the log has the stream's end.
#[derive(Debug)]
struct LocalGuard {
    streams: Streams,
    id: StreamId,
}

/// The right to run one generation.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Streams,
    principal: Principal,
}

/// A connected reader of a stream.
#[derive(Debug)]
pub(crate) struct ReaderPermit {
    streams: Streams,
    id: StreamId,
    live: Option<Arc<Live>>,
}

impl Streams {
    pub(crate) fn new(limits: StreamLimits, metrics: Metrics) -> Self {
        Self(Arc::new(Shared {
            table: Mutex::default(),
            running: watch::Sender::new(0),
            unsealed: watch::Sender::new(0),
            limits,
            metrics,
            base: Instant::now(),
        }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves a place for a generation.
    pub(crate) fn reserve(&self, principal: &Principal) -> Result<StreamPermit, ApiError> {
        let limits = self.0.limits;
        let mut table = self.table();
        let own = table.by_principal.get(principal).copied().unwrap_or(0);
        let all = *self.0.running.borrow();
        // Without keys, every request belongs to one principal without a name.
        let is_limited = !principal.name().is_empty();
        if (is_limited && own >= limits.streams_per_principal) || all >= limits.streams {
            return Err(ApiError::TOO_MANY_STREAMS);
        }
        *table.by_principal.entry(principal.clone()).or_default() += 1;
        self.0.running.send_modify(|running| *running += 1);
        Ok(StreamPermit {
            streams: self.clone(),
            principal: principal.clone(),
        })
    }

    /// Finds a running generation.
    pub(crate) fn live(&self, id: &StreamId) -> Option<Arc<Live>> {
        self.table().live.get(id).cloned()
    }

    /// Enters a stream of a shared log, until that has its end.
    pub(crate) fn enter_local(&self, id: &StreamId, producer: &Arc<Producer>, meta: Arc<Meta>) {
        let local = LocalStream {
            producer: Arc::clone(producer),
            meta,
        };
        self.table().local.insert(id.clone(), local);
        self.0.unsealed.send_modify(|unsealed| *unsealed += 1);
        producer.hold(LocalGuard {
            streams: self.clone(),
            id: id.clone(),
        });
    }

    /// Finds a stream of a shared log that this gateway produces.
    pub(crate) fn local(&self, id: &StreamId) -> Option<LocalStream> {
        self.table().local.get(id).cloned()
    }

    /// Whether a stream is known to be kept in this gateway only, because its log fails.
    pub(crate) fn is_degraded(&self, id: &StreamId) -> bool {
        self.local(id)
            .is_some_and(|local| local.producer.is_degraded())
    }

    /// The memory of the streams of a shared log that this gateway produces, in bytes.
    pub(crate) fn local_bytes(&self) -> usize {
        let table = self.table();
        let journals = table.local.values().map(|local| local.producer.journal());
        journals.map(|journal| journal.bytes()).sum()
    }

    /// Connects a reader to a stream, running or not.
    pub(crate) fn connect(&self, id: &StreamId) -> Result<ReaderPermit, ApiError> {
        let mut table = self.table();
        let readers = table.readers.get(id).copied().unwrap_or(0);
        if readers >= self.0.limits.readers {
            return Err(ApiError::TOO_MANY_READERS);
        }
        table.readers.insert(id.clone(), readers + 1);
        let live = table.live.get(id).cloned();
        if let Some(live) = &live {
            live.readers.fetch_add(1, Ordering::AcqRel);
        }
        Ok(ReaderPermit {
            streams: self.clone(),
            id: id.clone(),
            live,
        })
    }

    /// Whether each choice of a stream that this gateway produces, or has produced, has a request of its own.
    pub(crate) fn has_fanned_out(&self, id: &StreamId) -> bool {
        let table = self.table();
        match table.live.get(id) {
            Some(live) => live.fanned_out.load(Ordering::Relaxed),
            None => table.fanned_out.get(id).is_some(),
        }
    }

    /// The meta data of a stream of this gateway that its log did not take for as long as it is kept.
    pub(crate) fn given_up(&self, id: &StreamId) -> Option<Arc<Meta>> {
        self.table().given_up.get(id).cloned()
    }

    /// Waits until no generation runs, and a shared log has the ends of all.
    pub(crate) async fn all_ended(&self) {
        for mut count in [self.0.running.subscribe(), self.0.unsealed.subscribe()] {
            // The sender lives as long as this handle.
            let _always_open = count.wait_for(|count| *count == 0).await;
        }
    }

    /// Waits until every generation has ended and is sealed. Unlike [`all_ended`](Self::all_ended), it does not wait for what is
    /// only passed through.
    pub(crate) async fn all_sealed(&self) {
        let mut unsealed = self.0.unsealed.subscribe();
        let _always_open = unsealed.wait_for(|count| *count == 0).await;
    }

    /// The entries of every table, by its name.
    #[cfg(test)]
    pub(crate) fn entries(&self) -> [(&'static str, usize); 5] {
        let table = self.table();
        [
            ("live", table.live.len()),
            ("local", table.local.len()),
            ("readers", table.readers.len()),
            ("reported", table.reported.len()),
            ("principals", table.by_principal.len()),
        ]
    }

    /// Ends every generation as `producer_lost`.
    pub(crate) fn end_as_lost(&self) {
        for live in self.table().live.values() {
            live.send(Command::EndAsLost);
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("running", &*self.0.running.borrow())
            .finish_non_exhaustive()
    }
}

impl Drop for LocalGuard {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        let local = table.local.remove(&self.id);
        if let Some(local) = local.filter(|local| local.producer.has_given_up()) {
            table.given_up.insert(&self.id, local.meta);
        }
        drop(table);
        self.streams
            .0
            .unsealed
            .send_modify(|unsealed| *unsealed -= 1);
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        if let Some(count) = table.by_principal.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                table.by_principal.remove(&self.principal);
            }
        }
        drop(table);
        self.streams.0.running.send_modify(|running| *running -= 1);
    }
}

impl ReaderPermit {
    /// The time since the upstream of the stream was last read, if it is read by this gateway.
    pub(crate) fn since_received(&self, now: Instant) -> Option<Duration> {
        self.live.as_ref().map(|live| live.since_received(now))
    }
}

impl Drop for ReaderPermit {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        if let Some(count) = table.readers.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                table.readers.remove(&self.id);
            }
        }
        drop(table);
        if let Some(live) = &self.live
            && live.readers.fetch_sub(1, Ordering::AcqRel) == 1
        {
            live.send(Command::ReaderLeft(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests;
