//! A reader: it finds its cursor, catches up, and then follows the hub.

mod page;

use std::{collections::VecDeque, sync::Arc};

use futures::stream::{BoxStream, StreamExt, unfold};
use page::PageSize;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::Instant,
};
use unbraid_log::{LogError, LogStatus, Record, Seq, StreamId};

use crate::{
    entry::{Content, Entry, EntryId, foreign},
    error::Failure,
    hub::Item,
    inner::{Inner, within_a_second},
    rest::events_after,
    script::Request,
};

/// How often the same number is searched.
const MAX_SEARCHES: u32 = 4;

impl Inner {
    /// The entry of the last record that begins at this number or before.
    async fn entry_at(&self, id: &StreamId, first: Seq) -> Result<Option<Entry>, LogError> {
        let request = Request::command("XREVRANGE")
            .arg(self.keys.stream(id).log)
            .arg(EntryId(first.0, u64::MAX).to_string())
            .arg(("-", "COUNT", 1));
        let entries = Entry::parse_all(self.link.call(&request).await?)?;
        Ok(entries.into_iter().next())
    }

    /// The first entry. Its own, unless another program has removed it.
    async fn first_entry(&self, id: &StreamId) -> Result<Option<Entry>, LogError> {
        let request = Request::command("XRANGE")
            .arg(self.keys.stream(id).log)
            .arg(("-", "+", "COUNT", 1));
        let entries = Entry::parse_all(self.link.call(&request).await?)?;
        Ok(entries.into_iter().next())
    }

    async fn entries_after(
        &self,
        id: &StreamId,
        after: EntryId,
        count: usize,
    ) -> Result<Vec<Entry>, Failure> {
        let request = Request::command("XRANGE")
            .arg(self.keys.stream(id).log)
            .arg(format!("({after}"))
            .arg(("+", "COUNT"))
            .arg(count);
        Entry::parse_all(self.link.call(&request).await?)
    }

    /// The records that contain numbers of a range.
    pub(crate) async fn records_from(
        &self,
        id: &StreamId,
        first: Seq,
        last: Seq,
    ) -> Result<Vec<Record>, LogError> {
        let start = self.entry_at(id, first).await?;
        let start = start.map_or(EntryId::HEADER, |entry| entry.id);
        let request = Request::command("XRANGE")
            .arg(self.keys.stream(id).log)
            .arg(start.to_string())
            .arg(EntryId(last.0, u64::MAX).to_string());
        let entries = Entry::parse_all(self.link.call(&request).await?)?;
        let records = entries.into_iter().filter_map(|entry| match entry.content {
            Content::Record(record) => Some(record),
            Content::Foreign => Some(Err(foreign("an entry of the log"))),
            Content::Header(_) | Content::Seal { .. } | Content::Erased => None,
        });
        records.collect()
    }

    /// Why a log has no entry.
    async fn missing(&self, id: &StreamId) -> LogError {
        match self.find(id).await {
            Ok(found) => match found.status {
                LogStatus::Expired { .. } => LogError::Expired,
                LogStatus::Unknown => LogError::Unknown,
                // It was created a moment ago.
                _ => LogError::unavailable("the log was not complete"),
            },
            Err(error) => error,
        }
    }
}

/// The records of a stream after a cursor.
pub(crate) fn read(
    log: Arc<Inner>,
    id: StreamId,
    after: Seq,
) -> BoxStream<'static, Result<Record, LogError>> {
    let reader = Reader {
        log,
        id,
        seq: after,
        position: EntryId::HEADER,
        phase: Phase::Find,
        hub: None,
        is_first: true,
        searched: None,
        page: PageSize::new(),
        entries: VecDeque::new(),
        records: VecDeque::new(),
    };
    unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match reader.next().await {
            Ok(Some(record)) => Some((Ok(record), Some(reader))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

enum Phase {
    /// Its position is to be found from its number.
    Find,
    /// It reads pages after its position.
    CatchUp,
    /// It has read everything until the hub's position.
    Follow,
}

struct Reader {
    log: Arc<Inner>,
    id: StreamId,
    /// The last number that was yielded, or the cursor.
    seq: Seq,
    /// The last entry that was read.
    position: EntryId,
    phase: Phase,
    hub: Option<Receiver<Item>>,
    /// Whether no record was yielded: the first may begin before the cursor.
    is_first: bool,
    /// The number at which its position was searched again, because the log's entries did not follow it, and how often.
    searched: Option<(Seq, u32)>,
    page: PageSize,
    entries: VecDeque<Entry>,
    /// The rest of a record that overlaps the last one.
    records: VecDeque<Record>,
}

/// What an entry means to a reader.
enum Step {
    Yield(Record),
    Continue,
    End,
}

impl Reader {
    async fn next(&mut self) -> Result<Option<Record>, LogError> {
        loop {
            if let Some(record) = self.records.pop_front() {
                self.seq = record.last();
                return Ok(Some(record));
            }
            if let Some(entry) = self.entries.pop_front() {
                self.position = entry.id;
                match self.accept(entry.content)? {
                    Step::Yield(record) => return Ok(Some(record)),
                    Step::Continue => continue,
                    Step::End => return Ok(None),
                }
            }
            match self.phase {
                Phase::Find => self.find().await?,
                Phase::CatchUp => self.catch_up().await?,
                Phase::Follow => self.follow().await?,
            }
        }
    }

    fn accept(&mut self, content: Content) -> Result<Step, LogError> {
        match content {
            Content::Header(_) => Ok(Step::Continue),
            Content::Record(record) => self.accept_record(record?),
            Content::Seal { tail, .. } if tail > self.seq => {
                self.search_again(tail)?;
                Ok(Step::Continue)
            }
            Content::Seal { .. } => Ok(Step::End),
            Content::Erased => Err(LogError::Expired),
            Content::Foreign => Err(foreign("an entry of the log")),
        }
    }

    fn accept_record(&mut self, record: Record) -> Result<Step, LogError> {
        if record.last() <= self.seq {
            return Ok(Step::Continue);
        }
        if record.first() > self.seq.next() {
            self.search_again(record.first())?;
            return Ok(Step::Continue);
        }
        let overlaps = record.first() <= self.seq;
        if overlaps && !self.is_first {
            // The producer has repaired the log, and has merged records.
            self.records = events_after(&record, self.seq).into();
            return Ok(Step::Continue);
        }
        self.is_first = false;
        self.seq = record.last();
        Ok(Step::Yield(record))
    }

    /// Finds the position again: a repaired log has other entries, and those before the position are not delivered. A server
    /// may be emptied several times, but a log that never contains the next number has a gap.
    fn search_again(&mut self, first: Seq) -> Result<(), LogError> {
        let count = match self.searched {
            Some((seq, count)) if seq == self.seq => count + 1,
            _ => 1,
        };
        if count > MAX_SEARCHES {
            return Err(LogError::Gap {
                tail: self.seq,
                first,
            });
        }
        self.searched = Some((self.seq, count));
        self.phase = Phase::Find;
        self.entries.clear();
        Ok(())
    }

    async fn find(&mut self) -> Result<(), LogError> {
        let (log, id) = (Arc::clone(&self.log), self.id.clone());
        let next = self.seq.next();
        let found = within_a_second(async move {
            if let Some(entry) = log.entry_at(&id, next).await? {
                return Ok(entry);
            }
            // A log whose begin is missing has a gap, which the entry's number shows.
            match log.first_entry(&id).await? {
                Some(entry) => Ok(entry),
                None => Err(log.missing(&id).await),
            }
        });
        let entry = match found.await {
            // It existed a moment ago, so its producer may write it again.
            Err(LogError::Unknown) if self.searched.is_some() => {
                return Err(LogError::unavailable("the server has lost the log"));
            }
            found => found?,
        };
        self.phase = Phase::CatchUp;
        self.position = entry.id;
        self.page.follow(&entry);
        self.entries.push_back(entry);
        Ok(())
    }

    async fn catch_up(&mut self) -> Result<(), LogError> {
        let count = self.page.count();
        let asked = Instant::now();
        let page = self.log.entries_after(&self.id, self.position, count);
        let page = match page.await {
            // A smaller page follows.
            Err(Failure::Timeout) if self.page.shrink() => return Ok(()),
            page => page?,
        };
        let is_last = page.len() < count;
        self.page.fit(&page, asked.elapsed());
        let position = page.last().map_or(self.position, |entry| entry.id);
        self.entries.extend(page);
        let has_ended = self
            .entries
            .back()
            .is_some_and(|entry| matches!(entry.content, Content::Seal { .. } | Content::Erased));
        if is_last {
            self.page.restore();
        }
        if is_last && !has_ended {
            self.join(position).await;
        }
        Ok(())
    }

    /// Lets the hub follow the log from here on. If it is ahead already, there is more to catch up.
    async fn join(&mut self, position: EntryId) {
        let hub = &self.log.hub;
        let joined = hub.join(&self.id, position, &self.log.link, &self.log.keys);
        self.hub = Some(joined.receiver);
        if let Some(shard) = joined.to_wake {
            // If it fails, the hub's connection reads the log after its present request, which takes at most two seconds.
            let _woken = self.log.link.call(&hub.wake(&self.log.keys, shard)).await;
        }
        if joined.position <= position {
            self.phase = Phase::Follow;
        }
    }

    async fn follow(&mut self) -> Result<(), LogError> {
        let Some(hub) = &mut self.hub else {
            self.phase = Phase::CatchUp;
            return Ok(());
        };
        match hub.recv().await {
            Ok(Item::Entry(entry)) => self.entries.push_back(entry),
            Ok(Item::Failed(error)) => return Err(error),
            Err(RecvError::Lagged(_)) => self.phase = Phase::CatchUp,
            Err(RecvError::Closed) => {
                return Err(Failure::Connection("the log was closed".to_owned()).into());
            }
        }
        Ok(())
    }
}
