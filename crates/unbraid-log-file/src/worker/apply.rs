//! What each request changes in a transaction.

use std::sync::Arc;

use unbraid_log::{Appended, End, LogError, LogStatus, Meta, Record, Seq, StreamEnd, StreamId};

use super::{Worker, claims};
use crate::{
    FileLogError,
    clock::millis,
    job::{Effect, Job, Reply},
    shared::Running,
    space::Space,
    tables::{Row, RowState, Tables},
};

/// How long the meta data of a stream outlives its events: the time in which it is reported as expired.
const EXPIRED_FOR: u64 = 24 * 3600 * 1000;

/// The bytes of a stream beside its records and its texts.
const STREAM_BYTES: u64 = 256;

/// The error of a call that writes, while only what frees space is written.
pub(super) fn no_space() -> LogError {
    FileLogError::Full.to_log_error()
}

impl Worker {
    /// Carries out a request. An error of the file ends the transaction; any other is the answer.
    pub(super) fn apply(
        &mut self,
        tables: &mut Tables<'_>,
        job: Job,
        free: Space,
    ) -> Result<Effect, FileLogError> {
        match job {
            Job::Open { reply, .. } if free < Space::Enough => {
                Ok(Effect::answer(reply, Err(LogError::Full)))
            }
            Job::Append { reply, .. } if free < Space::Low => {
                Ok(Effect::answer(reply, Err(LogError::Full)))
            }
            Job::Seal { reply, .. } if free < Space::Low => {
                Ok(Effect::answer(reply, Err(no_space())))
            }
            Job::Open {
                id,
                meta,
                again,
                reply,
            } => match self.shared.running(&id).filter(|_| again) {
                Some(stream) => Ok(self.open_again(stream, reply)),
                None => self.open_stream(tables, id, meta, reply),
            },
            Job::Append {
                stream,
                record,
                reply,
            } => Ok(self.append(stream, &record, reply)),
            Job::Seal {
                stream,
                end,
                appended,
                reply,
            } => {
                let tail = stream.journal().tail();
                if tail < appended && stream.journal().end().is_none() {
                    let first = appended;
                    let lost = LogError::Gap { tail, first };
                    return Ok(Effect::answer(reply, Err(lost)));
                }
                self.seal(tables, &stream, end, reply)
            }
            Job::SealLost { id, reply } => self.seal_lost(tables, &id, reply),
            Job::Erase { id, reply } => {
                let then = Effect::answer(reply, Ok(()));
                self.erase(tables, &id, then)
            }
            Job::Claim { key, id, reply } => self.claim(tables, &key, &id, free, reply),
            Job::Release { key, id, reply } => {
                claims::release(tables, key.name(), &id)?;
                self.book.pending_claims.remove(key.name(), &id);
                Ok(Effect::answer(reply, Ok(())))
            }
            // It does not reach a transaction.
            Job::Control(_) => Ok(Effect::None),
        }
    }

    fn open_stream(
        &mut self,
        tables: &mut Tables<'_>,
        id: StreamId,
        meta: Meta,
        reply: Reply<Arc<Running>>,
    ) -> Result<Effect, FileLogError> {
        if tables.row(id.as_str())?.is_some() {
            return Ok(Effect::answer(reply, Err(LogError::Exists)));
        }
        if let Some(claim) = &meta.claim {
            claims::keep(tables, claim, &id)?;
        }
        let number = self.add_running(tables, &id, &meta)?;
        let stream = Running::new(id, meta, number, self.shared.options.lease);
        Ok(Effect::Opened(Arc::new(stream), reply))
    }

    /// Gives the stream to a caller that has opened it before, without getting the answer.
    fn open_again(&self, stream: Arc<Running>, reply: Reply<Arc<Running>>) -> Effect {
        let renewed = stream.renew(self.shared.options.lease);
        Effect::answer(reply, renewed.map(|()| stream))
    }

    /// Adds a running stream without events. Returns its number.
    pub(super) fn add_running(
        &mut self,
        tables: &mut Tables<'_>,
        id: &StreamId,
        meta: &Meta,
    ) -> Result<u64, FileLogError> {
        self.book.last_number += 1;
        let number = self.book.last_number;
        let row = Row {
            number,
            state: RowState::Running {
                opened: self.shared.clock().now(),
            },
            tail: Seq::START,
            bytes: 0,
            meta: meta.encode(),
        };
        tables.set_row(id, &row)?;
        tables.running.insert(number, id.as_str())?;
        self.book.arrivals.add(number);
        Ok(number)
    }

    fn append(&mut self, stream: Arc<Running>, record: &Record, reply: Reply<Appended>) -> Effect {
        match stream.journal().check(record) {
            Ok(Some(new)) => {
                self.book.arrivals.push(&stream, &new);
                Effect::Appended(stream, new, reply)
            }
            Ok(None) => Effect::answer(reply, Ok(Appended::Duplicate)),
            Err(error) => Effect::answer(reply, Err(error)),
        }
    }

    fn seal(
        &mut self,
        tables: &mut Tables<'_>,
        stream: &Arc<Running>,
        end: StreamEnd,
        reply: Reply<()>,
    ) -> Result<Effect, FileLogError> {
        let row = tables.row(stream.id.as_str())?;
        let result = match row.as_ref().map(|row| &row.state) {
            Some(RowState::Running { .. }) => {
                self.end(tables, stream, row, &end)?;
                return Ok(Effect::Ended {
                    stream: Arc::clone(stream),
                    end: Ok(end),
                    then: Box::new(Effect::answer(reply, Ok(()))),
                });
            }
            // The first end is kept.
            Some(RowState::Ended { .. }) => Ok(()),
            Some(RowState::Expired { .. }) => Err(LogError::Expired),
            None => Err(LogError::Unknown),
        };
        Ok(Effect::answer(reply, result))
    }

    /// Ends a running stream in the file. Returns its row.
    fn end(
        &mut self,
        tables: &mut Tables<'_>,
        stream: &Running,
        row: Option<Row>,
        end: &StreamEnd,
    ) -> Result<Option<Row>, FileLogError> {
        let bytes = self.book.arrivals.end(tables, stream)?;
        let Some(row) = row else {
            return Ok(None);
        };
        let tail = stream.journal().tail();
        self.set_ended(tables, &stream.id, row, end, tail, bytes)
            .map(Some)
    }

    /// Ends a stream whose records are in `events`.
    pub(super) fn set_ended(
        &mut self,
        tables: &mut Tables<'_>,
        id: &StreamId,
        mut row: Row,
        end: &StreamEnd,
        tail: Seq,
        bytes: u64,
    ) -> Result<Row, FileLogError> {
        let expires = self
            .shared
            .clock()
            .now()
            .saturating_add(millis(self.shared.options.ttl));
        let end = end.encode();
        row.tail = tail;
        row.bytes = bytes + STREAM_BYTES + (row.meta.len() + end.len()) as u64;
        row.state = RowState::Ended { expires, end };
        self.book.bytes += row.bytes;
        tables.set_row(id, &row)?;
        tables.running.remove(row.number)?;
        let place = (expires, row.number);
        tables.expiry.insert(place, id.as_str())?;
        self.book.evict_from = self.book.evict_from.min(place);
        Ok(row)
    }

    fn seal_lost(
        &mut self,
        tables: &mut Tables<'_>,
        id: &StreamId,
        reply: Reply<LogStatus>,
    ) -> Result<Effect, FileLogError> {
        let row = tables.row(id.as_str())?;
        let Some(stream) = self.shared.running(id) else {
            return Ok(Effect::answer(reply, self.shared.status_of(row)));
        };
        if stream.is_alive() {
            return Ok(Effect::answer(reply, Ok(stream.status())));
        }
        let end = StreamEnd::new(End::ProducerLost);
        let row = self.end(tables, &stream, row, &end)?;
        Ok(Effect::Ended {
            then: Box::new(Effect::answer(reply, self.shared.status_of(row))),
            stream,
            end: Ok(end),
        })
    }

    /// Expires a stream at once, and frees its claim and its records.
    pub(super) fn erase(
        &mut self,
        tables: &mut Tables<'_>,
        id: &StreamId,
        then: Effect,
    ) -> Result<Effect, FileLogError> {
        let Some(mut row) = tables.row(id.as_str())? else {
            return Ok(then);
        };
        match &row.state {
            RowState::Running { .. } => {
                tables.running.remove(row.number)?;
                self.book.arrivals.forget(row.number);
            }
            RowState::Ended { expires, .. } => {
                tables.expiry.remove((*expires, row.number))?;
                self.book.bytes = self.book.bytes.saturating_sub(row.bytes);
            }
            RowState::Expired { .. } => return Ok(then),
        }
        tables.remove_events(row.number)?;
        if let Some(claim) = Meta::decode(&row.meta)?.claim {
            claims::release(tables, claim.name(), id)?;
        }
        let forgotten = self.shared.clock().now().saturating_add(EXPIRED_FOR);
        row.state = RowState::Expired { forgotten };
        tables.set_row(id, &row)?;
        tables.expiry.insert((forgotten, row.number), id.as_str())?;
        Ok(match self.shared.running(id) {
            Some(stream) => Effect::Ended {
                stream,
                end: Err(LogError::Expired),
                then: Box::new(then),
            },
            None => then,
        })
    }
}
