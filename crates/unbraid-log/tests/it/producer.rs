//! Producers whose log fails, hangs, answers late, or forgets.

mod asleep;
mod fails;
mod superseded;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, sleep, timeout};
use unbraid_log::{
    Appended, End, Event, LogError, LogStore, Meta, OnFailure, Producer, ProducerObserver,
    ProducerOptions, Record, RecordBuilder, Seq, StreamEnd, StreamId,
    internal::scripted::{Engine, Fault, TestLog, payloads},
};

pub(crate) const LEASE: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(600);

/// What was reported about a producer.
#[derive(Default)]
struct Reports {
    appends: AtomicU64,
    errors: AtomicU64,
    repaired: AtomicU64,
    degraded: AtomicU64,
    given_up: AtomicU64,
}

impl ProducerObserver for Reports {
    fn appended(&self, result: Result<Appended, &LogError>, _after: Duration) {
        let count = if result.is_ok() {
            &self.appends
        } else {
            &self.errors
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn degraded(&self, cause: Option<&LogError>) {
        // A gauge: the end of the last degraded stream sets it to zero.
        let change = if cause.is_some() { 1 } else { u64::MAX };
        self.degraded.fetch_add(change, Ordering::Relaxed);
    }

    fn gave_up(&self) {
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    fn repaired(&self, records: u64) {
        self.repaired.fetch_add(records, Ordering::Relaxed);
    }
}

/// A producer, and the number of its events.
struct Running {
    engine: Engine,
    log: Arc<TestLog>,
    id: StreamId,
    producer: Producer,
    reports: Arc<Reports>,
    builder: RecordBuilder,
}

async fn start() -> Running {
    start_with(OnFailure::Degrade, None).await
}

async fn start_with(policy: OnFailure, fault: Option<Fault>) -> Running {
    let engine = Engine::new(LEASE);
    let log = engine.gateway();
    log.set(fault);
    let id = StreamId::random().unwrap();
    let reports = Arc::new(Reports::default());
    let options = ProducerOptions::default()
        .with_lease(LEASE)
        .with_on_failure(policy)
        .with_observer(Arc::clone(&reports) as Arc<dyn ProducerObserver>);
    let store = Arc::clone(&log) as Arc<dyn LogStore>;
    let meta = Meta::new("/v1/chat/completions", 1);
    let producer = Producer::open(store, &id, &meta, options).await.unwrap();
    Running {
        engine,
        log,
        id,
        producer,
        reports,
        builder: RecordBuilder::new(Seq(1)),
    }
}

impl Running {
    /// Gives the producer an event: its number as text.
    fn push(&mut self) -> u64 {
        let number = self.builder.next_seq().0;
        let text = number.to_string();
        self.builder
            .push(&Event::chunk(&[0.into()], text.as_bytes()));
        self.producer.append(self.builder.take().unwrap());
        number
    }

    async fn push_flushed(&mut self, count: usize) {
        for _ in 0..count {
            self.push();
            self.producer.flushed().await.unwrap();
        }
    }

    /// What readers have, which is 1, 2, 3 and so on.
    fn released(&self) -> u64 {
        let records: Vec<Record> = self.producer.journal().records(Seq::START);
        let texts = payloads(&records);
        let expected: Vec<String> = (1..=texts.len()).map(|n| n.to_string()).collect();
        assert_eq!(texts, expected);
        texts.len() as u64
    }

    /// What the log has, which is 1, 2, 3 and so on.
    fn kept(&self) -> u64 {
        let texts = self.engine.payloads(&self.id);
        let expected: Vec<String> = (1..=texts.len()).map(|n| n.to_string()).collect();
        assert_eq!(texts, expected);
        texts.len() as u64
    }

    /// Waits for the failure of the log.
    async fn failed(&self) {
        let failed = std::future::poll_fn(|cx| self.producer.poll_failed(cx));
        let error = timeout(PATIENCE, failed).await.unwrap();
        assert!(matches!(
            error,
            LogError::Unavailable { .. } | LogError::Full | LogError::InvalidRecord { .. }
        ));
        assert!(!self.producer.is_degraded());
    }

    async fn finish(&self) {
        self.producer.finish(StreamEnd::new(End::Finished));
        timeout(PATIENCE, self.producer.sealed()).await.unwrap();
    }

    fn local_end(&self) -> Option<End> {
        self.producer.journal().end()?.ok().map(|end| end.end)
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_reaches_readers_after_its_append_is_acknowledged() {
    let mut running = start().await;
    running.log.set(Fault::Slow(Duration::from_millis(300)));
    for _ in 0..5 {
        running.push();
    }
    sleep(Duration::from_millis(299)).await;
    assert_eq!(running.released(), 0);
    sleep(Duration::from_millis(2)).await;
    assert!(running.released() >= 1 && running.released() == running.kept());
    running.producer.flushed().await.unwrap();
    assert_eq!((running.released(), running.kept()), (5, 5));
    // What arrived while the first append was in flight is one record.
    assert!(running.engine.spans(&running.id).len() <= 2);
    assert!(!running.producer.is_degraded());
    running.finish().await;
    assert_eq!(running.engine.end(&running.id), Some(End::Finished));
    assert_eq!(running.local_end(), Some(End::Finished));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_fails_degrades_the_stream_and_gets_everything_later() {
    for fault in [Fault::Down, Fault::Full, Fault::Foreign, Fault::Hang] {
        let mut running = start().await;
        running.push_flushed(2).await;
        running.log.set(fault);
        running.push();
        sleep(Duration::from_millis(1100)).await;
        assert!(running.producer.is_degraded());
        assert_eq!(running.reports.degraded.load(Ordering::Relaxed), 1);
        // From now on readers wait for nothing.
        for _ in 0..50 {
            running.push();
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!((running.released(), running.kept()), (53, 2));
        running.log.set(None);
        sleep(Duration::from_millis(3100)).await;
        assert_eq!((running.released(), running.kept()), (53, 53));
        assert!(!running.producer.is_degraded());
        running.push_flushed(1).await;
        running.finish().await;
        assert_eq!(running.kept(), 54);
        assert_eq!(running.reports.degraded.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn an_append_whose_answer_is_lost_is_repeated_and_kept_once() {
    let mut running = start().await;
    running
        .log
        .script([Some(Fault::LostAnswer), Some(Fault::LostAnswer)]);
    running.push();
    sleep(Duration::from_secs(4)).await;
    running.push_flushed(1).await;
    assert_eq!(running.kept(), 2);
    running.finish().await;
}

/// A broker that answers after 5 s: the request that was given up arrives after the one that repeats it.
#[tokio::test(start_paused = true)]
async fn an_append_that_arrives_late_changes_nothing() {
    let mut running = start().await;
    running.push_flushed(1).await;
    running
        .log
        .script([Some(Fault::Late(Duration::from_secs(5)))]);
    for _ in 0..10 {
        running.push();
        sleep(Duration::from_secs(1)).await;
    }
    running.finish().await;
    assert_eq!(running.kept(), 11);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_slow_for_minutes_does_not_cost_the_lease() {
    let mut running = start().await;
    let other = running.engine.gateway();
    running.log.set(Fault::Slow(Duration::from_millis(1900)));
    for _ in 0..300 {
        running.push();
        sleep(Duration::from_secs(1)).await;
        other.seal_lost(&running.id).await.unwrap();
        assert_eq!(running.engine.end(&running.id), None);
    }
    running.log.set(None);
    running.finish().await;
    assert_eq!(running.kept(), 300);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_loses_its_tail_or_everything_is_repaired_although_nothing_follows() {
    for lost in [1, 3, usize::MAX] {
        let mut running = start().await;
        running.push_flushed(10).await;
        if lost == usize::MAX {
            running.engine.empty();
        } else {
            running.engine.lose(lost);
        }
        // The upstream is silent; the probe after the next renewal finds the loss.
        sleep(LEASE).await;
        assert_eq!(running.kept(), 10, "{lost} lost");
        assert!(running.reports.repaired.load(Ordering::Relaxed) >= lost.min(10) as u64);
        assert!(!running.producer.is_degraded());
        running.push_flushed(1).await;
        running.finish().await;
        assert_eq!(running.kept(), 11);
    }
}

#[tokio::test(start_paused = true)]
async fn records_that_are_appended_again_are_the_same_records() {
    let mut running = start().await;
    running.push_flushed(3).await;
    running.log.set(Fault::Slow(Duration::from_millis(100)));
    for _ in 0..4 {
        running.push();
    }
    running.producer.flushed().await.unwrap();
    running.push_flushed(200).await;
    let spans = running.engine.spans(&running.id);
    running.engine.empty();
    running.push_flushed(1).await;
    running.finish().await;
    assert_eq!(running.engine.spans(&running.id)[..spans.len()], spans);
}

#[tokio::test(start_paused = true)]
async fn a_loss_just_before_the_seal_is_repaired() {
    for lost in [1, 2, usize::MAX] {
        let mut running = start().await;
        running.push_flushed(5).await;
        if lost == usize::MAX {
            running.engine.empty();
        } else {
            running.engine.lose(lost);
        }
        running.finish().await;
        assert_eq!(running.kept(), 5);
        assert_eq!(running.engine.end(&running.id), Some(End::Finished));
        assert_eq!(running.local_end(), Some(End::Finished));
    }
}

#[tokio::test(start_paused = true)]
async fn a_seal_whose_answer_is_lost_is_repeated() {
    let mut running = start().await;
    running.push_flushed(5).await;
    running
        .log
        .script([Some(Fault::LostAnswer), Some(Fault::Down)]);
    running.finish().await;
    assert_eq!(running.engine.end(&running.id), Some(End::Finished));
}

#[tokio::test(start_paused = true)]
async fn while_the_log_is_down_readers_get_the_end_and_the_log_gets_it_later() {
    let mut running = start().await;
    running.push_flushed(1).await;
    running.log.set(Fault::Down);
    running.push();
    running.producer.finish(StreamEnd::new(End::Finished));
    sleep(Duration::from_secs(60)).await;
    assert_eq!(running.released(), 2);
    assert_eq!(running.local_end(), Some(End::Finished));
    assert_eq!(running.engine.end(&running.id), None);
    running.log.set(None);
    running.finish().await;
    assert_eq!(running.kept(), 2);
    assert_eq!(running.engine.end(&running.id), Some(End::Finished));
}

#[tokio::test(start_paused = true)]
async fn a_stream_begins_degraded_and_is_opened_later_even_if_its_opening_got_no_answer() {
    for fault in [
        Fault::Down,
        Fault::Full,
        Fault::LostAnswer,
        Fault::Late(Duration::from_secs(5)),
    ] {
        let mut running = start_with(OnFailure::Degrade, Some(fault)).await;
        assert!(running.producer.is_degraded(), "{fault:?}");
        running.push_flushed(3).await;
        assert_eq!(running.released(), 3);
        sleep(Duration::from_secs(8)).await;
        // Each attempt to open it is one to append.
        let errors = running.reports.errors.load(Ordering::Relaxed);
        assert!(errors > 1, "{fault:?}: {errors}");
        running.log.set(None);
        running.push_flushed(1).await;
        running.finish().await;
        assert_eq!(running.kept(), 4, "{fault:?}");
        assert_eq!(running.engine.end(&running.id), Some(End::Finished));
    }
}

#[tokio::test(start_paused = true)]
async fn a_producer_that_is_dropped_ends_as_lost_and_what_is_held_is_freed_then() {
    let mut running = start().await;
    running.push_flushed(1).await;
    let held = Arc::new(());
    running.producer.hold(Arc::clone(&held));
    running.log.set(Fault::Down);
    let Running {
        producer,
        engine,
        id,
        log,
        ..
    } = running;
    drop(producer);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(Arc::strong_count(&held), 2, "the log has no end yet");
    log.set(None);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(engine.end(&id), Some(End::ProducerLost));
    assert_eq!(Arc::strong_count(&held), 1);
}

/// The task of a producer calls code of others: a log, and its observer.
#[tokio::test(start_paused = true)]
async fn a_producer_whose_task_panics_has_failed() {
    struct Panics;
    impl ProducerObserver for Panics {
        fn appended(&self, _result: Result<Appended, &LogError>, _after: Duration) {
            panic!("as an observer should not");
        }
    }
    let log: Arc<dyn LogStore> = Engine::new(LEASE).gateway();
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/chat/completions", 1);
    let options = ProducerOptions::default().with_observer(Arc::new(Panics));
    let producer = Producer::open(log, &id, &meta, options).await.unwrap();
    let mut builder = RecordBuilder::new(Seq(1));
    builder.push(&Event::chunk(&[0.into()], b"1"));
    producer.append(builder.take().unwrap());
    let flushed = timeout(PATIENCE, producer.flushed()).await;
    assert!(flushed.is_ok_and(|flushed| flushed.is_err_and(|error| error.is_temporary())));
    let failed = std::future::poll_fn(|cx| producer.poll_failed(cx));
    assert!(timeout(PATIENCE, failed).await.is_ok());
    timeout(PATIENCE, producer.sealed()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_log_that_never_comes_back_is_given_up_after_the_time_to_live() {
    let mut running = start().await;
    running.push_flushed(1).await;
    running.log.set(Fault::Down);
    running.producer.finish(StreamEnd::new(End::Finished));
    timeout(Duration::from_secs(3610), running.producer.sealed())
        .await
        .unwrap();
    assert_eq!(running.local_end(), Some(End::Finished));
    assert!(running.producer.has_given_up());
    assert_eq!(running.reports.given_up.load(Ordering::Relaxed), 1);
    let calls = running.log.calls();
    sleep(Duration::from_secs(100)).await;
    assert_eq!(running.log.calls(), calls, "the task has ended");
}

#[tokio::test(start_paused = true)]
async fn a_silent_producer_of_a_healthy_log_calls_it_rarely() {
    let running = start().await;
    let before = running.log.calls();
    sleep(LEASE * 10).await;
    // A renewal every third of the lease, with nothing to probe.
    let calls = running.log.calls() - before;
    assert!((28..=32).contains(&calls), "{calls}");
}

#[tokio::test(start_paused = true)]
async fn several_tasks_may_wait_until_everything_is_flushed() {
    let mut running = start_with(OnFailure::Degrade, None).await;
    running
        .log
        .set(Some(Fault::Slow(Duration::from_millis(100))));
    running.push();
    let started = Instant::now();
    // Each of them is polled with a waker of its own, as by a task.
    let flushed = (0..3).map(|_| timeout(PATIENCE, running.producer.flushed()));
    let flushed: Vec<_> = FuturesUnordered::from_iter(flushed).collect().await;
    assert!(flushed.iter().all(|flushed| matches!(flushed, Ok(Ok(())))));
    // A future that is polled last when its timeout ends finds what it was not woken for.
    assert!(started.elapsed() < LEASE, "{:?}", started.elapsed());
}
