//! One blocking connection of the hub.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use redis::Value;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use unbraid_log::{LogError, StreamId};

use super::{Hub, State, Tail, lock};
use crate::{
    address::{Address, Connection},
    entry::{Content, Entry, EntryId, integer, parse_id, parse_streams},
    error::Failure,
    inner::{MetaTtl, NO_KEY},
    keys::Keys,
    link::{Backoff, Live, connect},
    script::{Request, TAIL},
};

/// How long the server waits for an entry.
const BLOCK: Duration = Duration::from_secs(2);

/// After this time without an answer the connection is dead.
const ANSWER: Duration = Duration::from_secs(3);

/// How often the logs are compared with what was read of them.
const COMPARE: Duration = Duration::from_secs(5);

/// The shortest time between two requests: each names every log, so what arrives meanwhile is cheaper together.
const PACE: Duration = Duration::from_millis(2);

/// How many entries of one log an answer contains. There may be 128 logs with records of 512 KiB.
const COUNT: usize = 4;

/// The task of one connection.
pub(super) struct Task {
    number: u64,
    address: Arc<Address>,
    keys: Keys,
    state: Arc<Mutex<State>>,
    lease: Duration,
    meta_ttl: MetaTtl,
    /// The last entry of the wake-up key.
    woken: String,
    /// Since when there is no connection.
    broken_since: Option<Instant>,
}

impl Task {
    pub(super) fn new(number: u64, address: Arc<Address>, keys: Keys, hub: &Hub) -> Self {
        Self {
            number,
            address,
            keys,
            state: Arc::clone(&hub.state),
            lease: hub.lease,
            meta_ttl: hub.meta_ttl,
            woken: String::new(),
            broken_since: None,
        }
    }

    /// Follows the logs until there are none.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new();
        loop {
            let connected = connect(&self.address).await;
            let failure = match connected {
                Ok(connection) => match self.follow(connection, &mut backoff).await {
                    Ok(()) => return,
                    Err(failure) => failure,
                },
                Err(failure) => failure,
            };
            if self.broken_since.is_none() {
                let (address, reason) = (&self.address, failure.reason());
                tracing::warn!(%address, reason, "readers wait for a connection to Redis");
            }
            if self.give_up_or_retire() {
                return;
            }
            sleep(backoff.next()).await;
        }
    }

    /// Ends the followers after an outage that is longer than a lease: they decide whether they wait on. Returns whether the
    /// connection is not needed any more.
    fn give_up_or_retire(&mut self) -> bool {
        let since = *self.broken_since.get_or_insert_with(Instant::now);
        let mut state = lock(&self.state);
        if since.elapsed() > self.lease {
            let reason = "readers have no connection to the server";
            state.fail_all(self.number, &LogError::unavailable(reason));
        }
        state.retire(self.number)
    }

    /// Follows the logs until there are none, or the connection breaks.
    async fn follow(
        &mut self,
        connection: Connection,
        backoff: &mut Backoff,
    ) -> Result<(), Failure> {
        let live = Live::new(connection);
        // Whatever the key contains ends the first wait.
        self.woken = "0-0".to_owned();
        let mut compared: Option<Instant> = None;
        loop {
            let logs = lock(&self.state).snapshot(self.number);
            if logs.is_empty() && lock(&self.state).retire(self.number) {
                return Ok(());
            }
            if compared.is_none_or(|compared| compared.elapsed() >= COMPARE) {
                self.compare(&live, &logs).await?;
                compared = Some(Instant::now());
                // The positions may have changed.
                continue;
            }
            let started = Instant::now();
            match self.read(&live, &logs).await {
                Ok(()) => {
                    *backoff = Backoff::new();
                    self.broken_since = None;
                }
                // One key may be of another type; comparing finds it.
                Err(Failure::Server(code)) if code == "WRONGTYPE" => compared = None,
                Err(failure) => return Err(failure),
            }
            sleep_until(started + PACE).await;
        }
    }

    /// Waits for entries of the logs, and delivers them.
    async fn read(&mut self, live: &Live, logs: &[(StreamId, EntryId)]) -> Result<(), Failure> {
        let wake = self.keys.wake(self.number);
        let by_key: HashMap<Bytes, &StreamId> = logs
            .iter()
            .map(|(id, _)| (self.keys.stream(id).log.into(), id))
            .collect();
        let mut request = Request::command("XREAD")
            .arg(("COUNT", COUNT, "BLOCK"))
            .arg(u64::try_from(BLOCK.as_millis()).unwrap_or(1))
            .arg("STREAMS")
            .arg(&wake);
        for (id, _) in logs {
            request = request.arg(self.keys.stream(id).log);
        }
        request = request.arg(&self.woken);
        for (_, position) in logs {
            request = request.arg(position.to_string());
        }
        let answer = timeout(ANSWER, live.request(&request)).await;
        for (key, entries) in parse_streams(answer.unwrap_or(Err(Failure::Timeout))?)? {
            match by_key.get(&key) {
                Some(id) => self.deliver(id, entries)?,
                None => self.note_wake(entries)?,
            }
        }
        Ok(())
    }

    fn deliver(&self, id: &StreamId, entries: Value) -> Result<(), Failure> {
        // Decoded once for all readers, and before the lock is taken.
        let entries = Entry::parse_all(entries)?;
        let mut state = lock(&self.state);
        for entry in entries {
            let is_last = matches!(entry.content, Content::Seal { .. } | Content::Erased);
            state.deliver(id, entry, is_last);
        }
        Ok(())
    }

    fn note_wake(&mut self, entries: Value) -> Result<(), Failure> {
        let Value::Array(entries) = entries else {
            return Err(Failure::Answer);
        };
        if let Some(Value::Array(last)) = entries.into_iter().next_back() {
            let id = last.into_iter().next().ok_or(Failure::Answer)?;
            self.woken = parse_id(id)?.to_string();
        }
        Ok(())
    }

    /// Compares the logs with what was read of them.
    async fn compare(&self, live: &Live, logs: &[(StreamId, EntryId)]) -> Result<(), Failure> {
        let all = futures::future::join_all(logs.iter().map(|(id, _)| async move {
            let request = Request::script(&TAIL, &self.keys.stream(id).all());
            (id, live.request(&request).await)
        }));
        let all = timeout(ANSWER, all).await.map_err(|_| Failure::Timeout)?;
        for (id, answer) in all {
            let tail = match answer {
                Ok(answer) => parse_tail(answer, self.meta_ttl)?,
                Err(failure) if failure.is_wrong_type() => {
                    lock(&self.state).fail(id, LogError::from(failure));
                    continue;
                }
                Err(failure) => return Err(failure),
            };
            lock(&self.state).compare(id, tail, self.lease);
        }
        Ok(())
    }
}

/// A task that does not come to its end, because its runtime shuts down, leaves no follower waiting: they may be in another
/// runtime, and then read on there.
impl Drop for Task {
    fn drop(&mut self) {
        let error = LogError::unavailable("the connection of the readers is closed");
        lock(&self.state).remove(self.number, &error);
    }
}

fn parse_tail(answer: Value, meta_ttl: MetaTtl) -> Result<Tail, Failure> {
    let Value::Array(answer) = answer else {
        return Err(Failure::Answer);
    };
    let mut answer = answer.into_iter();
    let ttl = integer(&answer.next().ok_or(Failure::Answer)?)?;
    match answer.next() {
        Some(id) => Ok(Tail::Entry(parse_id(id)?)),
        None if meta_ttl.is_over(ttl) => Ok(Tail::Expired),
        None if ttl == NO_KEY => Ok(Tail::Missing),
        None => Ok(Tail::Lost),
    }
}
