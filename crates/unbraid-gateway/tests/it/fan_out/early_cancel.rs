//! Cancels before any chunk of a fan-out.

use std::{collections::HashSet, sync::Arc};

use http::Method;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::BODY;
use crate::support::{
    Event, Json, Reader, Step, Upstream, chunk, finish, send, soon, sse, start, start_with,
};

fn ids(events: &[Event]) -> HashSet<Value> {
    let chunks = events.iter().filter(|event| event.data != "[DONE]");
    let identity = |event: &Event| {
        let json = event.json();
        json!([json["id"], json["created"]])
    };
    chunks.map(identity).collect()
}

/// The chunk of the cancelled choice is the first of the stream, so all others have its id.
#[tokio::test]
async fn all_chunks_have_one_id_also_if_a_choice_is_cancelled_before_any() {
    for early in [false, true] {
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let upstream = Upstream::script(move |_, ordinal| {
            let mut steps = Vec::new();
            let wait = Step::Gate(Arc::clone(&held));
            steps.extend(early.then(|| wait.clone()));
            steps.push(sse());
            steps.extend((!early).then_some(wait));
            for event in [chunk(0, "a"), finish(0), "[DONE]".into()] {
                let event = event.replace("c1", &format!("c{ordinal}"));
                steps.push(Step::Send(format!("data: {event}\n\n")));
            }
            steps.push(Step::End);
            steps
        })
        .await;
        let gateway = start_with(&upstream, |builder| {
            builder.fan_out(unbraid_gateway::FanOut::Always)
        })
        .await;
        let post = gateway.post(BODY).header("prefer", "respond-async");
        let status: Value = send(post).await.value().await;
        let id = status["id"].as_str().unwrap();
        if !early {
            crate::support::eventually("the bodies have begun", async || upstream.open() == 3)
                .await;
        }
        let path = format!("/v1/streams/{id}/choices/1");
        let cancelled = send(gateway.method(Method::DELETE, &path)).await;
        assert_eq!(cancelled.status(), 200);
        gate.add_permits(3);
        let events = gateway.view(&format!("/v1/streams/{id}/events")).await;
        let events = { events }.rest().await;
        assert_eq!(events.last().unwrap().data, "[DONE]", "{early}");
        let choice = gateway.view(&path).await.rest().await;
        let all = ids(&events);
        assert_eq!(all.len(), 1, "{early}: {all:?}");
        assert_eq!(ids(&choice), all);
        assert!(!all.iter().any(|identity| identity[0] == ""), "{all:?}");
    }
}

/// Its other chunks are those of the upstream, unchanged.
#[tokio::test]
async fn a_cancel_before_the_answer_of_one_request_has_an_id() {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = Upstream::steps(vec![Step::Gate(gate), Step::Hang]).await;
    let gateway = start(&upstream).await;
    let post = gateway.post(BODY).header("prefer", "respond-async");
    let status: Value = send(post).await.value().await;
    let id = status["id"].as_str().unwrap();
    let path = format!("/v1/streams/{id}/cancel");
    soon(gateway.method(Method::POST, &path).send())
        .await
        .unwrap()
        .unwrap();
    let view = send(gateway.get(&format!("/v1/streams/{id}/events"))).await;
    let events = Reader::new(view).rest().await;
    assert_eq!(ids(&events).len(), 1);
    assert_eq!(events[0].json()["id"], id);
}

/// Its request is not sent any more, or closed.
#[tokio::test]
async fn a_choice_with_a_request_of_its_own_is_closed_however_early_it_is_cancelled() {
    let upstream = Upstream::steps(vec![Step::Hang]).await;
    let gateway = start_with(&upstream, |builder| {
        builder.fan_out(unbraid_gateway::FanOut::Always)
    })
    .await;
    for _ in 0..50 {
        let post = gateway.post(BODY).header("prefer", "respond-async");
        let status: Value = send(post).await.value().await;
        let path = format!("/v1/streams/{}/choices/1", status["id"].as_str().unwrap());
        let cancelled = send(gateway.method(Method::DELETE, &path)).await;
        let cancelled: Value = cancelled.value().await;
        assert_eq!(cancelled["upstream"], "closed");
    }
}
