//! A log in which another program has written something in place of a stream.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Semaphore;
use unbraid_gateway::OnLogFailure;
use unbraid_log::internal::scripted::Fault;

use super::{gated, pair, pair_with, path};
use crate::support::eventually;

#[tokio::test]
async fn an_answer_whose_place_in_the_log_is_taken_continues_from_memory() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(gated(3, &gate).await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("b0").await;
    pair.logs[0].set(Fault::Foreign);
    gate.add_permits(1);
    post.until("b1").await;
    assert_eq!(pair.a.status(&id).await["durability"], "degraded");
    gate.add_permits(1);
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let local = pair.a.view(&path(&id, "/events")).await.rest().await;
    assert_eq!(local, events);
    // What was written there is removed.
    pair.logs[0].set(None);
    eventually("the log has it", async || {
        pair.a.status(&id).await["durability"] == "replay"
    })
    .await;
    let other = pair.b.view(&path(&id, "/events")).await.rest().await;
    assert_eq!(other, events);
}

#[tokio::test]
async fn with_the_policy_fail_an_answer_whose_place_in_the_log_is_taken_ends_at_once() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair_with(gated(3, &gate).await, OnLogFailure::Fail).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("b0").await;
    pair.logs[0].set(Fault::Foreign);
    gate.add_permits(1);
    let events = post.rest().await;
    let last = events.last().unwrap().json();
    assert_eq!(last["error"]["code"], "server_error");
    assert_eq!(pair.a.status(&id).await["end"], json!("server_error"));
    eventually("the upstream is closed", async || {
        pair.upstream.closed() == 1
    })
    .await;
}
