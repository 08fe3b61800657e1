//! When a reader hangs, and when its gateway is still busy with a fault.

use std::path::{Path, PathBuf};

use super::*;
use crate::chaos::{
    Plan,
    answer::{Answer, View},
    attempts::Outcome,
    checker::Finish,
    history::Away,
    streams::Stream,
};

const LEASE: Duration = Duration::from_secs(5);

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn options() -> Options {
    Options {
        log: LogKind::Redis,
        plan: Plan::Chaos,
        kills: 0,
        seed: 1,
        first_round: 1,
        clients: 1,
        lease: LEASE,
        time: LEASE,
        unbraid: PathBuf::new(),
    }
}

/// A reader of a stream whose producer is dead. It leaves the gateway 0 for the gateway 1 after 6 seconds, and ends after this
/// time, or never. The gateway 1 was partitioned until a time that is counted from the beginning, too.
async fn watch(partition: Option<f64>, end: Option<f64>) -> (Watched, Option<Finish>, String) {
    let options = options();
    let history = History::new(LEASE, true);
    // None of them runs.
    let gateways = Gateways::new(&options, None, Path::new("")).await.unwrap();
    let token = history.generation_started(1, gateways.id(2));
    history.generation_ended(1, token);
    let stream = Arc::new(Stream::new(Answer::new(1, 1)));
    let received = Arc::new(Received::new(stream, View::Combined));
    received.update(|state| {
        state.is_reading = true;
        state.attempts.begin(0);
    });
    let reader = Arc::clone(&received);
    let task = tokio::spawn(async move {
        let start = Instant::now();
        sleep(seconds(6.0)).await;
        reader.gateway.store(1, Ordering::Relaxed);
        reader.update(|state| {
            state.attempts.end(Outcome::Status(503));
            state.attempts.begin(1);
        });
        match end {
            Some(end) => tokio::time::sleep_until(start + seconds(end)).await,
            None => std::future::pending().await,
        }
        reader.finish(Finish::Ended);
    });
    let monitor = Monitor::new(&options, &history, &gateways);
    let readers = [(Arc::clone(&received), task)];
    let partitioned = async {
        let Some(time) = partition else { return };
        let token = history.away(gateways.id(1), Away::Partitioned);
        sleep(seconds(time)).await;
        history.back(token);
    };
    let (watched, ()) = tokio::join!(monitor.watch(&readers), partitioned);
    let (finish, hung) = received.update(|state| (state.finish, state.hung.clone()));
    (watched, finish, hung.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn a_reader_without_an_end_hangs_and_says_since_when_and_where() {
    let (_, finish, hung) = watch(None, None).await;
    assert_eq!(finish, Some(Finish::Hung));
    assert!(hung.starts_with("waited for 7."), "{hung}");
    let last = hung.split_once(", at gateway 1 for 1.").unwrap().1;
    assert!(last.ends_with(", after 503 at 0 in 6.0s"), "{hung}");
    let (watched, finish, _) = watch(None, Some(7.0)).await;
    assert_eq!(finish, Some(Finish::Ended));
    assert!((seconds(6.9)..seconds(7.2)).contains(&watched.slowest));
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_comes_to_a_gateway_just_after_its_fault_waits_like_one_that_was_there() {
    // It comes a second before the end of the partition, and a second after it.
    for partition in [7.0, 5.0] {
        let (watched, finish, hung) = watch(Some(partition), Some(partition + 7.0)).await;
        assert_eq!(finish, Some(Finish::Ended), "{partition}: {hung}");
        let slowest = watched.slowest;
        assert!(
            (seconds(6.9)..seconds(7.2)).contains(&slowest),
            "{slowest:?}"
        );
        let (_, finish, hung) = watch(Some(partition), None).await;
        assert_eq!(finish, Some(Finish::Hung));
        assert!(hung.starts_with("waited for 7."), "{hung}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_was_just_started_has_half_a_lease_less() {
    let history = History::new(LEASE, true);
    sleep(seconds(20.0)).await;
    assert_eq!(history.quiet_since(0), None);
    history.started(0);
    let quiet = history.quiet_since(0).unwrap();
    assert_eq!(quiet.elapsed(), LEASE / 2);
    assert_eq!(history.quiet_since(1), None);
}
