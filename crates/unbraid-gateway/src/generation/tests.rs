//! Generations whose log fails, or is slow.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use tokio::{sync::watch, task::JoinHandle, time::timeout};
use unbraid_log::{Appended, End, LogError, LogWriter, Record, Seq, StreamEnd, StreamId};

use super::{Generation, GenerationArgs, PartSource, Started, StartedPart};
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
        std::future::ready(Ok(())).boxed()
    }

    fn seal<'a>(&'a mut self, end: &'a StreamEnd) -> BoxFuture<'a, Result<(), LogError>> {
        *self.kept.end.lock().unwrap() = Some(end.end);
        std::future::ready(Ok(())).boxed()
    }
}

/// A running generation of two choices.
struct Running {
    live: Arc<Live>,
    mode: watch::Sender<Mode>,
    kept: Kept,
    task: JoinHandle<()>,
}

impl Running {
    fn start(body: ByteStream, mode: Mode, on_log_failure: OnLogFailure) -> Self {
        let limits = StreamLimits {
            streams: 1,
            streams_per_principal: 1,
            readers: 1,
        };
        let metrics = Metrics::new();
        let permit = Streams::new(limits, metrics.clone()).reserve(&Principal::new(""));
        let endpoint = "/v1/chat/completions";
        let id = StreamId::random().unwrap();
        let (registration, commands) = permit.unwrap().register(id, endpoint, false);
        let live = Arc::clone(&registration.live);
        let (mode, received) = watch::channel(mode);
        let kept = Kept::default();
        let writer = TestWriter {
            mode: received,
            kept: kept.clone(),
        };
        let started = Started {
            parts: vec![StartedPart {
                source: PartSource::Open(body),
                choice: None,
            }],
            singles: None,
        };
        let args = GenerationArgs {
            start: std::future::ready(Ok(started)).boxed(),
            writer: Box::new(writer),
            registration,
            commands,
            endpoint,
            expected: 2,
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
            task,
        }
    }

    /// Waits for the end. Returns it, and what the log has, which is contiguous.
    async fn ended(self) -> (Option<End>, String) {
        timeout(PATIENCE, self.task).await.unwrap().unwrap();
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
        let running = Running::start(body, Mode::Slow, OnLogFailure::Degrade);
        let live = Arc::clone(&running.live);
        let mut cancel = tokio::spawn(async move { live.cancel(choice).await });
        let early = timeout(Duration::from_secs(5), &mut cancel).await;
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
    let running = Running::start(body, Mode::Fails(unavailable()), OnLogFailure::Degrade);
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
    let running = Running::start(complete(), mode, OnLogFailure::Degrade);
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
    let gap = LogError::Gap {
        tail: Seq(0),
        first: Seq(1),
    };
    let fenced = LogError::Fenced { first: Seq(1) };
    for (error, policy, end) in [
        (unavailable(), OnLogFailure::Fail, End::ServerError),
        (gap, OnLogFailure::Degrade, End::ServerError),
        (fenced, OnLogFailure::Degrade, End::ProducerLost),
        (LogError::Sealed, OnLogFailure::Degrade, End::ProducerLost),
    ] {
        for is_complete in [true, false] {
            let (silent, _open) = silent();
            let body = if is_complete { complete() } else { silent };
            let running = Running::start(body, Mode::Fails(error.clone()), policy);
            let (ended, text) = running.ended().await;
            assert_eq!(ended, Some(end), "{error}, complete: {is_complete}");
            assert_eq!(text, "");
        }
    }
}
