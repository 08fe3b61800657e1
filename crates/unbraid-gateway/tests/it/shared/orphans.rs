//! Generations that are cancelled without readers, whichever gateway has the readers.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use unbraid_log::internal::scripted::Fault;

use super::{event, pair, path, patient_pair, silent};
use crate::support::{Reader, Step, Upstream, chunk, eventually, request, send, sse};

#[tokio::test]
async fn a_reader_on_another_gateway_keeps_a_generation_and_its_leaving_counts() {
    for seconds in ["1.2", "0.1"] {
        let pair = pair(silent().await).await;
        let post = pair.a.post(request(2));
        let post = post.header("x-stream-orphan-after", seconds);
        let mut post = Reader::new(send(post).await);
        let id = post.header("x-stream-id").unwrap().to_owned();
        post.until("\"b\"").await;
        let view = pair.b.view(&path(&id, "/events")).await;
        sleep(Duration::from_millis(100)).await;
        drop(post);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(pair.a.status(&id).await["state"], "running");
        assert_eq!(pair.upstream.closed(), 0);
        // The next reader is on the same gateway, and the one after that on the first.
        let second = pair.b.view(&path(&id, "/choices/0")).await;
        drop(view);
        sleep(Duration::from_secs(2)).await;
        let third = pair.a.view(&path(&id, "/choices/0")).await;
        drop(second);
        sleep(Duration::from_secs(2)).await;
        assert_eq!(pair.upstream.closed(), 0);
        drop(third);
        eventually("it is orphaned", async || pair.upstream.closed() == 1).await;
        assert_eq!(pair.b.ended(&id).await["end"], "cancelled");
    }
}

/// It is not cancelled too early, and not much too late.
#[tokio::test]
async fn the_time_without_a_reader_begins_when_the_last_one_leaves() {
    let after = Duration::from_millis(1200);
    let pair = pair(silent().await).await;
    let post = pair.a.post(request(1));
    let post = post.header("x-stream-orphan-after", "1.2");
    let post = Reader::new(send(post).await);
    let id = post.header("x-stream-id").unwrap().to_owned();
    let view = pair.b.view(&path(&id, "/events")).await;
    drop(post);
    sleep(after).await;
    let left = Instant::now();
    drop(view);
    eventually("it is orphaned", async || pair.upstream.closed() == 1).await;
    let waited = left.elapsed();
    assert!(waited >= after && waited < 4 * after, "{waited:?}");
}

/// While the log fails, no gateway can report its readers.
#[tokio::test]
async fn a_generation_whose_log_fails_is_not_orphaned_until_its_readers_can_be_reported() {
    let mut steps = vec![sse()];
    for _ in 0..60 {
        steps.push(event(&chunk(0, "x")));
        steps.push(Step::Sleep(Duration::from_millis(100)));
    }
    steps.push(Step::Hang);
    let pair = patient_pair(Upstream::steps(steps).await).await;
    let post = pair.a.post(request(1));
    let post = post.header("x-stream-orphan-after", "1");
    let mut post = Reader::new(send(post).await);
    let id = post.header("x-stream-id").unwrap().to_owned();
    post.until("\"x\"").await;
    let view = pair.b.view(&path(&id, "/events")).await;
    drop(post);
    let set_all = |fault: Option<Fault>| pair.logs.iter().for_each(|log| log.set(fault));
    set_all(Some(Fault::Down));
    sleep(Duration::from_millis(2500)).await;
    assert_eq!(pair.upstream.closed(), 0, "the log fails");
    set_all(None);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(pair.upstream.closed(), 0, "it has a reader");
    drop(view);
    eventually("it is orphaned", async || pair.upstream.closed() == 1).await;
    assert_eq!(pair.b.ended(&id).await["end"], "cancelled");
}
