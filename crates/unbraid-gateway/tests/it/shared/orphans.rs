//! Generations that are cancelled without readers, whichever gateway has the readers.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::{pair, path, silent};
use crate::support::{Reader, eventually, request, send};

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
