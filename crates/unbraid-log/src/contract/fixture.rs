//! What the checks share: streams with readable events.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use tokio::time::timeout;
use unbraid_core::ChoiceIndex;

use super::Engine;
use crate::{
    Appended, End, Event, LogError, LogStatus, LogStore, LogWriter, Meta, Record, RecordBuilder,
    Seq, StreamEnd, StreamId,
};

/// No call of a log takes longer, and no event takes longer to reach a reader, not even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn meta() -> Meta {
    Meta::new("/v1/chat/completions", 1_790_000_000)
        .with_owner("alice".to_owned())
        .with_n(2)
}

pub(super) fn new_id() -> StreamId {
    StreamId::random().expect("random numbers")
}

/// A stream that a check has opened.
pub(super) struct Opened {
    pub(super) log: Arc<dyn LogStore>,
    pub(super) id: StreamId,
    pub(super) writer: Box<dyn LogWriter>,
}

pub(super) async fn open(engine: &dyn Engine) -> Opened {
    let log = engine.gateway().await;
    let id = new_id();
    let writer = log.open(&id, &meta()).await.expect("a new id");
    Opened { log, id, writer }
}

/// The payload of the event with this number.
pub(super) fn payload(seq: u64) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{seq}"}}}}]}}"#)
}

/// A record of the events with these numbers.
pub(super) fn record(first: u64, last: u64) -> Record {
    record_with(first, last, payload)
}

pub(super) fn record_with(first: u64, last: u64, payload: impl Fn(u64) -> String) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for seq in first..=last {
        builder.push(&Event::chunk(&[ChoiceIndex(0)], payload(seq).as_bytes()));
    }
    builder.take().expect("there are events")
}

impl Opened {
    /// Appends records of one event each.
    pub(super) async fn append(&mut self, first: u64, last: u64) {
        for seq in first..=last {
            let appended = self.writer.append(&record(seq, seq)).await;
            assert_eq!(appended, Ok(Appended::New), "event {seq}");
        }
    }

    pub(super) async fn seal(&mut self, end: End) {
        let sealed = self.writer.seal(&StreamEnd::new(end)).await;
        assert_eq!(sealed, Ok(()));
    }

    pub(super) async fn tail(&self) -> Seq {
        match status(&*self.log, &self.id).await {
            LogStatus::Running { tail, .. } | LogStatus::Ended { tail, .. } => tail,
            status => panic!("not kept: {status:?}"),
        }
    }

    /// Everything after a cursor of a sealed stream.
    pub(super) async fn read(&self, after: u64) -> Vec<u64> {
        read_to_end(&*self.log, &self.id, after).await
    }
}

pub(super) async fn status(log: &dyn LogStore, id: &StreamId) -> LogStatus {
    log.status(id).await.expect("the engine runs")
}

pub(super) fn end_of(status: &LogStatus) -> Option<End> {
    match status {
        LogStatus::Ended { end, .. } => Some(end.end),
        _ => None,
    }
}

/// Reads a log from a cursor, checks every event, and counts them.
pub(super) struct Follower {
    records: futures::stream::BoxStream<'static, Result<Record, LogError>>,
    /// The number of the last event.
    pub(super) seq: u64,
    is_first: bool,
}

impl Follower {
    pub(super) fn new(log: &dyn LogStore, id: &StreamId, after: u64) -> Self {
        Self {
            records: log.read(id, Seq(after)),
            seq: after,
            is_first: true,
        }
    }

    /// The next record's events, or the end of the stream (`None`).
    pub(super) async fn next(&mut self) -> Option<Result<(), LogError>> {
        let record = timeout(PATIENCE, self.records.next()).await;
        let record = match record.expect("the reader hangs")? {
            Ok(record) => record,
            Err(error) => return Some(Err(error)),
        };
        if self.is_first {
            assert!(record.first().0 <= self.seq + 1, "a gap before {record:?}");
            assert!(
                record.last().0 > self.seq,
                "{record:?} is before the cursor"
            );
        } else {
            assert_eq!(record.first().0, self.seq + 1, "records follow each other");
        }
        self.is_first = false;
        for (seq, event) in record.events() {
            let expected = payload(seq.0);
            assert_eq!(event.payload(), Some(expected.as_bytes()), "event {seq}");
        }
        self.seq = record.last().0;
        Some(Ok(()))
    }

    /// Reads until the event with this number has arrived.
    pub(super) async fn reach(&mut self, seq: u64) {
        while self.seq < seq {
            let next = self.next().await;
            assert_eq!(next, Some(Ok(())), "after event {}", self.seq);
        }
    }
}

/// The numbers of the events after a cursor, of a stream that ends.
pub(super) async fn read_to_end(log: &dyn LogStore, id: &StreamId, after: u64) -> Vec<u64> {
    let mut follower = Follower::new(log, id, after);
    while let Some(next) = follower.next().await {
        assert_eq!(next, Ok(()));
    }
    (after + 1..=follower.seq).collect()
}
