//! Reports to the producers of other gateways that their streams have readers here, so that they are not orphaned.

use std::{sync::Arc, time::Duration};

use futures::future::join;
use tokio::time::sleep;
use unbraid_log::{Command, LogStore, StreamId};

use super::{ReaderPermit, Streams};
use crate::{
    api_error::ApiError,
    gateway::Gateway,
    limits::{MAX_READ_REPORT, MIN_READ_REPORT},
    view::StreamView,
};

/// Connects a reader to a stream of any gateway.
pub(crate) fn connect(
    gateway: &Gateway,
    id: &StreamId,
    view: &StreamView,
) -> Result<ReaderPermit, ApiError> {
    let inner = &gateway.inner;
    let permit = inner.streams.connect(id)?;
    if let Some(after) = view.orphaned_elsewhere_after()
        && inner.streams.begin_reports(id)
    {
        let period = (after / 3).clamp(MIN_READ_REPORT, MAX_READ_REPORT);
        let (store, streams) = (Arc::clone(&inner.store), inner.streams.clone());
        tokio::spawn(report(store, streams, id.clone(), period));
    }
    Ok(permit)
}

impl Streams {
    /// Enters a stream whose readers here are reported to its producer. Returns false if a task does so already.
    fn begin_reports(&self, id: &StreamId) -> bool {
        self.table().reported.insert(id.clone())
    }

    /// Whether a reported stream still has readers. If not, it is not reported any more, and the next reader begins anew.
    fn continues_reports(&self, id: &StreamId) -> bool {
        let mut table = self.table();
        let has_readers = table.readers.contains_key(id);
        if !has_readers {
            table.reported.remove(id);
        }
        has_readers
    }
}

/// Reports a stream while it has readers, and once more when it has none: the producer counts the time from then on.
async fn report(store: Arc<dyn LogStore>, streams: Streams, id: StreamId, period: Duration) {
    loop {
        let has_readers = streams.continues_reports(&id);
        // What fails now is repeated before the producer misses it.
        let sent = store.send_command(&id, Command::Read);
        if !has_readers {
            let _failed = sent.await;
            return;
        }
        // A log that is slow does not make the reports rarer.
        let (_failed, ()) = join(sent, sleep(period)).await;
    }
}
