//! Idempotency keys whose gateway dies, or sleeps, before the stream is open.

use std::{sync::Arc, time::Duration};

use reqwest::Response;
use tokio::{sync::Semaphore, task::JoinHandle, time::Instant};
use unbraid_log::internal::scripted::Fault;

use unbraid_gateway::OnLogFailure;

use super::{LEASE, Pair, pair, pair_of};
use crate::{
    create::error_code,
    support::{
        Reader, Step, TestGateway, Upstream, chunk, eventually, finish, request, send, stream_of,
    },
};

/// An answer with the ordinal of its request. The first one waits for a gate before its head.
async fn slow_first(gate: &Arc<Semaphore>) -> Upstream {
    let gate = Arc::clone(gate);
    Upstream::script(move |_, ordinal| {
        let events = [
            chunk(0, &format!("answer {ordinal}")),
            finish(0),
            "[DONE]".into(),
        ];
        let first = (ordinal == 0).then(|| Step::Gate(Arc::clone(&gate)));
        first.into_iter().chain(stream_of(&events)).collect()
    })
    .await
}

fn post(gateway: &TestGateway) -> JoinHandle<Response> {
    let request = gateway
        .post(request(1))
        .header("idempotency-key", "order-1");
    tokio::spawn(send(request))
}

/// The id of a response's stream, if another request opened it, and its text.
async fn read(response: Response) -> (String, bool, String) {
    assert_eq!(response.status(), 200);
    let mut reader = Reader::new(response);
    let id = reader.header("x-stream-id").unwrap().to_owned();
    let replayed = reader.header("idempotent-replayed").is_some();
    let events = reader.rest().await;
    let text = events.iter().map(|event| event.data.clone()).collect();
    (id, replayed, text)
}

async fn requests(pair: &Pair, count: usize) {
    eventually("the upstream is asked", async || {
        pair.upstream.seen().len() == count
    })
    .await;
}

/// A request whose provider was asked and has not answered, and the gate of its answer.
async fn waiting() -> (Pair, Arc<Semaphore>, JoinHandle<Response>) {
    let gate = Arc::new(Semaphore::new(0));
    let pair = pair(slow_first(&gate).await).await;
    let first = post(&pair.a);
    requests(&pair, 1).await;
    (pair, gate, first)
}

#[tokio::test]
async fn a_key_is_held_while_the_provider_thinks_for_longer_than_a_lease() {
    let (pair, gate, first) = waiting().await;
    let second = post(&pair.b);
    tokio::time::sleep(LEASE * 2).await;
    assert!(!second.is_finished());
    gate.add_permits(1);
    let (id, replayed, text) = read(first.await.unwrap()).await;
    assert!(!replayed && text.contains("answer 0"));
    assert_eq!(read(second.await.unwrap()).await, (id, true, text));
    assert_eq!(pair.upstream.seen().len(), 1);
}

#[tokio::test]
async fn a_key_whose_gateway_is_gone_before_the_head_is_taken_over_after_a_lease() {
    let (pair, _gate, first) = waiting().await;
    // For the log it is dead from now on.
    pair.logs[0].set(Fault::Hang);
    let started = Instant::now();
    let (id, replayed, text) = read(post(&pair.b).await.unwrap()).await;
    assert!(!replayed && text.contains("answer 1"));
    assert!(started.elapsed() >= LEASE / 2, "{:?}", started.elapsed());
    // It comes back: it drops its own request, and its client gets the other stream.
    pair.logs[0].set(None);
    assert_eq!(read(first.await.unwrap()).await, (id.clone(), true, text));
    eventually("the upstream is closed", async || pair.upstream.open() == 0).await;
    assert_eq!(pair.engine.holders(), [id.parse().unwrap()]);
    assert_eq!(pair.upstream.seen().len(), 2);
}

#[tokio::test]
async fn a_gateway_that_slept_until_the_head_gives_its_answer_to_nobody() {
    let (pair, gate, first) = waiting().await;
    pair.logs[0].set(Fault::Hang);
    let second = read(post(&pair.b).await.unwrap()).await;
    // The head arrives before the next renewal.
    pair.logs[0].script([Some(Fault::Down)]);
    pair.logs[0].set(None);
    gate.add_permits(1);
    let first = read(first.await.unwrap()).await;
    assert_eq!((&first.0, &first.2), (&second.0, &second.2));
    assert!(first.1 && pair.upstream.seen().len() == 2);
}

/// A broker that was started again, and empty.
#[tokio::test]
async fn a_key_that_the_log_has_lost_is_not_given_to_another_request() {
    let (pair, gate, first) = waiting().await;
    // From then on, the other gateway knows that there may have been claims.
    tokio::time::sleep(Duration::from_secs(5)).await;
    pair.engine.empty();
    pair.engine.lack_streams(LEASE * 2);
    let second = post(&pair.b);
    tokio::time::sleep(LEASE).await;
    gate.add_permits(1);
    let (id, replayed, text) = read(first.await.unwrap()).await;
    assert!(!replayed && text.contains("answer 0"));
    assert_eq!(read(second.await.unwrap()).await, (id, true, text));
    assert_eq!(pair.upstream.seen().len(), 1);
}

/// It opens no stream of its own, because another gateway may have taken the key over.
#[tokio::test]
async fn a_gateway_without_the_log_for_a_lease_until_the_head_waits_for_it() {
    let (pair, gate, first) = waiting().await;
    pair.logs[0].set(Fault::Down);
    let second = read(post(&pair.b).await.unwrap()).await;
    gate.add_permits(1);
    tokio::time::sleep(LEASE / 4).await;
    assert!(!first.is_finished());
    pair.logs[0].set(None);
    let first = read(first.await.unwrap()).await;
    assert_eq!((&first.0, &first.2), (&second.0, &second.2));
    assert!(first.1 && pair.upstream.seen().len() == 2);
}

#[tokio::test]
async fn a_gateway_that_does_not_get_the_log_back_answers_503() {
    let (pair, gate, first) = waiting().await;
    pair.logs[0].set(Fault::Down);
    let (id, _, text) = read(post(&pair.b).await.unwrap()).await;
    gate.add_permits(1);
    let first = first.await.unwrap();
    assert_eq!(first.status(), 503);
    assert_eq!(error_code(first).await, "log_unavailable");
    eventually("the upstream is closed", async || pair.upstream.open() == 0).await;
    // The key belongs to the other stream still.
    pair.logs[0].set(None);
    assert_eq!(read(post(&pair.a).await.unwrap()).await, (id, true, text));
    assert_eq!(pair.upstream.seen().len(), 2);
}

#[tokio::test]
async fn a_gateway_that_slept_after_its_claim_does_not_ask_the_provider() {
    let gate = Arc::new(Semaphore::new(1));
    let pair = pair(slow_first(&gate).await).await;
    pair.logs[0].script([Some(Fault::SlowAnswer(LEASE * 3 / 2))]);
    let late = post(&pair.a);
    eventually("the key is claimed", async || pair.logs[0].calls() == 1).await;
    let (id, _, text) = read(post(&pair.b).await.unwrap()).await;
    assert!(text.contains("answer 0"));
    assert_eq!(read(late.await.unwrap()).await, (id, true, text));
    assert_eq!(pair.upstream.seen().len(), 1);
}

#[tokio::test]
async fn the_key_of_a_stream_that_begins_degraded_is_held_until_the_log_has_it() {
    let (pair, gate, first) = waiting().await;
    // Everything fails but the claims that arrive in turn.
    pair.logs[0].set(Fault::Down);
    gate.add_permits(1);
    let (id, _, text) = read(first.await.unwrap()).await;
    pair.logs[0].set(None);
    assert_eq!(read(post(&pair.b).await.unwrap()).await, (id, true, text));
    tokio::time::sleep(LEASE + Duration::from_millis(100)).await;
    let (_, replayed, _) = read(post(&pair.b).await.unwrap()).await;
    assert!(replayed && pair.upstream.seen().len() == 1);
}

#[tokio::test]
async fn a_client_that_leaves_while_its_key_is_claimed_does_not_block_it() {
    let slow = Some(Fault::SlowAnswer(Duration::from_millis(500)));
    // The answer to the claim is slow, or that to the question whether the log is available.
    for faults in [vec![slow], vec![None, slow]] {
        let gate = Arc::new(Semaphore::new(1));
        // Longer than anything in the test may take.
        let lease = Duration::from_secs(60);
        let pair = pair_of(slow_first(&gate).await, OnLogFailure::Fail, lease).await;
        let calls = faults.len();
        pair.logs[0].script(faults);
        let first = post(&pair.a);
        eventually("the slow call begins", async || {
            pair.logs[0].calls() == calls
        })
        .await;
        // Its connection closes.
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        let (_, replayed, text) = read(post(&pair.a).await.unwrap()).await;
        assert!(replayed && text.contains("answer 0"));
        assert_eq!(pair.upstream.seen().len(), 1);
    }
}

/// Its connections are closed, although the stream goes on elsewhere.
#[tokio::test]
async fn an_attached_request_for_json_is_answered_when_a_drain_ends() {
    let gate = Arc::new(Semaphore::new(0));
    let gates = Arc::clone(&gate);
    let upstream = Upstream::script(move |_, _| {
        let mut steps = stream_of(&[chunk(0, "Hi"), finish(0), "[DONE]".to_owned()]);
        steps.insert(2, Step::Gate(Arc::clone(&gates)));
        steps
    });
    let pair = pair(upstream.await).await;
    let whole = |gateway: &TestGateway| {
        let body = r#"{"model":"m","messages":[]}"#;
        let request = gateway.post(body).header("idempotency-key", "order-1");
        tokio::spawn(send(request))
    };
    let own = whole(&pair.b);
    requests(&pair, 1).await;
    let attached = whole(&pair.a);
    eventually("the other gateway reads the stream", async || {
        pair.a.metric("unbraid_log_bytes") > 0.0
    })
    .await;
    pair.a.gateway.drain();
    pair.a.gateway.end_as_lost().await;
    let refused = attached.await.unwrap();
    assert_eq!(refused.status(), 503);
    assert_eq!(error_code(refused).await, "draining");
    gate.add_permits(1);
    assert_eq!(own.await.unwrap().status(), 200);
    assert_eq!(pair.upstream.seen().len(), 1);
}
