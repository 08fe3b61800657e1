//! The writer of one stream.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use redis::Value;
use unbraid_log::{Appended, End, LogError, LogWriter, Meta, Record, Seq, StreamEnd, StreamId};

use crate::{
    entry::{Content, Entry, EntryId, bytes, foreign, integer, parse_fields, parse_id},
    error::Failure,
    inner::{DAY, Inner, within_a_second},
    keys::StreamKeys,
    rest::events_after,
    script::{APPEND, RENEW, Request, SEAL},
};

pub(crate) struct RedisWriter {
    log: Arc<Inner>,
    id: StreamId,
    keys: StreamKeys,
    meta: Arc<Meta>,
    encoded_meta: Bytes,
    nonce: String,
    /// The last number that was acknowledged.
    tail: Seq,
    /// The entry that was written last, if nothing else is known to have happened since.
    last: Option<Last>,
}

/// An entry that this writer has written.
struct Last {
    seq: Seq,
    /// How many entries the log had then: what the script compares first.
    length: i64,
}

/// What an append has found.
enum Found {
    Appended(Appended),
    /// The server has lost the log of a stream that runs.
    Lost,
    /// Another entry is the last one.
    Other(Entry),
}

impl RedisWriter {
    pub(crate) fn new(log: Arc<Inner>, id: StreamId, meta: &Meta, nonce: String) -> Self {
        Self {
            keys: log.keys.stream(&id),
            log,
            id,
            encoded_meta: meta.encode().into(),
            meta: Arc::new(meta.clone()),
            nonce,
            tail: Seq::START,
            last: None,
        }
    }

    async fn append_record(&mut self, record: &Record) -> Result<Appended, LogError> {
        let appended = match self.try_append(record).await? {
            Found::Lost if record.first() > Seq(1) => return Err(gap(Seq::START, record)),
            // It is the first record of a repair.
            Found::Lost => {
                self.renew_lease().await?;
                self.try_append(record).await?
            }
            found => found,
        };
        let appended = match appended {
            Found::Appended(appended) => appended,
            Found::Lost => return Err(LogError::unavailable("the server loses its keys")),
            Found::Other(last) => self.append_rest(record, last).await?,
        };
        self.tail = self.tail.max(record.last());
        Ok(appended)
    }

    async fn try_append(&mut self, record: &Record) -> Result<Found, LogError> {
        let previous = record.first().previous();
        let last = self.last.take().filter(|last| last.seq == previous);
        let record_bytes: &[u8] = record.encoded();
        let request = Request::script_with(&APPEND, &self.keys.all(), record_bytes.len())
            .display(EntryId::of(record))
            .display(previous.0)
            .arg(record_bytes);
        let request = match last {
            Some(last) => request.display(last.length),
            None => request.arg(""),
        };
        let Value::Array(answer) = self.call(&request).await? else {
            return Err(Failure::Answer.into());
        };
        let mut answer = answer.into_iter();
        let mut next = || answer.next().ok_or(Failure::Answer);
        let appended = match &*bytes(next()?)? {
            b"other" => return Ok(Found::Other(last_entry(next()?, next()?)?)),
            b"none" if self.log.meta_ttl().is_over(integer(&next()?)?) => {
                return Err(LogError::Expired);
            }
            b"none" => return Ok(Found::Lost),
            b"new" => Appended::New,
            b"same" => Appended::Duplicate,
            _ => return Err(Failure::Answer.into()),
        };
        let count = integer(&next()?)?;
        if appended == Appended::New {
            let (seq, length) = (record.last(), integer(&next()?)?);
            self.last = Some(Last { seq, length });
        }
        // The lease or the meta data is gone. Also, a record that is there already may have been written on another connection,
        // so a write on this one is required before the replicas are asked.
        let asks_replicas = appended == Appended::Duplicate && self.log.options.replicas > 0;
        if count < 2 || asks_replicas {
            match self.renew_lease().await {
                // The record was there before the seal, which has ended the lease.
                Err(LogError::Sealed) if appended == Appended::Duplicate => {}
                renewed => renewed?,
            }
        }
        Ok(Found::Appended(appended))
    }

    /// Appends what follows the log's tail, if the log contains the events before it. The records of a repair may have other
    /// boundaries than those that the server has kept.
    async fn append_rest(&mut self, record: &Record, last: Entry) -> Result<Appended, LogError> {
        let (tail, is_sealed) = match last.content {
            Content::Erased => return Err(LogError::Expired),
            Content::Seal { tail, .. } => (tail, true),
            Content::Header(_) => (Seq::START, false),
            Content::Record(_) => (last.id.tail()?, false),
            Content::Foreign => return Err(foreign("an entry of the log")),
        };
        if record.first() > tail {
            return Err(match is_sealed {
                true => LogError::Sealed,
                false => gap(tail, record),
            });
        }
        self.compare(record, tail).await?;
        let mut appended = Appended::Duplicate;
        for rest in events_after(record, tail) {
            if is_sealed {
                return Err(LogError::Sealed);
            }
            match self.try_append(&rest).await? {
                Found::Appended(Appended::New) => appended = Appended::New,
                Found::Appended(Appended::Duplicate) => {}
                // Since the log was looked at.
                Found::Lost => return Err(gap(Seq::START, record)),
                Found::Other(_) => return Err(fenced(record)),
            }
        }
        Ok(appended)
    }

    /// Checks that the log contains a record's events up to this number.
    async fn compare(&self, record: &Record, tail: Seq) -> Result<(), LogError> {
        let last = record.last().min(tail);
        let mut known = self
            .log
            .records_from(&self.id, record.first(), last)
            .await?;
        known.sort_by_key(Record::first);
        let known = known
            .iter()
            .flat_map(Record::events)
            .filter(|(seq, _)| (record.first()..=last).contains(seq));
        let known: Vec<_> = known.collect();
        let given: Vec<_> = record
            .events()
            .take_while(|(seq, _)| *seq <= last)
            .collect();
        if known == given {
            return Ok(());
        }
        // The server may have lost them since it was asked for the last entry.
        match known.len() < given.len() {
            true => Err(LogError::unavailable("the server has lost records")),
            false => Err(fenced(record)),
        }
    }

    /// Also writes again what the server has lost of the meta data and the claim.
    pub(crate) async fn renew_lease(&self) -> Result<(), LogError> {
        let request = self
            .log
            .creating_request(&RENEW, &self.id, &self.encoded_meta, &self.nonce)
            .arg(self.log.meta_ttl().alive());
        match &*bytes(self.call(&request).await?)? {
            b"renewed" => {}
            b"sealed" => return Err(LogError::Sealed),
            b"expired" => return Err(LogError::Expired),
            b"foreign" => return Err(foreign("an entry of the log")),
            _ => return Err(Failure::Answer.into()),
        }
        match &self.meta.claim {
            Some(claim) => self.log.keep_claim(claim, &self.id, DAY).await,
            None => Ok(()),
        }
    }

    async fn seal_log(&self, end: &StreamEnd) -> Result<(), LogError> {
        let request = self
            .log
            .creating_request(&SEAL, &self.id, &self.encoded_meta, &self.nonce);
        let request = self
            .log
            .seal_args(request, end)
            .arg(self.tail.0.to_string())
            .arg(self.log.meta_ttl().alive());
        let Value::Array(answer) = self.call(&request).await? else {
            return Err(Failure::Answer.into());
        };
        let mut answer = answer.into_iter();
        match &*bytes(answer.next().ok_or(Failure::Answer)?)? {
            b"sealed" => {}
            b"expired" => return Err(LogError::Expired),
            b"foreign" => return Err(foreign("an entry of the log")),
            b"gap" => {
                let tail = bytes(answer.next().ok_or(Failure::Answer)?)?;
                let tail = std::str::from_utf8(&tail).ok();
                let tail = tail.and_then(|tail| tail.parse().ok()).map(Seq);
                return Err(LogError::Gap {
                    tail: tail.ok_or(Failure::Answer)?,
                    first: self.tail.next(),
                });
            }
            _ => return Err(Failure::Answer.into()),
        }
        match &self.meta.claim {
            // It was released, and a renewal may have written it again since.
            Some(claim) if end.end == End::Refused => self.log.release(claim, &self.id).await,
            Some(claim) => {
                let ttl = self.log.options.ttl;
                self.log.keep_claim(claim, &self.id, ttl).await
            }
            None => Ok(()),
        }
    }

    async fn call(&self, request: &Request) -> Result<Value, LogError> {
        let replicas = self.log.options.replicas;
        match self.log.link.call_confirmed(request, replicas).await {
            // Unlike other failures this one says that nothing was stored.
            Err(Failure::Server(code)) if code == "OOM" => Err(LogError::Full),
            answered => Ok(answered?),
        }
    }
}

/// The last entry, of which the script sends a record's name without its bytes.
fn last_entry(id: Value, fields: Value) -> Result<Entry, LogError> {
    let (id, fields) = (parse_id(id)?, parse_fields(fields)?);
    if fields == ["r"] {
        let content = Content::Record(Err(LogError::Unknown));
        return Ok(Entry { id, content });
    }
    Ok(Entry::new(id, fields)?)
}

fn gap(tail: Seq, record: &Record) -> LogError {
    LogError::Gap {
        tail,
        first: record.first(),
    }
}

fn fenced(record: &Record) -> LogError {
    LogError::Fenced {
        first: record.first(),
    }
}

impl LogWriter for RedisWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        within_a_second(self.append_record(record)).boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        within_a_second(self.renew_lease()).boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        within_a_second(self.seal_log(end)).boxed()
    }
}
