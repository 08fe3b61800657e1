//! Logs and gateways that fail.

use std::{sync::Arc, time::Duration};

use serde_json::json;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};
use unbraid_gateway::OnLogFailure;
use unbraid_log::{
    LogStore,
    internal::scripted::{Engine, Fault},
};

use super::{
    LEASE, event, gated, pair, pair_of, pair_with, path, patient_pair, silent, status_code, steady,
};
use crate::{
    create::error_code,
    support::{
        Event, Reader, Step, Upstream, chunk, eventually, request, send, soon, sse, start_with,
    },
};

fn without_pings(text: &str) -> String {
    text.replace(": ping\n", "")
}

#[tokio::test]
async fn while_the_log_is_down_answers_are_degraded_and_the_log_gets_them_later() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(gated(3, &gate).await).await;
    pair.logs[0].set(Fault::Down);
    let response = send(pair.a.post(request(2))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["x-stream-durability"], "degraded");
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let mut post = Reader::new(response);
    post.until("b0").await;
    assert_eq!(pair.a.status(&id).await["durability"], "degraded");
    assert_eq!(pair.a.metric("unbraid_log_degraded"), 1.0);
    assert!(pair.a.metric("unbraid_log_bytes") > 0.0);
    // The gateway itself reads it from memory; others cannot know it.
    pair.a
        .view(&path(&id, "/choices/0"))
        .await
        .until("a0")
        .await;
    assert_eq!(status_code(&pair.b, &path(&id, "/events")).await, 404);
    assert_eq!(status_code(&pair.a, "/readyz").await, 200);
    gate.add_permits(1);
    post.until("b1").await;
    pair.logs[0].set(None);
    eventually("the log has it", async || {
        pair.a.status(&id).await["durability"] == "replay"
    })
    .await;
    gate.add_permits(1);
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let other = pair.b.view(&path(&id, "/events")).await.rest().await;
    assert_eq!(other, events);
    assert_eq!(pair.a.metric("unbraid_log_degraded"), 0.0);
    assert!(
        pair.a
            .metric(r#"unbraid_log_appends_total{backend="other",result="new"}"#)
            > 0.0
    );
}

#[tokio::test]
async fn an_answer_that_ends_while_the_log_is_down_is_kept_until_the_log_has_it() {
    let pair = pair(steady(20).await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until(" 3\"").await;
    pair.logs[0].set(Fault::Down);
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let status = pair.a.status(&id).await;
    assert_eq!(
        (&status["state"], &status["durability"]),
        (&json!("ended"), &json!("degraded"))
    );
    assert_eq!(status["expires"], json!(null));
    assert_eq!(
        pair.a.view(&path(&id, "/events")).await.rest().await,
        events
    );
    pair.logs[0].set(None);
    assert_eq!(pair.b.ended(&id).await["end"], "finished");
    assert_eq!(
        pair.b.view(&path(&id, "/events")).await.rest().await,
        events
    );
    pair.a.gateway.all_ended().await;
}

#[tokio::test]
async fn a_stream_that_expires_before_the_log_has_it_is_gone_and_not_unknown() {
    let (upstream, engine) = (steady(2).await, Engine::new(LEASE));
    let log = engine.gateway();
    let gateway = start_with(&upstream, |builder| {
        let builder = builder.log(Arc::clone(&log) as Arc<dyn LogStore>);
        builder.lease(LEASE).ttl(Duration::from_millis(200))
    })
    .await;
    log.set(Fault::Down);
    let (id, mut post) = gateway.create(2).await;
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    soon(gateway.gateway.all_ended()).await.unwrap();
    log.set(None);
    for part in ["", "/events", "/choices/1"] {
        assert_eq!(status_code(&gateway, &path(&id, part)).await, 410);
    }
    let other = engine.gateway();
    let other = start_with(&upstream, |builder| builder.log(other)).await;
    assert_eq!(status_code(&other, &path(&id, "")).await, 404);
}

#[tokio::test]
async fn a_reader_waits_with_pings_for_a_log_that_its_gateway_cannot_reach() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(gated(3, &gate).await).await;
    let (id, mut post) = pair.a.create(2).await;
    let mut other = pair.b.view(&path(&id, "/events")).await;
    other.until("b0").await;
    pair.logs[1].set(Fault::Down);
    gate.add_permits(1);
    post.until("b1").await;
    let before = other.text.len();
    while other.text.len() < before + 30 {
        other.rest_or_cut().await;
    }
    assert!(!other.is_over && !other.text.contains("a1") && other.text.ends_with(": ping\n"));
    let refused = send(pair.b.get(&path(&id, "/events"))).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(error_code(refused).await, "log_unavailable");
    pair.logs[1].set(None);
    other.until("b1").await;
    gate.add_permits(1);
    assert_eq!(other.rest().await, post.rest().await);
}

#[tokio::test]
async fn with_the_policy_fail_a_log_that_is_down_refuses_requests_and_ends_running_ones() {
    let pair = pair_with(steady(200).await, OnLogFailure::Fail).await;
    assert_eq!(status_code(&pair.a, "/readyz").await, 200);
    let (id, mut post) = pair.a.create(2).await;
    post.until(" 3\"").await;
    pair.logs[0].set(Fault::Down);
    let events = post.rest().await;
    assert_eq!(
        events.last().unwrap().json()["error"]["code"],
        "server_error"
    );
    eventually("the upstream is closed", async || {
        pair.upstream.closed() == 1
    })
    .await;
    assert_eq!(status_code(&pair.a, "/readyz").await, 503);
    let refused = send(pair.a.post(request(2))).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(error_code(refused).await, "log_unavailable");
    assert_eq!(
        pair.upstream.seen().len(),
        1,
        "the upstream is not paid for nothing"
    );
    pair.logs[0].set(None);
    assert_eq!(pair.b.ended(&id).await["end"], "server_error");
    let read = pair.b.view(&path(&id, "/events")).await.rest().await;
    assert_eq!(
        read[..read.len() - 1],
        events[..events.len() - 1],
        "it is what the log has"
    );
}

/// A broker that is suspended stores what it was sent once it continues.
#[tokio::test]
async fn with_the_policy_fail_a_client_that_resumes_after_the_end_has_missed_nothing_and_gets_no_other_end()
 {
    let gate = Arc::new(Semaphore::new(0));
    let (upstream, lease) = (gated(3, &gate).await, Duration::from_secs(30));
    let pair = pair_of(upstream, OnLogFailure::Fail, lease).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("b0").await;
    pair.logs[0].set(Fault::Hang);
    pair.logs[0].script([Some(Fault::Late(Duration::from_millis(1200)))]);
    gate.add_permits(1);
    let events = post.rest().await;
    let end = events.last().unwrap();
    assert_eq!(end.json()["error"]["code"], "server_error");
    pair.logs[0].set(None);
    assert_eq!(pair.b.ended(&id).await["end"], "server_error");
    for gateway in [&pair.a, &pair.b] {
        let read = gateway.view(&path(&id, "/events")).await.rest().await;
        assert_eq!(read, events);
        let cursor = end.id.unwrap().to_string();
        let resumed = gateway.get(&path(&id, "/events"));
        let resumed = send(resumed.header("last-event-id", cursor)).await;
        assert_eq!(resumed.status(), 204);
    }
}

/// deer-flow 3932: a worker dies, and its stream never ends.
#[tokio::test]
async fn the_readers_of_a_gateway_that_dies_end_as_producer_lost() {
    let pair = pair(silent().await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    let mut other = pair.b.view(&path(&id, "/events")).await;
    let mut choice = pair.b.view(&path(&id, "/choices/0")).await;
    other.until("\"b\"").await;
    // It can do nothing any more, as after kill -9.
    pair.logs[0].set(Fault::Down);
    let died = Instant::now();
    drop(pair.a);
    let events = other.rest().await;
    assert!(
        died.elapsed() <= LEASE + Duration::from_secs(2),
        "{:?}",
        died.elapsed()
    );
    assert_eq!(
        events.last().unwrap().json()["error"]["code"],
        "producer_lost"
    );
    assert!(without_pings(&other.text).starts_with(&without_pings(&post.text)));
    assert_eq!(
        choice.rest().await.last().unwrap().json()["error"]["code"],
        "producer_lost"
    );
    let status = pair.b.status(&id).await;
    assert_eq!(status["end"], "producer_lost");
    assert_eq!(status["error"], events.last().unwrap().json()["error"]);
    // A client that had read from the dead gateway continues on the other one, and gets nothing twice.
    let cursor = post.events().last().unwrap().id.unwrap().to_string();
    let resumed = pair
        .b
        .get(&path(&id, "/events"))
        .header("last-event-id", cursor);
    assert_eq!(
        Reader::new(send(resumed).await).rest().await,
        events[events.len() - 1..]
    );
}

/// A client that only polls gets the end, too, although each of its requests is shorter than a lease.
#[tokio::test]
async fn the_status_of_a_stream_whose_gateway_died_ends_as_producer_lost() {
    let pair = pair(silent().await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    pair.logs[0].set(Fault::Down);
    drop(pair.a);
    let status = pair.b.ended(&id).await;
    assert_eq!(status["end"], "producer_lost");
    assert_eq!(status["error"]["code"], "producer_lost");
    assert!(status["expires"].is_u64());
}

/// A producer that was suspended past its lease.
#[tokio::test]
async fn a_fenced_producer_closes_its_upstream_and_its_readers_get_the_logs_end() {
    let pair = pair(steady(2000).await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until(" 3\"").await;
    let mut other = pair.b.view(&path(&id, "/events")).await;
    pair.logs[0].set(Fault::Down);
    let lost = other.rest().await;
    assert_eq!(
        lost.last().unwrap().json()["error"]["code"],
        "producer_lost"
    );
    pair.logs[0].set(None);
    let events = post.rest().await;
    assert_eq!(
        events.last().unwrap().json()["error"]["code"],
        "producer_lost"
    );
    eventually("the upstream is closed", async || {
        pair.upstream.closed() == 1
    })
    .await;
    // While it was degraded, its own readers got more than the log has; what both have is equal.
    assert_eq!(events[..lost.len() - 1], lost[..lost.len() - 1]);
    for gateway in [&pair.a, &pair.b] {
        let read = gateway.view(&path(&id, "/events")).await.rest().await;
        assert_eq!(read, lost);
    }
}

#[tokio::test]
async fn a_log_that_forgets_everything_is_repaired_while_its_producer_lives() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(gated(3, &gate).await).await;
    let (id, mut post) = pair.a.create(2).await;
    let mut other = pair.b.view(&path(&id, "/events")).await;
    other.until("b0").await;
    pair.engine.empty();
    // Nothing is appended: the upstream is silent.
    eventually("it is repaired", async || {
        status_code(&pair.b, &path(&id, "/events")).await == 200
    })
    .await;
    assert!(pair.a.metric("unbraid_log_repairs_total") >= 1.0);
    pair.engine.lose(1);
    gate.add_permits(2);
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(other.rest().await, events);
    assert_eq!(
        pair.b.view(&path(&id, "/events")).await.rest().await,
        events
    );
}

/// deer-flow 4426: a gap that is skipped silently.
#[tokio::test]
async fn a_log_with_a_gap_is_not_read() {
    let pair = pair(steady(10).await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.rest().await;
    pair.a.gateway.all_ended().await;
    pair.engine.lose_first();
    let refused = send(pair.b.get(&path(&id, "/events"))).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(error_code(refused).await, "log_gap");
}

/// Whatever the log does, each reader's events are those of the log.
#[tokio::test]
async fn under_a_storm_of_faults_every_reader_gets_the_logs_projection() {
    let faults = [
        None,
        Some(Fault::Down),
        Some(Fault::LostAnswer),
        Some(Fault::Slow(Duration::from_millis(30))),
        Some(Fault::Late(Duration::from_millis(300))),
        None,
    ];
    let tasks: Vec<_> = (0..6_usize)
        .map(|seed| {
            tokio::spawn(async move {
                let pair = patient_pair(steady(150).await).await;
                let (id, mut post) = pair.a.create(2).await;
                let mut followed = pair.b.view(&path(&id, "/events")).await;
                let mut choice = pair.b.view(&path(&id, "/choices/1")).await;
                let mut state = seed;
                for _ in 0..8 {
                    state = (state * 1_103_515_245 + 12_345) % (1 << 31);
                    let fault = faults[(state >> 8) % faults.len()];
                    pair.logs[state % 2].script([fault, fault]);
                    if state.is_multiple_of(3) {
                        pair.engine.lose(2);
                    }
                    sleep(Duration::from_millis(100)).await;
                }
                let events = post.rest().await;
                assert_eq!(events.last().unwrap().data, "[DONE]");
                pair.logs.iter().for_each(|log| log.set(None));
                assert_eq!(followed.rest().await, events);
                let again = pair.b.view(&path(&id, "/choices/1")).await.rest().await;
                assert_eq!(choice.rest().await, again);
                assert_eq!(again.last().unwrap().data, "[DONE]");
                let text: String = again.iter().map(Event::text).collect();
                let expected: String = (0..75).map(|n| format!(" {}", 2 * n + 1)).collect();
                assert_eq!(text, expected);
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// The error is the last event of each view, and the seal is one more write to the log.
#[tokio::test]
async fn a_status_after_the_error_of_the_upstream_says_that_the_stream_has_ended() {
    let error = r#"{"error":{"message":"overloaded"}}"#;
    let steps = vec![sse(), event(&chunk(0, "a")), event(error), Step::End];
    let pair = patient_pair(Upstream::steps(steps).await).await;
    pair.logs[0].set(Fault::Slow(Duration::from_millis(100)));
    let (id, mut reader) = pair.a.create(1).await;
    reader.rest().await;
    let status = pair.a.status(&id).await;
    assert_eq!(
        (&status["state"], &status["end"]),
        (&json!("ended"), &json!("server_error"))
    );
    assert!(status["expires"].is_u64(), "{status}");
}
