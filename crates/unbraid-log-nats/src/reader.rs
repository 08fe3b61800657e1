//! `Reader`: replays and follows one stream.
//!
//! The server sends a copy of each stored message to a subject without storage (`republish`). A reader subscribes to it,
//! and reads what it has missed from the stream: so a followed stream costs the server one subscription, and no consumer.

use std::{cmp::Ordering, collections::VecDeque, mem, sync::Arc, time::Duration};

use async_nats::Subscriber;
use futures::{
    FutureExt, StreamExt,
    stream::{self, BoxStream},
};
use tokio::{
    sync::watch,
    task::unconstrained,
    time::{Instant, sleep, sleep_until, timeout},
};
use unbraid_log::{LogError, LogStatus, Record, Seq, StreamId};

use crate::{
    connection::{Link, SUBSCRIPTION_CAPACITY},
    entry::{Content, Entry, Live, events_after, expected_sequence},
    inner::{Inner, within},
    locate::Located,
    replay::Replay,
};

/// How long a reader waits for a connection that is lost, before it ends with a temporary error.
const OUTAGE: Duration = Duration::from_secs(2);

/// A subscriber can miss a message, so an idle reader compares the log's end at this interval.
const CHECK: Duration = Duration::from_secs(5);

/// The interval at which a reader checks whether the producer has repaired a log that was lost.
const REPAIR_CHECK: Duration = Duration::from_millis(200);

/// No connection has this number.
const UNWATCHED: u64 = u64::MAX;

/// A reader that lacks more messages than this reads them in batches.
const FEW: usize = 8;

/// After this many messages without a pause, a subscription may have been full, and may have dropped others.
const MANY: usize = SUBSCRIPTION_CAPACITY / 2;

enum Phase {
    /// The place of the cursor has to be found.
    Locate,
    /// Messages after `position` are read from the stream.
    Replay,
    /// All messages up to `position` were read.
    Follow,
    Ended,
}

struct Reader {
    log: Arc<Inner>,
    id: StreamId,
    phase: Phase,
    /// The last event that the caller has, or does not want.
    cursor: Seq,
    /// The number of the last message that was read.
    position: u64,
    live: Option<Subscriber>,
    /// Renewals of the producer's lease, once the reader follows it.
    renewals: Option<Subscriber>,
    /// The connection on which the lease was read.
    watched: u64,
    link: watch::Receiver<Link>,
    epoch: u64,
    /// Messages that were read and not processed.
    entries: VecDeque<Entry>,
    has_yielded: bool,
    /// Whether the stream was found once.
    was_found: bool,
    /// Whether the next entry is the one that a search for the cursor has found.
    is_located: bool,
    /// Live messages since the last pause.
    burst: usize,
    /// Messages that were replayed one by one since the reader was up to date.
    replayed: usize,
    /// Of a reader that is far behind.
    batches: Option<Replay>,
    /// When the end of the log is compared next.
    check: Instant,
}

pub(crate) fn read(
    log: Arc<Inner>,
    id: &StreamId,
    after: Seq,
) -> BoxStream<'static, Result<Record, LogError>> {
    let link = log.api.connection.link();
    let reader = Reader {
        id: id.clone(),
        phase: Phase::Locate,
        cursor: after,
        position: 0,
        live: None,
        renewals: None,
        watched: UNWATCHED,
        epoch: 0,
        link,
        entries: VecDeque::new(),
        has_yielded: false,
        was_found: false,
        is_located: false,
        burst: 0,
        replayed: 0,
        batches: None,
        check: Instant::now() + CHECK,
        log,
    };
    stream::unfold(reader, |mut reader| async move {
        let item = reader.next().await?;
        Some((item, reader))
    })
    .boxed()
}

impl Reader {
    async fn next(&mut self) -> Option<Result<Record, LogError>> {
        loop {
            while let Some(entry) = self.entries.pop_front() {
                match self.process(entry) {
                    Ok(Some(record)) => return Some(Ok(record)),
                    Ok(None) => {}
                    Err(error) => return self.fail(error),
                }
                if matches!(self.phase, Phase::Ended) {
                    return None;
                }
            }
            let done = match self.phase {
                Phase::Locate => self.locate().await,
                Phase::Replay => self.replay().await,
                Phase::Follow => self.follow().await,
                Phase::Ended => return None,
            };
            if let Err(error) = done {
                return self.fail(error);
            }
        }
    }

    fn fail(&mut self, error: LogError) -> Option<Result<Record, LogError>> {
        self.phase = Phase::Ended;
        (self.live, self.renewals) = (None, None);
        Some(Err(error))
    }

    /// Subscribes, so that nothing is missed, and then finds the place of the cursor.
    async fn locate(&mut self) -> Result<(), LogError> {
        if !self.link.borrow().is_up {
            return self.await_connection().await;
        }
        self.epoch = self.link.borrow_and_update().epoch;
        (self.replayed, self.batches) = (0, None);
        self.discard_live();
        if self.live.is_none() {
            let subject = self.log.names.live(&self.id);
            let subscribed = self.log.api.client().subscribe(subject).await;
            let live = subscribed.map_err(|error| LogError::unavailable(error.to_string()))?;
            self.live = Some(live);
        }
        let deadline = Instant::now() + self.log.options.lease;
        let located = loop {
            if let Some(located) = self.try_locate().await? {
                break located;
            }
            if !self.was_found {
                return Err(LogError::Unknown);
            }
            // The server has lost the stream. A producer that lives writes it again. The error must not be that of an
            // outage, after which a follower gives the producer the same time once more.
            if Instant::now() > deadline {
                return Err(LogError::Unknown);
            }
            sleep(REPAIR_CHECK).await;
        };
        (self.was_found, self.is_located) = (true, located.first.is_some());
        self.position = located.before;
        self.phase = Phase::Follow;
        if let Some(entry) = located.first {
            self.position = entry.sequence;
            self.entries.push_back(entry);
            self.phase = Phase::Replay;
        }
        Ok(())
    }

    /// Discards the copies that have arrived. They may be of messages that the server has lost, and whose numbers it uses again;
    /// what is still stored is read from the stream.
    fn discard_live(&mut self) {
        while let Some(live) = &mut self.live
            && let Some(message) = unconstrained(live.next()).now_or_never()
        {
            if message.is_none() {
                self.live = None;
            }
        }
    }

    /// Finds the place of the cursor. `None` if there is no such stream.
    async fn try_locate(&self) -> Result<Option<Located>, LogError> {
        let tail = within(self.log.tail(&self.id)).await?;
        let is_running =
            matches!(&tail, Some((last, _)) if matches!(last.content, Content::Record(_)));
        if !is_running {
            // It may be empty or unknown, and an end may have expired.
            match within(self.log.status(&self.id)).await? {
                LogStatus::Unknown => return Ok(None),
                LogStatus::Expired { .. } => return Err(LogError::Expired),
                _ => {}
            }
        }
        let last = tail.map(|(last, _)| last);
        let located = self.log.locate_before(&self.id, self.cursor, last).await?;
        Ok(Some(located))
    }

    /// Reads the next messages from the stream.
    async fn replay(&mut self) -> Result<(), LogError> {
        if self.replayed >= FEW {
            // One by one takes a round trip for each.
            let entries = within(self.next_batch().boxed()).await.unwrap_or_default();
            if let Some(last) = entries.last() {
                self.position = last.sequence;
                self.entries.extend(entries);
                return Ok(());
            }
            (self.replayed, self.batches) = (0, None);
        }
        match within(self.log.entry(&self.id, self.position + 1)).await? {
            Some(entry) => {
                self.position = entry.sequence;
                self.entries.push_back(entry);
                self.replayed += 1;
            }
            None => {
                self.phase = Phase::Follow;
                (self.replayed, self.batches) = (0, None);
                self.check = Instant::now() + CHECK;
            }
        }
        Ok(())
    }

    async fn next_batch(&mut self) -> Result<Vec<Entry>, LogError> {
        let replay = match &mut self.batches {
            Some(replay) => replay,
            none => none.insert(Replay::new(&self.log, &self.id, self.position).await?),
        };
        Ok(replay.next_batch().await)
    }

    /// Waits for the next message, a new connection, or the time of a check.
    async fn follow(&mut self) -> Result<(), LogError> {
        if !self.link.borrow().is_up {
            return self.await_connection().await;
        }
        if self.link.borrow().epoch != self.epoch {
            self.phase = Phase::Locate;
            return Ok(());
        }
        if self.watched != self.epoch {
            self.watch_lease().await?;
        }
        let (Some(live), Some(renewals)) = (&mut self.live, &mut self.renewals) else {
            self.phase = Phase::Locate;
            return Ok(());
        };
        // Without tokio's budget, which would make a full subscription look empty.
        let message = match unconstrained(live.next()).now_or_never() {
            Some(message) => {
                self.burst += 1;
                message
            }
            None if self.burst >= MANY => {
                self.burst = 0;
                self.phase = Phase::Replay;
                return Ok(());
            }
            None => {
                self.burst = 0;
                tokio::select! {
                    message = live.next() => message,
                    Some(renewal) = renewals.next() => {
                        let previous = renewal.headers.as_ref().and_then(expected_sequence);
                        self.log.leases.hear(&self.id, previous.unwrap_or(0));
                        self.log.lease_is_used();
                        return Ok(());
                    }
                    _changed = self.link.changed() => return Ok(()),
                    () = sleep_until(self.check) => return self.compare_end().await,
                }
            }
        };
        let message = message.ok_or_else(|| LogError::unavailable("the connection is closed"))?;
        let Some(arrived) = Live::decode(message) else {
            // Somebody else has written to the subject of the copies. The stream itself decides.
            self.phase = Phase::Replay;
            return Ok(());
        };
        self.check = Instant::now() + CHECK;
        if arrived.previous == self.position {
            self.position = arrived.sequence;
            self.entries.push_back(arrived.entry?);
        } else if arrived.sequence > self.position {
            self.phase = Phase::Replay;
        }
        Ok(())
    }

    /// Reads what a full subscription has dropped, if it has. A log whose end lies before the position is another one.
    async fn compare_end(&mut self) -> Result<(), LogError> {
        self.check = Instant::now() + CHECK;
        let last = within(self.log.stored_tail(&self.id)).await?;
        let end = last.map_or(0, |stored| stored.sequence);
        self.phase = match end.cmp(&self.position) {
            Ordering::Less => Phase::Locate,
            Ordering::Equal => Phase::Follow,
            Ordering::Greater => Phase::Replay,
        };
        Ok(())
    }

    /// Subscribes to the renewals of the lease. Together with the record that is stored now, they say for how long the
    /// producer has been silent when somebody asks. After an outage that time begins anew, so the record is read again at once.
    async fn watch_lease(&mut self) -> Result<(), LogError> {
        if self.renewals.is_none() {
            let subject = self.log.names.lease(&self.id);
            let subscribed = self.log.api.client().subscribe(subject).await;
            let renewals = subscribed.map_err(|error| LogError::unavailable(error.to_string()))?;
            self.renewals = Some(renewals);
        }
        within(self.log.observe_lease(&self.id)).await?;
        self.watched = self.epoch;
        Ok(())
    }

    async fn await_connection(&mut self) -> Result<(), LogError> {
        match timeout(OUTAGE, self.link.wait_for(|link| link.is_up)).await {
            Ok(Ok(_)) => {
                self.phase = Phase::Locate;
                Ok(())
            }
            Ok(Err(_)) | Err(_) => Err(LogError::unavailable("the connection to NATS is lost")),
        }
    }

    /// Events are missing before this one. A server that was emptied uses the numbers of its messages again, so the place is
    /// searched once more before that is an error.
    fn skipped(&mut self, first: Seq, is_located: bool) -> Result<Option<Record>, LogError> {
        if is_located {
            return Err(LogError::Gap {
                tail: self.cursor,
                first,
            });
        }
        self.entries.clear();
        self.phase = Phase::Locate;
        Ok(None)
    }

    /// Returns the record of a message, if it has something for the caller.
    fn process(&mut self, entry: Entry) -> Result<Option<Record>, LogError> {
        let is_located = mem::take(&mut self.is_located);
        let record = match entry.content {
            Content::Record(record) => record,
            Content::Erased => return Err(LogError::Expired),
            Content::Seal(seal) if seal.tail > self.cursor => {
                return self.skipped(seal.tail.next(), is_located);
            }
            Content::Seal(_) => {
                self.phase = Phase::Ended;
                (self.live, self.renewals) = (None, None);
                return Ok(None);
            }
        };
        if record.last() <= self.cursor {
            return Ok(None);
        }
        if record.first() > self.cursor.next() {
            return self.skipped(record.first(), is_located);
        }
        let is_whole = record.first() == self.cursor.next() || !self.has_yielded;
        let record = if is_whole {
            record
        } else {
            // The producer has repaired a loss with other records.
            let mut rest = events_after(&record, self.cursor);
            match (rest.pop(), rest.is_empty()) {
                (Some(rest), true) => rest,
                _ => {
                    return Err(LogError::unavailable(
                        "the log has other records than before",
                    ));
                }
            }
        };
        self.has_yielded = true;
        self.cursor = record.last();
        Ok(Some(record))
    }
}
