//! What becomes of a stream: its status, its seal, and its expiry.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use futures::future::try_join;
use unbraid_log::{End, LogError, LogStatus, Seq, StreamEnd, StreamId};

use crate::{
    api::{Ack, Failure, Store},
    entry::{
        Content, Entry, Lease, Origin, ended_draft, erased_draft, expected_sequence, expired_draft,
        revoked_draft, seal_draft,
    },
    inner::Inner,
    leases::Observed,
    streams::DAY,
};

/// Each round follows an append or a seal of another gateway.
const MAX_ROUNDS: usize = 16;

impl Inner {
    pub(crate) async fn status(&self, id: &StreamId) -> Result<LogStatus, LogError> {
        let (origin, tail) = try_join(self.origin(id), self.tail(id)).await?;
        self.status_of(origin, tail).await
    }

    /// The status of a stream of which this is stored.
    pub(crate) async fn status_of(
        &self,
        origin: Option<Origin>,
        tail: Option<(Entry, SystemTime)>,
    ) -> Result<LogStatus, LogError> {
        let Some(origin) = origin else {
            return Ok(LogStatus::Unknown);
        };
        let meta = Arc::new(origin.meta);
        if origin.is_expired {
            let forgotten = origin.time + DAY <= self.server_time().await?;
            return Ok(if forgotten {
                LogStatus::Unknown
            } else {
                LogStatus::Expired { meta }
            });
        }
        let Some((entry, time)) = tail else {
            return self.running(meta, Seq::START, origin.time).await;
        };
        match entry.content {
            Content::Record(record) => self.running(meta, record.last(), time).await,
            Content::Erased => Ok(LogStatus::Expired { meta }),
            Content::Seal(seal) => {
                let now = self.server_time().await?;
                let remaining = (time + seal.ttl).duration_since(now).unwrap_or_default();
                if remaining == Duration::ZERO {
                    return Ok(LogStatus::Expired { meta });
                }
                Ok(LogStatus::Ended {
                    meta,
                    tail: seal.tail,
                    end: seal.end,
                    expires: SystemTime::now() + remaining,
                })
            }
        }
    }

    /// The status of a stream without an end, whose last message is of this time.
    async fn running(
        &self,
        meta: Arc<unbraid_log::Meta>,
        tail: Seq,
        time: SystemTime,
    ) -> Result<LogStatus, LogError> {
        // Nobody has sealed it, and after a day nobody will. The server's clock is not needed for younger ones.
        let local = SystemTime::now();
        let is_old = local.duration_since(time).is_ok_and(|age| age > DAY / 2)
            && time + DAY <= self.server_time().await?;
        Ok(if is_old {
            LogStatus::Expired { meta }
        } else {
            LogStatus::Running { meta, tail }
        })
    }

    pub(crate) async fn seal_lost(&self, id: &StreamId) -> Result<LogStatus, LogError> {
        let status = self.status(id).await?;
        let LogStatus::Running { .. } = status else {
            self.leases.forget(id);
            return Ok(status);
        };
        if !self.revoke_expired_lease(id).await? {
            return Ok(status);
        }
        self.seal_after_tail(id, &StreamEnd::new(End::ProducerLost))
            .await?;
        self.leases.forget(id);
        self.status(id).await
    }

    /// Takes the lease from a producer that has not renewed it for its duration. Returns whether it is taken: a producer
    /// that renews at the same moment keeps it.
    async fn revoke_expired_lease(&self, id: &StreamId) -> Result<bool, LogError> {
        let Some((sequence, unchanged, duration)) = self.observe_lease(id).await? else {
            return Ok(true);
        };
        if unchanged < duration {
            return Ok(false);
        }
        let draft = revoked_draft(self.names.lease(id)).after(sequence);
        let ack = self.api.publish(Store::Values, draft).await?;
        Ok(matches!(ack, Ack::Stored(_)))
    }

    /// Returns the number of the lease record, for how long it has not changed, and how long it lasts. `None` if it is
    /// revoked.
    pub(crate) async fn observe_lease(
        &self,
        id: &StreamId,
    ) -> Result<Option<(u64, Duration, Duration)>, LogError> {
        self.lease_is_used();
        let stored = self.api.last(Store::Values, self.names.lease(id)).await?;
        let lease = match &stored {
            Some(stored) => Lease::decode(&stored.headers)?,
            None => Lease {
                duration: self.options.lease,
                is_revoked: false,
            },
        };
        if lease.is_revoked {
            return Ok(None);
        }
        let sequence = stored.as_ref().map_or(0, |stored| stored.sequence);
        let observed = Observed {
            sequence,
            previous: stored.and_then(|stored| expected_sequence(&stored.headers)),
            present_since: self.api.connection.present_since(),
        };
        let unchanged = self.leases.observe(id, observed);
        Ok(Some((sequence, unchanged, lease.duration)))
    }

    /// Seals a log after whatever its last message is. Nothing happens if it is sealed.
    async fn seal_after_tail(&self, id: &StreamId, end: &StreamEnd) -> Result<(), LogError> {
        for _ in 0..MAX_ROUNDS {
            let (tail, sequence) = match self.tail(id).await? {
                None => (Seq::START, 0),
                Some((entry, _)) => match entry.content {
                    Content::Record(record) => (record.last(), entry.sequence),
                    Content::Seal(_) | Content::Erased => return Ok(()),
                },
            };
            if self.seal_at(id, end, tail, sequence).await? {
                return Ok(());
            }
        }
        Err(LogError::unavailable("the log grows too fast to be sealed"))
    }

    /// Seals a log if its last message is the one with this number. Returns whether it has.
    pub(crate) async fn seal_at(
        &self,
        id: &StreamId,
        end: &StreamEnd,
        tail: Seq,
        sequence: u64,
    ) -> Result<bool, LogError> {
        let subject = self.names.records(id);
        let draft = seal_draft(subject, end, tail, self.options.ttl).after(sequence);
        match self.api.publish(Store::Log, draft).await {
            Ok(Ack::Stored(_)) => {
                self.note_end(id, self.options.ttl).await?;
                Ok(true)
            }
            Ok(Ack::Conflict | Ack::Duplicate) => Ok(false),
            Err(Failure::Missing) => {
                self.api.create_stream(Store::Log).await?;
                Ok(false)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// Enters a sealed stream into those that expire. It is repeated after an error, so a seal is complete only with it.
    pub(crate) async fn note_end(&self, id: &StreamId, ttl: Duration) -> Result<(), LogError> {
        let draft = ended_draft(self.names.ended(id), ttl);
        self.api.publish_anew(Store::Values, draft).await?;
        Ok(())
    }

    /// Erases the events of a stream. The order matters: after each step, a reader and the producer find an end.
    pub(crate) async fn erase(&self, id: &StreamId) -> Result<(), LogError> {
        let (origin, tail) = try_join(self.origin(id), self.stored_tail(id)).await?;
        let Some(origin) = origin else {
            return Ok(());
        };
        if !origin.is_expired {
            let expired = expired_draft(self.names.meta(id), &origin.meta);
            self.api.publish_anew(Store::Values, expired).await?;
        }
        // What cannot be read is erased, too.
        let is_erased = tail.is_some_and(|tail| {
            Entry::decode(tail).is_ok_and(|entry| matches!(entry.content, Content::Erased))
        });
        if !is_erased {
            self.api
                .publish_anew(Store::Log, erased_draft(self.names.records(id)))
                .await?;
        }
        self.api
            .purge(Store::Log, self.names.records(id), 1)
            .await?;
        // The next renewal fails, and so its producer learns it.
        let revoked = revoked_draft(self.names.lease(id));
        self.api.publish_anew(Store::Values, revoked).await?;
        if let Some(claim) = &origin.meta.claim {
            self.release(claim, id).await?;
        }
        self.api
            .purge(Store::Values, self.names.ended(id), 0)
            .await?;
        Ok(())
    }
}
