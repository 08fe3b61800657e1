//! One gateway's handle of the engine, and its writers.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use tokio::time::{Instant, sleep};

use super::{Engine, Fault, Held, State, Stream, writer::TestWriter};
use crate::{
    Claim, ClaimKey, Command, End, LogError, LogStatus, LogStore, LogWriter, Meta, Record, Seq,
    StreamEnd, StreamId, commands::CommandQueue,
};

/// How long a call takes that gets no answer.
const NO_ANSWER: Duration = Duration::from_secs(1);

/// How often a reader checks for new records.
const POLL: Duration = Duration::from_millis(5);

/// One gateway's handle of the engine.
#[derive(Clone)]
pub struct TestLog(Arc<Gateway>);

struct Gateway {
    engine: Engine,
    number: usize,
    faults: Mutex<Faults>,
    commands: CommandQueue,
}

#[derive(Default)]
struct Faults {
    /// What becomes of the next calls, one after the other.
    next: VecDeque<Option<Fault>>,
    /// What becomes of all further calls.
    rest: Option<Fault>,
    calls: usize,
}

impl fmt::Debug for TestLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TestLog").field(&self.0.number).finish()
    }
}

impl TestLog {
    pub(super) fn new(engine: Engine, number: usize, commands: CommandQueue) -> Self {
        Self(Arc::new(Gateway {
            engine,
            number,
            faults: Mutex::default(),
            commands,
        }))
    }

    /// The number of the gateway.
    pub(super) fn number(&self) -> usize {
        self.0.number
    }

    /// Sets what becomes of all further calls.
    pub fn set(&self, fault: impl Into<Option<Fault>>) {
        let mut faults = self.faults();
        faults.next.clear();
        faults.rest = fault.into();
    }

    /// Sets what becomes of the next calls.
    pub fn script(&self, next: impl IntoIterator<Item = Option<Fault>>) {
        self.faults().next.extend(next);
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.faults().calls
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        let faults = self.0.faults.lock();
        faults.expect("no test panics under the lock")
    }

    fn fault(&self) -> Option<Fault> {
        let mut faults = self.faults();
        faults.calls += 1;
        let rest = faults.rest;
        faults.next.pop_front().unwrap_or(rest)
    }

    fn is_down(&self) -> bool {
        let faults = self.faults();
        matches!(faults.rest, Some(Fault::Down | Fault::Hang))
    }

    pub(super) fn call<T: Send + 'static>(
        &self,
        apply: impl FnOnce(&mut State, Duration) -> Result<T, LogError> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, LogError>> {
        let (engine, fault) = (self.0.engine.clone(), self.fault());
        let apply = move || apply(&mut engine.state(), engine.lease);
        async move {
            match fault {
                None => return apply(),
                Some(Fault::Slow(time)) => {
                    sleep(time).await;
                    return apply();
                }
                Some(Fault::SlowAnswer(time)) => {
                    let result = apply();
                    sleep(time).await;
                    return result;
                }
                Some(Fault::Down) => {}
                Some(Fault::Full) => return Err(LogError::Full),
                Some(Fault::Foreign) => {
                    let what = "the key has another type";
                    return Err(LogError::InvalidRecord { what, offset: 0 });
                }
                Some(Fault::Hang) => sleep(NO_ANSWER).await,
                Some(Fault::LostAnswer) => {
                    let _lost = apply();
                    sleep(NO_ANSWER).await;
                }
                Some(Fault::Late(time)) => {
                    tokio::spawn(async move {
                        sleep(time).await;
                        let _late = apply();
                    });
                    sleep(NO_ANSWER).await;
                }
            }
            Err(LogError::unavailable("the test"))
        }
        .boxed()
    }

    fn open_stream(
        &self,
        id: &StreamId,
        meta: &Meta,
        may_exist: bool,
    ) -> BoxFuture<'static, Result<Box<dyn LogWriter>, LogError>> {
        let (log, owner, key) = (self.clone(), self.0.number, id.clone());
        let meta = Arc::new(meta.clone());
        let opened = self.call(move |state, lease| {
            if let Some(stream) = state.streams.get(&key) {
                let is_open = stream.end.is_none() && !stream.is_erased;
                return if may_exist && is_open {
                    Ok(())
                } else {
                    Err(LogError::Exists)
                };
            }
            if let Some(claim) = &meta.claim {
                let held = Held {
                    id: key.clone(),
                    fingerprint: claim.fingerprint,
                    until: None,
                };
                let current = state.claims.get(claim.name());
                if current.is_none_or(|current| current.id == key) {
                    state.claims.insert(claim.name().to_owned(), held);
                }
            }
            state.streams.insert(key, Stream::new(meta, owner, lease));
            Ok(())
        });
        let id = id.clone();
        opened
            .map(move |opened| {
                opened?;
                Ok(Box::new(TestWriter::new(log, id)) as Box<dyn LogWriter>)
            })
            .boxed()
    }
}

impl LogStore for TestLog {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        self.open_stream(id, meta, false)
    }

    fn reopen<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        self.open_stream(id, meta, true)
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        let start = (self.clone(), id.clone(), after, false);
        stream::unfold(start, |(log, id, cursor, is_over)| async move {
            if is_over {
                return None;
            }
            loop {
                let next = log.next_record(&id, cursor);
                match next {
                    Some(Ok(record)) => {
                        let cursor = record.last();
                        return Some((Ok(record), (log, id, cursor, false)));
                    }
                    Some(Err(LogError::Sealed)) => return None,
                    Some(Err(error)) => return Some((Err(error), (log, id, cursor, true))),
                    None => sleep(POLL).await,
                }
            }
        })
        .boxed()
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        let id = id.clone();
        self.call(move |state, _| {
            let stream = state.streams.get(&id);
            Ok(stream.map_or(LogStatus::Unknown, Stream::status))
        })
    }

    fn may_lack_streams(&self) -> BoxFuture<'_, bool> {
        let until = self.0.engine.state().lacks_until;
        let lacks = until.is_some_and(|until| until > Instant::now());
        Box::pin(async move { lacks })
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        let id = id.clone();
        self.call(move |state, _| {
            let Some(stream) = state.streams.get_mut(&id) else {
                return Ok(LogStatus::Unknown);
            };
            if stream.lease_until <= Instant::now() {
                stream
                    .end
                    .get_or_insert_with(|| StreamEnd::new(End::ProducerLost));
            }
            Ok(stream.status())
        })
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        let id = id.clone();
        self.call(move |state, _| {
            if let Some(stream) = state.streams.get_mut(&id) {
                stream.is_erased = true;
                stream.records.clear();
            }
            state.claims.retain(|_, held| held.id != id);
            Ok(())
        })
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        let (key, id) = (key.clone(), id.clone());
        self.call(move |state, lease| {
            let now = Instant::now();
            let until = Some(now + lease);
            if let Some(held) = state.claims.get_mut(key.name()) {
                if held.id == id {
                    held.until = held.until.and(until);
                    return Ok(Claim::Acquired);
                }
                let is_live = held.until.is_none_or(|until| until > now);
                let stream = state.streams.get(&held.id);
                if is_live && !stream.is_some_and(|stream| stream.is_erased) {
                    return Ok(Claim::Held {
                        id: held.id.clone(),
                        fingerprint: held.fingerprint,
                    });
                }
            }
            let fingerprint = key.fingerprint;
            let held = Held {
                id,
                fingerprint,
                until,
            };
            state.claims.insert(key.name().to_owned(), held);
            Ok(Claim::Acquired)
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        let (key, id) = (key.clone(), id.clone());
        self.call(move |state, _| {
            if state
                .claims
                .get(key.name())
                .is_some_and(|held| held.id == id)
            {
                state.claims.remove(key.name());
            }
            Ok(())
        })
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        let id = id.clone();
        self.call(move |state, _| {
            let owner = state.streams.get(&id).ok_or(LogError::Unknown)?.owner;
            // A gateway that is gone takes no commands.
            let _gone = state
                .gateways
                .get(owner)
                .map(|gateway| gateway.try_send((id, command)));
            Ok(())
        })
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.0.commands.stream()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.0.commands.stream_of(id)
    }
}

impl TestLog {
    /// The next record after a cursor; `Sealed` after the last one, and `None` if there is none yet.
    fn next_record(&self, id: &StreamId, cursor: Seq) -> Option<Result<Record, LogError>> {
        if self.is_down() {
            return Some(Err(LogError::unavailable("the test")));
        }
        let state = self.0.engine.state();
        let Some(stream) = state.streams.get(id) else {
            return Some(Err(LogError::Unknown));
        };
        if stream.is_erased {
            return Some(Err(LogError::Expired));
        }
        let next = stream.records.iter().find(|record| record.last() > cursor);
        match next {
            Some(record) => Some(Ok(record.clone())),
            None => stream.end.as_ref().map(|_| Err(LogError::Sealed)),
        }
    }
}
