//! The task that removes what has expired. NATS 2.9 has no expiry of single messages, so any gateway does it.

use std::{sync::Weak, time::Duration};

use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};
use unbraid_log::{LogError, StreamId};

use crate::{
    api::{Store, Stored},
    entry::{Content, ended_ttl},
    inner::Inner,
};

/// How many entries are looked at between two checks whether the log still exists.
const BATCH: usize = 64;

/// How many streams are removed at once.
const REMOVALS: usize = 16;

/// How long entries are passed over that were not due. Looking at all of them again costs a request for each.
const PASS: Duration = Duration::from_secs(3600);

/// Sweeps until the log is dropped.
pub(crate) async fn run(log: Weak<Inner>) {
    let mut passed = Passed::default();
    let mut has_more = false;
    loop {
        let pause = match log.upgrade() {
            None => return,
            Some(_) if has_more => Duration::ZERO,
            Some(inner) => interval(&inner),
        };
        sleep(pause).await;
        let Some(inner) = log.upgrade() else {
            return;
        };
        has_more = inner.sweep(&mut passed).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "NATS: expired streams were not removed");
            false
        });
    }
}

/// A quarter of the time that streams are kept, within bounds, and different for each gateway.
fn interval(inner: &Inner) -> Duration {
    let quarter = inner.options.ttl / 4;
    let base = quarter.clamp(Duration::from_secs(1), Duration::from_secs(60));
    let spread: u32 = inner.gateway.bytes().map(u32::from).sum();
    base + base * (spread % 64) / 128
}

/// The entries that another ttl keeps for longer than this gateway's would, or that are not of a gateway.
#[derive(Debug, Default)]
struct Passed {
    /// The number after the last of them.
    end: u64,
    since: Option<Instant>,
}

impl Passed {
    /// Notes an entry, and returns the number at which to go on.
    fn pass(&mut self, sequence: u64) -> u64 {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        if now - since >= PASS {
            (self.end, self.since) = (0, Some(now));
        }
        self.end = self.end.max(sequence + 1);
        self.end
    }
}

impl Inner {
    /// Removes streams whose time is over, oldest first. Returns whether there may be more of them.
    ///
    /// Entries are in the order in which their streams were sealed. With one ttl that is the order in which they are due.
    /// Entries with a longer ttl than this gateway's, as there are after the option was changed, must not hold up the others;
    /// nor must what something else has written, which stays.
    async fn sweep(&self, passed: &mut Passed) -> Result<bool, LogError> {
        let (due, has_more) = self.due(passed).await?;
        // A removal is half a dozen requests, one after the other, so many wait for the server at once.
        let removals = due
            .into_iter()
            .map(|entry| async move { self.remove(&entry).await });
        let mut removals = stream::iter(removals).buffer_unordered(REMOVALS);
        while let Some(removed) = removals.next().await {
            removed?;
        }
        Ok(has_more)
    }

    /// The entries of a batch that are due, and whether there may be more of them.
    async fn due(&self, passed: &mut Passed) -> Result<(Vec<Stored>, bool), LogError> {
        let mut due = Vec::new();
        let mut sequence = 1;
        for _ in 0..BATCH {
            let subject = self.names.all_ended();
            let Some(entry) = self.api.next(Store::Values, subject, sequence).await? else {
                return Ok((due, false));
            };
            let now = self.server_time().await?;
            sequence = match ended_ttl(&entry) {
                Ok(ttl) if entry.time + ttl <= now => {
                    let next = entry.sequence + 1;
                    due.push(entry);
                    next
                }
                Ok(_) if entry.time + self.options.ttl > now => return Ok((due, false)),
                Ok(_) | Err(_) => passed.pass(entry.sequence),
            };
        }
        Ok((due, true))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_are_passed_once_an_hour() {
        let mut passed = Passed::default();
        assert_eq!(passed.pass(3), 4);
        assert_eq!(passed.pass(9), 10);
        // The next sweep begins with the oldest entry, and goes on where this one has ended.
        assert_eq!(passed.pass(3), 10);
        tokio::time::advance(PASS).await;
        assert_eq!(passed.pass(3), 4);
        assert_eq!(passed.pass(4), 5);
    }
}
