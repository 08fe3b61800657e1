//! Finds the message of a log that contains an event.

use unbraid_log::{LogError, LogStatus, Seq, StreamId};

use crate::{
    entry::{Content, Entry},
    inner::{Inner, within},
};

/// Where a reader of a log begins.
#[derive(Debug)]
pub(crate) struct Located {
    /// The first message with something for the reader; `None` if it has not been appended.
    pub(crate) first: Option<Entry>,
    /// The number of the last message before it; 0 without one.
    pub(crate) before: u64,
}

impl Inner {
    /// Finds the first message with events after a cursor, or the end.
    ///
    /// Messages cannot be found by the numbers of their events, but these grow with the numbers of the messages: it takes one
    /// request for a cursor at either end of the log, and else one for each bit of the difference between the two.
    pub(crate) async fn locate(&self, id: &StreamId, after: Seq) -> Result<Located, LogError> {
        let last = self.tail(id).await?.map(|(last, _)| last);
        self.locate_before(id, after, last).await
    }

    /// The same, with the last message of the log.
    pub(crate) async fn locate_before(
        &self,
        id: &StreamId,
        after: Seq,
        last: Option<Entry>,
    ) -> Result<Located, LogError> {
        let Some(last) = last else {
            return Ok(Located {
                first: None,
                before: 0,
            });
        };
        if !last.concerns(after) {
            return Ok(Located {
                first: None,
                before: last.sequence,
            });
        }
        let is_at_end = match &last.content {
            Content::Record(record) => record.first() <= after.next(),
            Content::Seal(seal) => seal.tail <= after,
            Content::Erased => true,
        };
        let first = if is_at_end {
            last
        } else {
            self.search(id, after, last).await?
        };
        Ok(Located {
            before: first.sequence.saturating_sub(1),
            first: Some(first),
        })
    }

    /// Searches between the first message and one that is known to concern the reader.
    async fn search(&self, id: &StreamId, after: Seq, mut found: Entry) -> Result<Entry, LogError> {
        // All messages before `low` have only events up to the cursor; the next one from `high` on is `found`.
        let (mut low, mut high) = (1, found.sequence);
        let mut middle = low;
        while low < high {
            // Each request has its own bound: a search of a long log, or one on a busy machine, takes longer than a call may.
            let Some(entry) = within(self.entry(id, middle)).await? else {
                return Err(self.why_nothing_was_found(id).await);
            };
            if entry.concerns(after) {
                high = middle;
                found = entry;
            } else {
                low = entry.sequence + 1;
            }
            middle = low + high.saturating_sub(low) / 2;
        }
        Ok(found)
    }

    /// Why a log ends before a message that it had: it was erased in the meantime, or the server was emptied.
    async fn why_nothing_was_found(&self, id: &StreamId) -> LogError {
        match within(self.status(id)).await {
            Ok(LogStatus::Expired { .. }) => LogError::Expired,
            Ok(_) => LogError::unavailable("the server has lost what it had a moment ago"),
            Err(error) => error,
        }
    }
}
