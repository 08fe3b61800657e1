//! Section 8: gateways that share a log. Any of them reads, resumes, cancels and erases any stream, and what happens to the
//! log or to one of them costs no reader an event.

mod cancels;
mod claims;
mod erase;
mod failures;
mod foreign;
mod orphans;

use std::{sync::Arc, time::Duration};

use http::Method;
use serde_json::{Value, json};
use tokio::{sync::Semaphore, time::Instant};
use unbraid_gateway::OnLogFailure;
use unbraid_log::internal::scripted::{Engine, Fault, TestLog};

use crate::{
    create::error_code,
    support::{
        Event, Json, Reader, Step, TestGateway, Upstream, chunk, eventually, finish, request, send,
        sse, start_with, stream_of,
    },
};

const LEASE: Duration = Duration::from_secs(2);

/// Two gateways in front of one upstream.
struct Pair {
    engine: Engine,
    logs: [Arc<TestLog>; 2],
    a: TestGateway,
    b: TestGateway,
    upstream: Upstream,
}

async fn pair(upstream: Upstream) -> Pair {
    pair_with(upstream, OnLogFailure::Degrade).await
}

async fn pair_with(upstream: Upstream, policy: OnLogFailure) -> Pair {
    pair_of(upstream, policy, LEASE).await
}

/// Two gateways whose streams are not declared lost, whatever happens to the log for some seconds.
async fn patient_pair(upstream: Upstream) -> Pair {
    pair_of(upstream, OnLogFailure::Degrade, Duration::from_secs(30)).await
}

async fn pair_of(upstream: Upstream, policy: OnLogFailure, lease: Duration) -> Pair {
    let engine = Engine::new(lease);
    let logs = [engine.gateway(), engine.gateway()];
    let gateway = async |log: &Arc<TestLog>| {
        let log = Arc::clone(log);
        start_with(&upstream, |builder| {
            builder
                .log(log)
                .lease(lease)
                .on_log_failure(policy)
                .link_secret("sixteen bytes or more")
                .ping(Duration::from_millis(100))
        })
        .await
    };
    let (a, b) = (gateway(&logs[0]).await, gateway(&logs[1]).await);
    Pair {
        engine,
        logs,
        a,
        b,
        upstream,
    }
}

fn event(data: &str) -> Step {
    Step::Send(format!("data: {data}\n\n"))
}

/// Two choices that grow, with a gate before each further pair of deltas.
async fn gated(pairs: usize, gate: &Arc<Semaphore>) -> Upstream {
    let gate = Arc::clone(gate);
    Upstream::script(move |_, _| {
        let mut steps = vec![sse(), event(&chunk(0, "a0")), event(&chunk(1, "b0"))];
        for number in 1..pairs {
            steps.push(Step::Gate(Arc::clone(&gate)));
            steps.push(event(&chunk(0, &format!(" a{number}"))));
            steps.push(event(&chunk(1, &format!(" b{number}"))));
        }
        steps.extend([
            event(&finish(0)),
            event(&finish(1)),
            event("[DONE]"),
            Step::End,
        ]);
        steps
    })
    .await
}

/// An upstream that sends two events and then nothing.
async fn silent() -> Upstream {
    let steps = vec![
        sse(),
        event(&chunk(0, "a")),
        event(&chunk(1, "b")),
        Step::Hang,
    ];
    Upstream::steps(steps).await
}

/// An upstream that sends a delta every few milliseconds.
async fn steady(deltas: usize) -> Upstream {
    let mut steps = vec![sse()];
    for number in 0..deltas {
        steps.push(event(&chunk(number as u32 % 2, &format!(" {number}"))));
        steps.push(Step::Sleep(Duration::from_millis(10)));
    }
    steps.extend([
        event(&finish(0)),
        event(&finish(1)),
        event("[DONE]"),
        Step::End,
    ]);
    Upstream::steps(steps).await
}

fn path(id: &str, rest: &str) -> String {
    format!("/v1/streams/{id}{rest}")
}

async fn status_code(gateway: &TestGateway, path: &str) -> u16 {
    send(gateway.get(path)).await.status().as_u16()
}

#[tokio::test]
async fn any_gateway_reads_and_resumes_and_all_views_are_the_same() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(gated(4, &gate).await).await;
    let (id, mut post) = pair.a.create(2).await;
    let mut other = pair.b.view(&path(&id, "/events")).await;
    let mut choice = pair.b.view(&path(&id, "/choices/1")).await;
    other.until("b0").await;
    choice.until("b0").await;
    gate.add_permits(3);
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    assert_eq!(other.rest().await, events);
    let own = pair.a.view(&path(&id, "/choices/1")).await.rest().await;
    assert_eq!(choice.rest().await, own);
    for event in &events {
        let cursor = event.id.unwrap().to_string();
        let resumed = |gateway: &TestGateway| {
            gateway
                .get(&path(&id, "/events"))
                .header("last-event-id", cursor.clone())
        };
        let response = send(resumed(&pair.b)).await;
        let rest: Vec<Event> = match response.status().as_u16() {
            204 => Vec::new(),
            _ => Reader::new(response).rest().await,
        };
        let expected: Vec<Event> = events.iter().filter(|e| e.id > event.id).cloned().collect();
        assert_eq!(rest, expected, "after {cursor}");
    }
    let (a, b) = (pair.a.ended(&id).await, pair.b.ended(&id).await);
    assert_eq!(a, b);
    assert_eq!(
        (&a["end"], &a["durability"]),
        (&json!("finished"), &json!("replay"))
    );
    let json = send(pair.b.get(&path(&id, "/choices/0?stream=false"))).await;
    let json: Value = json.value().await;
    assert_eq!(json["choices"][0]["message"]["content"], "a0 a1 a2 a3");
    assert_eq!(pair.upstream.seen().len(), 1);
}

#[tokio::test]
async fn an_event_reaches_no_reader_before_the_log_has_acknowledged_it() {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(gated(2, &gate).await).await;
    let (_, mut post) = pair.a.create(2).await;
    post.until("b0").await;
    pair.logs[0].set(Fault::Slow(Duration::from_millis(400)));
    let sent = Instant::now();
    gate.add_permits(1);
    post.until("a1").await;
    assert!(
        sent.elapsed() >= Duration::from_millis(390),
        "{:?}",
        sent.elapsed()
    );
}

#[tokio::test]
async fn any_gateway_cancels_a_choice_and_then_all() {
    let pair = pair(silent().await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    let response = send(pair.b.method(Method::DELETE, &path(&id, "/choices/1"))).await;
    assert_eq!(response.status(), 200);
    let cancelled: Value = response.value().await;
    assert_eq!(
        cancelled,
        json!({"index": 1, "state": "ended", "end": "cancelled", "upstream": "continues"})
    );
    let started = Instant::now();
    let response = send(pair.b.method(Method::POST, &path(&id, "/cancel"))).await;
    assert_eq!(response.status(), 200);
    let status: Value = response.value().await;
    assert_eq!(
        (&status["state"], &status["end"]),
        (&json!("ended"), &json!("cancelled"))
    );
    eventually("the upstream is closed", async || {
        pair.upstream.closed() == 1
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    // Idempotent, on either gateway.
    for gateway in [&pair.a, &pair.b] {
        let again = send(gateway.method(Method::POST, &path(&id, "/cancel"))).await;
        assert_eq!(again.status(), 200);
    }
}

#[tokio::test]
async fn any_gateway_says_whether_a_cancel_has_closed_the_upstream() {
    let pair = pair(silent().await).await;
    let cancel = async |id: &str, index: u32| {
        let path = path(id, &format!("/choices/{index}"));
        let response = send(pair.b.method(Method::DELETE, &path)).await;
        response.value().await["upstream"].clone()
    };
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    assert_eq!(cancel(&id, 1).await, "continues");
    assert_eq!(cancel(&id, 0).await, "closed");
    // Each choice of a fan-out has an upstream of its own.
    let post = pair.a.post(request(2)).header("x-stream-fan-out", "always");
    let mut post = Reader::new(send(post).await);
    let id = post.header("x-stream-id").unwrap().to_owned();
    post.until("\"index\":1").await.until("\"index\":0").await;
    assert_eq!(cancel(&id, 1).await, "closed");
    assert_eq!(pair.b.status(&id).await["state"], "running");
}

#[tokio::test]
async fn a_cancel_that_the_log_does_not_confirm_within_a_second_is_202() {
    let pair = patient_pair(silent().await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    let _view = pair.b.view(&path(&id, "/events")).await;
    pair.logs[0].set(Fault::Down);
    for (method, rest) in [(Method::DELETE, "/choices/0"), (Method::POST, "/cancel")] {
        let response = send(pair.b.method(method, &path(&id, rest))).await;
        assert_eq!(response.status(), 202);
        assert_eq!(response.value().await["state"], "cancelling");
    }
    // The producer has got them all the same.
    eventually("the upstream is closed", async || {
        pair.upstream.closed() == 1
    })
    .await;
    pair.logs[0].set(None);
    assert_eq!(pair.b.ended(&id).await["end"], "cancelled");
}

#[tokio::test]
async fn any_gateway_erases_a_stream() {
    let pair = pair(silent().await).await;
    let (id, mut post) = pair.a.create(2).await;
    post.until("\"b\"").await;
    let response = send(pair.b.method(Method::DELETE, &path(&id, ""))).await;
    assert_eq!(response.status(), 204);
    eventually("the upstream is closed", async || {
        pair.upstream.closed() == 1
    })
    .await;
    for gateway in [&pair.a, &pair.b] {
        eventually("it is gone", async || {
            status_code(gateway, &path(&id, "/events")).await == 410
        })
        .await;
    }
}

#[tokio::test]
async fn one_idempotency_key_starts_one_generation_on_all_gateways() {
    let events = [chunk(0, "a"), chunk(0, "b"), finish(0), "[DONE]".into()];
    let upstream = Upstream::script(move |_, _| {
        let mut steps = vec![Step::Sleep(Duration::from_millis(200))];
        steps.extend(stream_of(&events));
        steps
    })
    .await;
    let pair = Arc::new(pair(upstream).await);
    let tasks: Vec<_> = (0..20)
        .map(|turn| {
            let pair = Arc::clone(&pair);
            tokio::spawn(async move {
                let gateway = if turn % 2 == 0 { &pair.a } else { &pair.b };
                let post = gateway
                    .post(request(1))
                    .header("idempotency-key", "order-1");
                let mut reader = Reader::new(send(post).await);
                let events = reader.rest().await;
                let id = reader.header("x-stream-id").unwrap().to_owned();
                (id, reader.header("idempotent-replayed").is_some(), events)
            })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    assert_eq!(pair.upstream.seen().len(), 1);
    assert_eq!(
        results.iter().filter(|(_, replayed, _)| !replayed).count(),
        1
    );
    let (id, _, events) = &results[0];
    assert!(
        results
            .iter()
            .all(|(other, _, got)| other == id && got == events)
    );
    let other = pair.b.post(request(2)).header("idempotency-key", "order-1");
    assert_eq!(send(other).await.status(), 422);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_does_not_keep_the_key() {
    let pair =
        pair(Upstream::steps(stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])).await).await;
    let keyed = || pair.a.post(request(1)).header("idempotency-key", "k");
    pair.logs[0].script([Some(Fault::LostAnswer)]);
    let refused = send(keyed()).await;
    assert_eq!(refused.status(), 503);
    assert_eq!(error_code(refused).await, "log_unavailable");
    assert_eq!(pair.upstream.seen().len(), 0, "nothing is requested twice");
    let mut answered = Reader::new(send(keyed()).await);
    assert_eq!(answered.rest().await.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn a_link_of_one_gateway_is_valid_on_the_other() {
    let pair =
        pair(Upstream::steps(stream_of(&[chunk(0, "a"), finish(0), "[DONE]".into()])).await).await;
    let (id, mut post) = pair.a.create(1).await;
    let events = post.rest().await;
    let links = send(pair.b.post_to(&path(&id, "/links"), "{}")).await;
    assert_eq!(links.status(), 201);
    let links: Value = links.value().await;
    for gateway in [&pair.a, &pair.b] {
        let read = gateway
            .view(links["events"].as_str().unwrap())
            .await
            .rest()
            .await;
        assert_eq!(read, events);
    }
}

#[tokio::test]
async fn a_gateway_that_drains_leaves_its_streams_to_the_other() {
    let mut pair = pair(steady(60).await).await;
    let (id, mut post) = pair.a.create(2).await;
    let mut own = pair.a.view(&path(&id, "/events")).await;
    own.until(" 3\"").await;
    pair.a.drain();
    own.rest().await;
    let cursor = own.events().last().unwrap().id.unwrap();
    let resumed = pair
        .b
        .get(&path(&id, "/events"))
        .header("last-event-id", cursor.to_string());
    let rest = Reader::new(send(resumed).await).rest().await;
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]", "the POST continues");
    let joined: Vec<Event> = own.events().into_iter().chain(rest).collect();
    assert_eq!(joined, events);
    eventually("it has stopped", async || pair.a.has_stopped()).await;
}
