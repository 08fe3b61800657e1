//! Generations whose log fails, or is slow.

mod cancels;

use std::{
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{
    FutureExt, StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use unbraid_log::{
    Appended, Claim, ClaimKey, Command as LogCommand, End, LogError, LogStatus, LogStore,
    LogWriter, Meta, Producer, ProducerOptions, Record, Seq, StreamEnd, StreamId,
};

use super::{Generation, GenerationArgs, GenerationLog, PartSource, Start, Started, StartedPart};
use crate::{
    auth::keys::Principal,
    config::{OnLogFailure, Options},
    metrics::Metrics,
    streams::{Live, StreamLimits, Streams},
    upstream::ByteStream,
};

const PATIENCE: Duration = Duration::from_secs(10);

/// What the log does with an append.
#[derive(Clone)]
enum Mode {
    Open,
    /// It does not answer.
    Slow,
    Fails(LogError),
}

/// What the log has got.
#[derive(Clone, Default)]
struct Kept {
    records: Arc<Mutex<Vec<Record>>>,
    end: Arc<Mutex<Option<End>>>,
}

/// A log of one stream.
struct TestLog {
    mode: watch::Receiver<Mode>,
    kept: Kept,
}

impl LogStore for TestLog {
    fn open<'a>(
        &'a self,
        _id: &'a StreamId,
        _meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        let writer = TestWriter {
            mode: self.mode.clone(),
            kept: self.kept.clone(),
        };
        ready(Ok(Box::new(writer) as Box<dyn LogWriter>)).boxed()
    }

    fn status<'a>(&'a self, _id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        let meta = Arc::new(Meta::new("/v1/chat/completions", 1));
        let tail = self.kept.records.lock().unwrap().last().map(Record::last);
        let tail = tail.unwrap_or(Seq::START);
        // A log that says that it is sealed was sealed by another gateway.
        let is_sealed = matches!(&*self.mode.borrow(), Mode::Fails(LogError::Sealed));
        let mut end = self.kept.end.lock().unwrap();
        if is_sealed {
            end.get_or_insert(End::ProducerLost);
        }
        ready(Ok(match *end {
            Some(end) => LogStatus::Ended {
                meta,
                tail,
                end: StreamEnd::new(end),
                expires: std::time::SystemTime::now(),
            },
            None => LogStatus::Running { meta, tail },
        }))
        .boxed()
    }

    fn read(&self, _: &StreamId, _: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        stream::pending().boxed()
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.status(id)
    }

    fn erase<'a>(&'a self, _: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        ready(Ok(())).boxed()
    }

    fn claim<'a>(
        &'a self,
        _: &'a ClaimKey,
        _: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        ready(Ok(Claim::Acquired)).boxed()
    }

    fn release<'a>(
        &'a self,
        _: &'a ClaimKey,
        _: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        ready(Ok(())).boxed()
    }

    fn send_command<'a>(
        &'a self,
        _: &'a StreamId,
        _: LogCommand,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        ready(Ok(())).boxed()
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, LogCommand)> {
        stream::pending().boxed()
    }

    fn commands_of(&self, _: &StreamId) -> BoxStream<'static, LogCommand> {
        stream::pending().boxed()
    }
}

struct TestWriter {
    mode: watch::Receiver<Mode>,
    kept: Kept,
}

impl LogWriter for TestWriter {
    fn append<'a>(&'a mut self, record: &'a Record) -> BoxFuture<'a, Result<Appended, LogError>> {
        async move {
            let answers = self.mode.wait_for(|mode| !matches!(mode, Mode::Slow)).await;
            if let Mode::Fails(error) = &*answers.unwrap() {
                return Err(error.clone());
            }
            self.kept.records.lock().unwrap().push(record.clone());
            Ok(Appended::New)
        }
        .boxed()
    }

    fn renew(&mut self) -> BoxFuture<'_, Result<(), LogError>> {
        ready(Ok(())).boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        // The first end is kept.
        self.kept.end.lock().unwrap().get_or_insert(end.end);
        ready(Ok(())).boxed()
    }
}

/// A running generation of two choices.
struct Running {
    live: Arc<Live>,
    mode: watch::Sender<Mode>,
    kept: Kept,
    producer: Arc<Producer>,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(body: ByteStream, mode: Mode, on_log_failure: OnLogFailure) -> Self {
        let parts = vec![StartedPart {
            source: PartSource::Open(body),
            choice: None,
        }];
        let started = Started {
            parts,
            singles: None,
        };
        let start = ready(Ok(started)).boxed();
        Self::start_later(start, mode, on_log_failure).await
    }

    /// A generation whose upstream has not answered yet.
    async fn start_later(start: Start, mode: Mode, on_log_failure: OnLogFailure) -> Self {
        let limits = StreamLimits {
            streams: 1,
            streams_per_principal: 1,
            readers: 1,
        };
        let metrics = Metrics::new("test");
        let permit = Streams::new(limits, metrics.clone()).reserve(&Principal::new(""));
        let endpoint = "/v1/chat/completions";
        let id = StreamId::random().unwrap();
        let (registration, commands) = permit.unwrap().register(id.clone(), endpoint, false);
        let live = Arc::clone(&registration.live);
        let (mode, received) = watch::channel(mode);
        let kept = Kept::default();
        let log = TestLog {
            mode: received,
            kept: kept.clone(),
        };
        let options = ProducerOptions::default().with_on_failure(on_log_failure.into());
        let meta = Meta::new(endpoint, 1);
        let producer = Producer::open(Arc::new(log), &id, &meta, options);
        let producer = Arc::new(producer.await.unwrap());
        let args = GenerationArgs {
            start,
            log: GenerationLog::Shared(Arc::clone(&producer)),
            is_shared: true,
            registration,
            commands,
            endpoint,
            created: 5,
            model: None,
            expected: 2,
            dropped: Arc::default(),
            orphan_after: None,
            wants_usage: false,
            on_refused: None,
            metrics,
        };
        let options = Options {
            on_log_failure,
            ..Options::default()
        };
        let task = tokio::spawn(Generation::new(args, &options).run());
        Self {
            live,
            mode,
            kept,
            producer,
            task,
        }
    }

    /// Waits for the end. Returns it, and what the log has, which is contiguous.
    async fn ended(self) -> (Option<End>, String) {
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
        timeout(PATIENCE, self.producer.sealed()).await.unwrap();
        let mut next = Seq(1);
        let mut text = String::new();
        for record in &*self.kept.records.lock().unwrap() {
            for (seq, event) in record.events() {
                assert_eq!(seq, next);
                next = seq.next();
                text.push_str(&String::from_utf8_lossy(
                    event.payload().unwrap_or_default(),
                ));
            }
        }
        (*self.kept.end.lock().unwrap(), text)
    }
}

fn chunk(index: u32, text: &str) -> String {
    format!(r#"{{"choices":[{{"index":{index},"delta":{{"content":"{text}"}}}}]}}"#)
}

fn finish(index: u32) -> String {
    format!(r#"{{"choices":[{{"index":{index},"delta":{{}},"finish_reason":"stop"}}]}}"#)
}

fn events(events: &[String]) -> ByteStream {
    let reads: Vec<_> = events
        .iter()
        .map(|event| Ok(format!("data: {event}\n\n").into()))
        .collect();
    stream::iter(reads).boxed()
}

fn complete() -> ByteStream {
    events(&[
        chunk(0, "a"),
        chunk(1, "b"),
        finish(0),
        finish(1),
        "[DONE]".into(),
    ])
}

/// Two events, and then nothing. The sender notices when the body is dropped.
fn silent() -> (ByteStream, watch::Sender<()>) {
    let (sender, receiver) = watch::channel(());
    let open = stream::once(async move {
        let _open = receiver;
        pending().await
    });
    let body = events(&[chunk(0, "a"), chunk(1, "b")]).chain(open).boxed();
    (body, sender)
}

fn unavailable() -> LogError {
    LogError::unavailable("the test")
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_confirmed_once_the_log_has_it() {
    for choice in [Some(unbraid_core::ChoiceIndex(1)), None] {
        let (body, _open) = silent();
        let running = Running::start(body, Mode::Slow, OnLogFailure::Degrade).await;
        let live = Arc::clone(&running.live);
        let mut cancel = tokio::spawn(async move { live.cancel(choice).await });
        let early = timeout(Duration::from_millis(1500), &mut cancel).await;
        assert!(early.is_err(), "the log has nothing");
        running.mode.send(Mode::Open).unwrap();
        let cancelled = timeout(PATIENCE, cancel).await.unwrap().unwrap().unwrap();
        assert_eq!(cancelled.end, End::Cancelled);
        let is_sealed = running.kept.end.lock().unwrap().is_some();
        assert_eq!(is_sealed, choice.is_none(), "{choice:?}");
        let last = running
            .kept
            .records
            .lock()
            .unwrap()
            .last()
            .cloned()
            .unwrap();
        let ends = last.events().map(|(_, event)| format!("{event:?}"));
        assert!(ends.last().unwrap().contains("Cancelled"));
        running.task.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_log_is_down_a_cancel_closes_the_upstream_and_nothing_is_lost() {
    let (body, open) = silent();
    let running = Running::start(body, Mode::Fails(unavailable()), OnLogFailure::Degrade).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(open.receiver_count(), 1, "the answer continues");
    let live = Arc::clone(&running.live);
    tokio::spawn(async move { live.cancel(None).await });
    timeout(Duration::from_secs(1), open.closed())
        .await
        .unwrap();
    running.mode.send(Mode::Open).unwrap();
    let (end, text) = running.ended().await;
    assert_eq!(end, Some(End::Cancelled));
    let expected = [chunk(0, "a"), chunk(1, "b")].concat();
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_ends_while_the_log_is_down_is_written_whole_later() {
    let mode = Mode::Fails(unavailable());
    let running = Running::start(complete(), mode, OnLogFailure::Degrade).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(*running.kept.end.lock().unwrap(), None);
    running.mode.send(Mode::Open).unwrap();
    let (end, text) = running.ended().await;
    assert_eq!(end, Some(End::Finished));
    let expected = [chunk(0, "a"), chunk(1, "b"), finish(0), finish(1)].concat();
    assert!(text.starts_with(&expected), "{text}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_whose_last_events_the_log_refuses_ends_with_an_error() {
    let fenced = LogError::Fenced { first: Seq(1) };
    for (error, policy, end) in [
        (LogError::Full, OnLogFailure::Fail, Some(End::ServerError)),
        // Another producer writes the log, and its end is not ours to decide.
        (fenced, OnLogFailure::Degrade, None),
        (
            LogError::Sealed,
            OnLogFailure::Degrade,
            Some(End::ProducerLost),
        ),
    ] {
        for is_complete in [true, false] {
            let (silent, _open) = silent();
            let body = if is_complete { complete() } else { silent };
            let running = Running::start(body, Mode::Fails(error.clone()), policy).await;
            let (ended, text) = running.ended().await;
            assert_eq!(ended, end, "{error}, complete: {is_complete}");
            assert_eq!(text, "");
        }
    }
}
