//! The task that removes what has expired. NATS 2.9 has no expiry of single messages, so any gateway does it.

use std::{sync::Weak, time::Duration};

use tokio::time::sleep;
use unbraid_log::{LogError, StreamId};

use crate::{
    api::{Store, Stored},
    entry::{Content, ended_ttl},
    inner::Inner,
};

/// How many streams are removed between two checks whether the log still exists.
const BATCH: usize = 64;

/// Sweeps until the log is dropped.
pub(crate) async fn run(log: Weak<Inner>) {
    loop {
        let Some(pause) = log.upgrade().map(|inner| interval(&inner)) else {
            return;
        };
        sleep(pause).await;
        let Some(inner) = log.upgrade() else {
            return;
        };
        if let Err(error) = inner.sweep().await {
            tracing::debug!(%error, "NATS: expired streams were not removed");
        }
    }
}

/// A quarter of the time that streams are kept, within bounds, and different for each gateway.
fn interval(inner: &Inner) -> Duration {
    let quarter = inner.options.ttl / 4;
    let base = quarter.clamp(Duration::from_secs(1), Duration::from_secs(60));
    let spread: u32 = inner.gateway.bytes().map(u32::from).sum();
    base + base * (spread % 64) / 128
}

impl Inner {
    /// Removes the streams whose time is over, oldest first.
    async fn sweep(&self) -> Result<(), LogError> {
        for _ in 0..BATCH {
            let subject = self.names.all_ended();
            let Some(oldest) = self.api.next(Store::Values, subject, 1).await? else {
                return Ok(());
            };
            let ttl = ended_ttl(&oldest)?;
            if self.server_time().await? < oldest.time + ttl {
                return Ok(());
            }
            self.remove(&oldest).await?;
        }
        Ok(())
    }

    async fn remove(&self, ended: &Stored) -> Result<(), LogError> {
        let id = ended.subject.rsplit('.').next().unwrap_or_default();
        let Ok(id) = id.parse::<StreamId>() else {
            return Ok(self
                .api
                .purge(Store::Values, ended.subject.clone(), 0)
                .await?);
        };
        // After a restart that has lost the seal, the stream may be running again.
        let is_sealed = match self.tail(&id).await {
            Ok(Some((entry, _))) => !matches!(entry.content, Content::Record(_)),
            Ok(None) => false,
            Err(error) if error.is_temporary() => return Err(error),
            Err(_) => true,
        };
        if is_sealed {
            self.erase(&id).await?;
            self.api
                .purge(Store::Values, self.names.lease(&id), 0)
                .await?;
        }
        self.api
            .purge(Store::Values, ended.subject.clone(), 0)
            .await?;
        Ok(())
    }
}
