//! `NatsWriter`: the producer of one stream.

use std::sync::Arc;

use futures::{
    FutureExt, TryFutureExt,
    future::{BoxFuture, try_join},
};
use unbraid_log::{Appended, End, LogError, LogWriter, Meta, Record, Seq, StreamEnd, StreamId};

use crate::{
    api::{Ack, Failure, Store},
    entry::{Content, Lease, events_after, lease_draft, record_draft},
    inner::{Inner, within},
};

/// An append that meets the effects of its own earlier attempts needs three rounds.
const MAX_ROUNDS: usize = 6;

pub(crate) struct NatsWriter {
    log: Arc<Inner>,
    id: StreamId,
    meta: Arc<Meta>,
    token: String,
    /// The number of the last event, and that of the message that contains it.
    tail: Seq,
    sequence: u64,
    /// The greatest number that was acknowledged to the caller.
    acknowledged: Seq,
    /// The number of the lease record.
    lease: u64,
    /// The connection on which this was true. A server that was restarted may have lost the last messages.
    epoch: u64,
    /// The connection on which the lease was last known to be that of this producer. A server that was restarted may have lost
    /// the meta data, and not the lease.
    lease_epoch: u64,
    /// Whether no request without an answer may have changed it.
    is_certain: bool,
    ended: Option<LogError>,
}

impl NatsWriter {
    pub(crate) fn new(
        log: Arc<Inner>,
        id: StreamId,
        meta: Arc<Meta>,
        token: String,
        lease: u64,
    ) -> Self {
        let epoch = log.api.connection.epoch();
        Self {
            log,
            id,
            meta,
            token,
            tail: Seq::START,
            sequence: 0,
            acknowledged: Seq::START,
            lease,
            epoch,
            lease_epoch: epoch,
            is_certain: true,
            ended: None,
        }
    }

    /// The writer of a stream that was opened before. The log says where it ends.
    pub(crate) async fn resume(
        log: Arc<Inner>,
        id: StreamId,
        meta: Arc<Meta>,
        token: String,
    ) -> Result<Self, LogError> {
        let mut writer = Self::new(log, id, meta, token, 0);
        writer.is_certain = false;
        writer.synchronize().await?;
        match writer.renew_now().await {
            Ok(()) => Ok(writer),
            Err(LogError::Sealed | LogError::Expired) => Err(LogError::Exists),
            Err(error) => Err(error),
        }
    }

    /// Learns where the log ends, unless that is known.
    async fn synchronize(&mut self) -> Result<(), LogError> {
        let epoch = self.log.api.connection.epoch();
        if self.is_certain && self.epoch == epoch {
            return Ok(());
        }
        self.is_certain = false;
        // Boxed, because each append would carry its state.
        self.read_tail(epoch).boxed().await
    }

    async fn read_tail(&mut self, epoch: u64) -> Result<(), LogError> {
        let (mut origin, tail) =
            try_join(self.log.origin(&self.id), self.log.tail(&self.id)).await?;
        if origin.is_none() {
            let log = Arc::clone(&self.log);
            self.lease = log.open_values(&self.id, &self.meta, &self.token).await?;
            if let Some(claim) = &self.meta.claim {
                log.keep_claim(claim, &self.id).await?;
            }
            origin = log.origin(&self.id).await?;
        }
        (self.tail, self.sequence) = match tail {
            None => (Seq::START, 0),
            Some((entry, _)) => match entry.content {
                Content::Record(record) => (record.last(), entry.sequence),
                Content::Seal(seal) => {
                    self.ended = Some(LogError::Sealed);
                    (seal.tail, entry.sequence)
                }
                Content::Erased => {
                    self.ended = Some(LogError::Expired);
                    (self.tail, entry.sequence)
                }
            },
        };
        match origin {
            Some(origin) if origin.is_expired => self.ended = Some(LogError::Expired),
            // The server had forgotten the stream, and another gateway has opened it.
            Some(origin) if origin.token != self.token => {
                let first = self.tail.next();
                self.ended = Some(LogError::Fenced { first });
            }
            _ => {}
        }
        self.epoch = epoch;
        self.is_certain = true;
        Ok(())
    }

    async fn append_now(&mut self, record: &Record) -> Result<Appended, LogError> {
        let mut has_checked = false;
        let mut with_message_id = true;
        for _ in 0..MAX_ROUNDS {
            has_checked |= !self.is_certain;
            self.synchronize().await?;
            match &self.ended {
                Some(LogError::Fenced { .. }) => {
                    let first = record.first();
                    return Err(LogError::Fenced { first });
                }
                Some(error) => return Err(error.clone()),
                None => {}
            }
            if record.first() > self.tail.next() {
                if has_checked {
                    return Err(LogError::Gap {
                        tail: self.tail,
                        first: record.first(),
                    });
                }
                self.is_certain = false;
                continue;
            }
            if record.first() <= self.tail {
                self.check_same_events(record).boxed().await?;
                if record.last() <= self.tail {
                    self.acknowledged = self.acknowledged.max(record.last());
                    return Ok(Appended::Duplicate);
                }
                // The caller has merged records after a loss. The rest of this one is new.
                return self.append_rest(record).await;
            }
            match self.publish(record, with_message_id).await? {
                Ack::Stored(sequence) => {
                    self.tail = record.last();
                    self.acknowledged = self.acknowledged.max(self.tail);
                    self.sequence = sequence;
                    self.is_certain = true;
                    return Ok(Appended::New);
                }
                // The server remembers the id of a message that it may have lost or erased, so the log itself decides.
                Ack::Duplicate => with_message_id = false,
                Ack::Conflict => {}
            }
        }
        Err(LogError::unavailable("the log changes too often"))
    }

    async fn publish(&mut self, record: &Record, with_message_id: bool) -> Result<Ack, LogError> {
        let subject = self.log.names.records(&self.id);
        let mut draft = record_draft(subject, record).after(self.sequence);
        if with_message_id {
            draft = draft.message_id(format_args!("{}/{}", self.id, record.first()));
        }
        // Until the answer arrives, and for any answer but a number.
        self.is_certain = false;
        match self.log.api.publish(Store::Log, draft).await {
            Ok(ack) => Ok(ack),
            Err(Failure::Missing) => {
                self.log.api.create_stream(Store::Log).await?;
                Ok(Ack::Conflict)
            }
            // Unlike other failures this one says that nothing was stored.
            Err(Failure::Full(_)) => Err(LogError::Full),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Compares a record with the events that the log contains at its place, as far as it has them.
    async fn check_same_events(&self, record: &Record) -> Result<(), LogError> {
        let fenced = LogError::Fenced {
            first: record.first(),
        };
        let expected: Vec<_> = record
            .events()
            .take_while(|(seq, _)| *seq <= self.tail)
            .collect();
        let mut expected = expected.into_iter().peekable();
        let before = Seq(record.first().0 - 1);
        let mut next = self.log.locate(&self.id, before).await?.first;
        while expected.peek().is_some() {
            let Some(entry) = next else {
                return Err(fenced);
            };
            let Content::Record(stored) = &entry.content else {
                return Err(fenced);
            };
            for (seq, event) in stored.events() {
                let same_place = expected.next_if(|(expected, _)| *expected == seq);
                if same_place.is_some_and(|(_, expected)| expected != event) {
                    return Err(fenced);
                }
            }
            next = self.log.entry(&self.id, entry.sequence + 1).await?;
        }
        Ok(())
    }

    fn append_rest<'a>(
        &'a mut self,
        record: &'a Record,
    ) -> BoxFuture<'a, Result<Appended, LogError>> {
        async {
            let mut appended = Appended::Duplicate;
            for rest in events_after(record, self.tail) {
                let result = self.append_now(&rest).await;
                appended = result.map_err(|error| match error {
                    // What precedes the refused part may be stored.
                    LogError::Full => LogError::unavailable("JetStream has no room"),
                    error => error,
                })?;
            }
            Ok(appended)
        }
        .boxed()
    }

    /// Extends the lease. The stream of the records is not read for that: in a cluster it may have no leader for longer than a
    /// lease while that of the values has one, and a producer that waits for it is late. A lease that nobody has changed is
    /// proof enough: another gateway revokes it before it seals the log.
    async fn renew_now(&mut self) -> Result<(), LogError> {
        for _ in 0..MAX_ROUNDS {
            if let Some(error) = &self.ended {
                return Err(error.clone());
            }
            let epoch = self.log.api.connection.epoch();
            if self.lease_epoch != epoch {
                self.check_lease().await?;
                self.lease_epoch = epoch;
                continue;
            }
            let lease = lease_draft(self.log.names.lease(&self.id), self.log.options.lease);
            let lease = lease.after(self.lease);
            match self.log.api.publish(Store::Values, lease).await {
                Ok(Ack::Stored(sequence)) => {
                    self.lease = sequence;
                    return Ok(());
                }
                Ok(Ack::Conflict | Ack::Duplicate) => self.check_lease().await?,
                Err(Failure::Missing) => {
                    self.log.api.create_stream(Store::Values).await?;
                    self.is_certain = false;
                    self.synchronize().await?;
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        Err(LogError::unavailable("the lease changes too often"))
    }

    /// Learns the number of the lease record, and what has become of the stream if the lease is not that of this producer.
    async fn check_lease(&mut self) -> Result<(), LogError> {
        if !self.read_lease().await? {
            // Another gateway has revoked it, and then seals the log; or the server has forgotten the stream.
            self.is_certain = false;
            self.synchronize().await?;
        }
        Ok(())
    }

    /// Learns the number of the lease record: an earlier renewal without an answer may have changed it. Returns whether the lease
    /// is still that of this producer.
    async fn read_lease(&mut self) -> Result<bool, LogError> {
        let lease = self.log.names.lease(&self.id);
        let lease = self.log.api.last(Store::Values, lease);
        let lease = lease.map_err(LogError::from);
        let (lease, origin) = try_join(lease, self.log.origin(&self.id)).await?;
        self.lease = lease.as_ref().map_or(0, |stored| stored.sequence);
        let is_kept = match &lease {
            Some(stored) => !Lease::decode(&stored.headers)?.is_revoked,
            None => false,
        };
        let is_same = origin.is_some_and(|origin| origin.token == self.token && !origin.is_expired);
        Ok(is_kept && is_same)
    }

    async fn seal_now(&mut self, end: &StreamEnd) -> Result<(), LogError> {
        for _ in 0..MAX_ROUNDS {
            self.synchronize().await?;
            match &self.ended {
                Some(LogError::Sealed) => {
                    return self.log.note_end(&self.id, self.log.options.ttl).await;
                }
                Some(error) => return Err(error.clone()),
                None => {}
            }
            if self.tail < self.acknowledged {
                // A seal would end the stream without events that readers have seen.
                return Err(LogError::Gap {
                    tail: self.tail,
                    first: self.acknowledged.next(),
                });
            }
            self.is_certain = false;
            let sealed = self.log.seal_at(&self.id, end, self.tail, self.sequence);
            if sealed.await? {
                self.ended = Some(LogError::Sealed);
                self.is_certain = true;
                return Ok(());
            }
        }
        Err(LogError::unavailable("the log changes too often"))
    }

    async fn seal_and_free(&mut self, end: &StreamEnd) -> Result<(), LogError> {
        self.seal_now(end).await?;
        match &self.meta.claim {
            // It was released, and a repair may have written it again since.
            Some(claim) if end.end == End::Refused => self.log.release(claim, &self.id).await,
            _ => Ok(()),
        }
    }
}

impl LogWriter for NatsWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        within(self.append_now(record)).boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        within(self.renew_now()).boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        within(self.seal_and_free(end)).boxed()
    }
}
