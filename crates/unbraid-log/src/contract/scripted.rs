//! A log of several gateways in memory, which fails as a test says. It shares no code with the log in memory, and its
//! rules are those of the traits, written as simply as possible.
//!
//! The tests of producers and followers use it, and those of gateways that share a log.

mod log;
mod writer;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

pub use self::log::TestLog;
use crate::{
    End, LogStatus, Meta, Record, Seq, StreamEnd, StreamId,
    commands::{CommandQueue, CommandSender},
};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails at once, and changes nothing.
    Down,
    /// It is refused because the log is full, and changes nothing.
    Full,
    /// Another program has written something else in place of the stream.
    Foreign,
    /// It gets no answer, and changes nothing.
    Hang,
    /// It is carried out, but gets no answer.
    LostAnswer,
    /// It gets no answer, and is carried out after this time.
    Late(Duration),
    /// It takes this time.
    Slow(Duration),
    /// It is carried out, and its answer takes this time.
    SlowAnswer(Duration),
}

/// The streams, and the gateways that use them.
#[derive(Clone)]
pub struct Engine {
    state: Arc<Mutex<State>>,
    pub(super) lease: Duration,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) streams: HashMap<StreamId, Stream>,
    pub(super) claims: HashMap<String, Held>,
    /// Until when it may lack streams.
    pub(super) lacks_until: Option<Instant>,
    pub(super) gateways: Vec<CommandSender>,
}

/// Who holds a claim.
pub(super) struct Held {
    pub(super) id: StreamId,
    pub(super) fingerprint: [u8; 32],
    /// When it ends, unless it is repeated. A claim whose stream is open does not.
    pub(super) until: Option<Instant>,
}

pub(super) struct Stream {
    pub(super) meta: Arc<Meta>,
    pub(super) owner: usize,
    pub(super) records: Vec<Record>,
    pub(super) end: Option<StreamEnd>,
    pub(super) is_erased: bool,
    pub(super) lease_until: Instant,
    /// When it expires, the same for every gateway that asks.
    pub(super) expires: SystemTime,
}

impl Stream {
    fn new(meta: Arc<Meta>, owner: usize, lease: Duration) -> Self {
        Self {
            meta,
            owner,
            records: Vec::new(),
            end: None,
            is_erased: false,
            lease_until: Instant::now() + lease,
            expires: SystemTime::now() + Duration::from_secs(3600),
        }
    }

    pub(super) fn tail(&self) -> Seq {
        self.records.last().map_or(Seq::START, Record::last)
    }

    pub(super) fn status(&self) -> LogStatus {
        let meta = Arc::clone(&self.meta);
        let tail = self.tail();
        match &self.end {
            _ if self.is_erased => LogStatus::Expired { meta },
            Some(end) => LogStatus::Ended {
                meta,
                tail,
                end: end.clone(),
                expires: self.expires,
            },
            None => LogStatus::Running { meta, tail },
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("streams", &self.state().streams.len())
            .finish_non_exhaustive()
    }
}

// Hidden as the whole module is, which is reached through `internal` only.
#[doc(hidden)]
impl Engine {
    /// An engine whose producers may be silent for this long.
    pub fn new(lease: Duration) -> Self {
        Self {
            state: Arc::default(),
            lease,
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics under the lock")
    }

    /// Connects a gateway.
    pub fn gateway(&self) -> Arc<TestLog> {
        let commands = CommandQueue::default();
        let mut state = self.state();
        state.gateways.push(commands.sender());
        let number = state.gateways.len() - 1;
        Arc::new(TestLog::new(self.clone(), number, commands))
    }

    /// Forgets the last records of every stream, and its seal.
    pub fn lose(&self, records: usize) {
        for stream in self.state().streams.values_mut() {
            let kept = stream.records.len().saturating_sub(records);
            stream.records.truncate(kept);
            stream.end = None;
        }
    }

    /// Forgets the first record of every stream: a fault that nothing repairs.
    pub fn lose_first(&self) {
        for stream in self.state().streams.values_mut() {
            if !stream.records.is_empty() {
                stream.records.remove(0);
            }
        }
    }

    /// Says for this long that it may lack streams, as an engine does after an outage.
    pub fn lack_streams(&self, time: Duration) {
        self.state().lacks_until = Some(Instant::now() + time);
    }

    /// The streams that hold a claim.
    pub fn holders(&self) -> Vec<StreamId> {
        let state = self.state();
        state.claims.values().map(|held| held.id.clone()).collect()
    }

    /// Forgets everything.
    pub fn empty(&self) {
        let mut state = self.state();
        state.streams.clear();
        state.claims.clear();
    }

    /// The numbers of the records of a stream.
    pub fn spans(&self, id: &StreamId) -> Vec<(u64, u64)> {
        let state = self.state();
        let records = state.streams.get(id).map_or(&[][..], |s| &s.records);
        let spans = records
            .iter()
            .map(|record| (record.first().0, record.last().0));
        spans.collect()
    }

    /// The payloads of a stream.
    pub fn payloads(&self, id: &StreamId) -> Vec<String> {
        let state = self.state();
        let records = state.streams.get(id).map_or(&[][..], |s| &s.records);
        payloads(records)
    }

    /// How a stream ended, if it is sealed.
    pub fn end(&self, id: &StreamId) -> Option<End> {
        let state = self.state();
        state.streams.get(id)?.end.as_ref().map(|end| end.end)
    }
}

/// The payloads of records.
pub fn payloads(records: &[Record]) -> Vec<String> {
    let events = records.iter().flat_map(Record::events);
    events
        .map(|(_, event)| String::from_utf8_lossy(event.payload().unwrap_or_default()).into_owned())
        .collect()
}
