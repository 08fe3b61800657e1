use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
use tokio::time::sleep;
use unbraid::{Completions, Limit, LimitExceeded, Limits, StreamError};
use unbraid_log::{
    Claim, ClaimKey, Command, End, Event, LogError, LogStatus, LogStore, LogWriter, Meta, Record,
    RecordBuilder, Seq, StreamEnd, StreamId, completions, source,
};

use crate::new_log;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// The bytes of records that exist.
#[derive(Clone, Default)]
struct Live {
    now: Arc<AtomicUsize>,
    peak: Arc<AtomicUsize>,
    total: Arc<AtomicUsize>,
}

/// The bytes of a record, which count as long as anything refers to them.
struct Counted {
    bytes: Vec<u8>,
    live: Live,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.live.now.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Live {
    fn count(&self, record: &Record) -> Record {
        let bytes = record.encoded().to_vec();
        let now = self.now.fetch_add(bytes.len(), Ordering::Relaxed) + bytes.len();
        self.peak.fetch_max(now, Ordering::Relaxed);
        self.total.fetch_add(bytes.len(), Ordering::Relaxed);
        let live = self.clone();
        Record::decode(Bytes::from_owner(Counted { bytes, live })).unwrap()
    }

    fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }
}

/// A log that has every record at once: it is as fast as it is read.
struct FastLog {
    live: Live,
    /// The number of events.
    tail: u64,
    record: fn(u64) -> Record,
}

impl FastLog {
    fn start(tail: u64, record: fn(u64) -> Record) -> (Live, Arc<dyn LogStore>) {
        let live = Live::default();
        let log = Self {
            live: live.clone(),
            tail,
            record,
        };
        (live, Arc::new(log))
    }

    fn status(&self) -> LogStatus {
        LogStatus::Ended {
            meta: Meta::new("/v1/x", 1).into(),
            tail: Seq(self.tail),
            end: StreamEnd::new(End::Finished),
            expires: SystemTime::now(),
        }
    }
}

fn refused<T: Send + 'static>() -> BoxFuture<'static, Result<T, LogError>> {
    ready(Err(LogError::Unknown)).boxed()
}

impl LogStore for FastLog {
    fn open<'a>(
        &'a self,
        _id: &'a StreamId,
        _meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        refused()
    }

    fn read(&self, _id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        let (live, record) = (self.live.clone(), self.record);
        let records = (after.0 + 1..=self.tail).map(move |seq| Ok(live.count(&record(seq))));
        stream::iter(records).boxed()
    }

    fn status<'a>(&'a self, _id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        ready(Ok(self.status())).boxed()
    }

    fn seal_lost<'a>(&'a self, _id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        ready(Ok(self.status())).boxed()
    }

    fn erase<'a>(&'a self, _id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        refused()
    }

    fn claim<'a>(
        &'a self,
        _key: &'a ClaimKey,
        _id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        refused()
    }

    fn release<'a>(
        &'a self,
        _key: &'a ClaimKey,
        _id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        refused()
    }

    fn send_command<'a>(
        &'a self,
        _id: &'a StreamId,
        _command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        refused()
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        stream::pending().boxed()
    }

    fn commands_of(&self, _: &StreamId) -> BoxStream<'static, Command> {
        stream::pending().boxed()
    }
}

fn record(seq: u64, event: &Event<'_>) -> Record {
    let mut builder = RecordBuilder::new(Seq(seq));
    builder.push(event);
    builder.take().unwrap()
}

/// A delta of a few bytes in an event of 32 KiB, most of which is white space.
fn padded_delta(seq: u64) -> Record {
    let space = " ".repeat(32 * KIB);
    let payload = format!(r#"{{"choices":{space}[{{"index":0,"delta":{{"content":"{seq} "}}}}]}}"#);
    record(seq, &Event::chunk(&[0.into()], payload.as_bytes()))
}

/// A part of an event that has no end.
fn part(seq: u64) -> Record {
    let payload = &vec![b'x'; 256 * KIB];
    record(seq, &Event::Part { payload })
}

#[tokio::test(start_paused = true)]
async fn a_slow_consumer_of_a_fast_log_holds_bounded_memory_and_loses_nothing() {
    const DELTAS: u64 = 2000;
    let (live, log) = FastLog::start(DELTAS, padded_delta);
    let answer = completions(log, StreamId::random().unwrap());
    let choice = answer.first().await.unwrap();
    let mut content = choice.content();
    for seq in 1..=DELTAS {
        let delta = content.next().await.unwrap().unwrap();
        assert_eq!(&*delta, format!("{seq} "));
        sleep(Duration::from_millis(1)).await;
    }
    assert!(content.next().await.is_none_or(|end| end.is_err()));
    assert_eq!(answer.closed().await, Ok(()));
    // 64 MiB were read, and never more than one of them was kept.
    assert!(live.total() > 60 * MIB, "{}", live.total());
    assert!(live.peak() < MIB, "{}", live.peak());
    drop((answer, choice, content));
    tokio::task::yield_now().await;
    assert_eq!(live.now.load(Ordering::Relaxed), 0, "it is given back");
}

/// The last handle is dropped while the log has more.
#[tokio::test(start_paused = true)]
async fn nobody_reads_a_log_whose_handles_are_dropped() {
    let (live, log) = FastLog::start(u64::MAX - 2, padded_delta);
    let answer = completions(log, StreamId::random().unwrap());
    let choice = answer.first().await.unwrap();
    choice.content().next().await.unwrap().unwrap();
    drop((answer, choice));
    while live.now.load(Ordering::Relaxed) > 0 {
        sleep(Duration::from_millis(1)).await;
    }
    let total = live.total();
    sleep(Duration::from_secs(60)).await;
    assert_eq!(live.total(), total);
}

#[tokio::test(start_paused = true)]
async fn an_event_in_parts_is_limited_as_any_event() {
    let (live, log) = FastLog::start(u64::MAX - 2, part);
    let limits = Limits::default().with_event_bytes(2 * MIB);
    let source = source(log, StreamId::random().unwrap());
    let answer = Completions::builder().limits(limits).from_source(source);
    let error = LimitExceeded::new(Limit::Event, 2 * MIB as u64);
    assert_eq!(answer.closed().await, Err(StreamError::Limit(error)));
    assert!(live.total() < 4 * MIB, "{}", live.total());
    // By default, too.
    let (live, log) = FastLog::start(u64::MAX - 2, part);
    let answer = completions(log, StreamId::random().unwrap());
    let closed = answer.closed().await;
    assert!(matches!(closed, Err(StreamError::Limit(error)) if error.limit == Limit::Event));
    assert!(live.total() < 34 * MIB, "{}", live.total());
}

/// How the builder says that a stream is read applies to that of a log.
#[tokio::test(start_paused = true)]
async fn the_options_of_the_handles_apply() {
    let (log, id) = (new_log(), StreamId::random().unwrap());
    let mut writer = log.open(&id, &Meta::new("/v1/x", 1)).await.unwrap();
    let payload = br#"{"choices":[{"index":3,"delta":{"deliberation":"Hm.","content":"Yes."},"finish_reason":"stop"}]}"#;
    let record = record(1, &Event::chunk(&[3.into()], payload));
    writer.append(&record).await.unwrap();
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let read = |builder: unbraid::CompletionsBuilder| {
        let answer = builder.from_source(source(Arc::clone(&log), id.clone()));
        async move { answer.first().await.unwrap().outcome().await }
    };
    let unsplit = read(Completions::builder()).await;
    assert_eq!(unsplit.message.reasoning, "");
    let named = read(Completions::builder().reasoning_keys(["deliberation"])).await;
    assert_eq!(named.message.reasoning, "Hm.");
    assert_eq!(named.message.content, "Yes.");
    // The only choice is choice 0, whatever its index is (E12), and the end in the log is its end.
    assert_eq!((unsplit.choice.0, unsplit.end.as_str()), (3, "finished"));
    let single = read(Completions::builder().expect_choices(1)).await;
    assert_eq!((single.choice.0, single.end.as_str()), (0, "finished"));
    // The events of a body in binary messages are kept as text.
    let bedrock = read(Completions::builder().dialect(unbraid::Dialect::Bedrock)).await;
    assert_eq!(bedrock.message.content, "Yes.");
}
