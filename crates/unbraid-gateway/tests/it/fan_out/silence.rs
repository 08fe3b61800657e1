//! Requests for single choices that fall silent.

use std::time::Duration;

use serde_json::{Value, json};

use super::{BODY, one_choice};
use crate::support::{Reader, Step, Upstream, chunk, finish, send, sse, start_with};

/// Sends one delta, and then one every 60 ms.
fn slow_choice() -> Vec<Step> {
    let mut steps = vec![sse()];
    for _ in 0..15 {
        steps.push(Step::Send(format!("data: {}\n\n", chunk(0, "slow"))));
        steps.push(Step::Sleep(Duration::from_millis(60)));
    }
    let end = format!("data: {}\n\ndata: [DONE]\n\n", finish(0));
    steps.extend([Step::Send(end), Step::End]);
    steps
}

#[tokio::test]
async fn a_choice_that_falls_silent_times_out_alone_while_another_one_still_streams() {
    let upstream = Upstream::script(|seen, ordinal| match seen.json()["seed"].as_u64() {
        Some(5) => vec![
            sse(),
            Step::Send(format!("data: {}\n\n", chunk(0, "silent"))),
            Step::Hang,
        ],
        Some(6) => slow_choice(),
        _ => one_choice(seen, ordinal),
    })
    .await;
    let gateway = start_with(&upstream, |builder| {
        builder
            .fan_out(unbraid_gateway::FanOut::Always)
            .idle_timeout(Duration::from_millis(400))
    })
    .await;
    let mut reader = Reader::new(send(gateway.post(BODY)).await);
    let events = reader.rest().await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
    let position = |wanted: Value| {
        let is_wanted = |event: &crate::support::Event| {
            let json: Value = serde_json::from_str(&event.data).unwrap_or_default();
            let choice = &json["choices"][0];
            json!([
                choice["index"],
                choice["finish_reason"],
                choice["error"]["code"]
            ]) == wanted
        };
        events.iter().position(is_wanted).unwrap()
    };
    let timed_out = position(json!([0, "error", "timed_out"]));
    assert!(
        timed_out < position(json!([1, "stop", null])),
        "{}",
        reader.text
    );
    assert_eq!(upstream.closed(), 1);
    let id = reader.header("x-stream-id").unwrap().to_owned();
    assert_eq!(gateway.ended(&id).await["end"], "finished");
}

#[tokio::test]
async fn a_request_that_waits_for_its_turn_does_not_time_out() {
    // 17 choices, of which 16 run at once: the last request is sent when one of them has ended.
    let upstream = Upstream::script(|_, _| slow_choice()).await;
    let gateway = start_with(&upstream, |builder| {
        builder
            .fan_out(unbraid_gateway::FanOut::Always)
            .idle_timeout(Duration::from_millis(400))
    })
    .await;
    let (id, mut post) = gateway.create(17).await;
    assert_eq!(post.rest().await.last().unwrap().data, "[DONE]");
    let status = gateway.ended(&id).await;
    let choices = status["choices"].as_array().unwrap();
    assert!(
        choices.iter().all(|choice| choice["end"] == "finished"),
        "{status}"
    );
    assert_eq!((choices.len(), upstream.seen().len()), (17, 17));
}

#[tokio::test]
async fn if_every_choice_falls_silent_the_stream_has_timed_out() {
    let upstream = Upstream::steps(vec![sse(), Step::Hang]).await;
    let gateway = start_with(&upstream, |builder| {
        builder
            .fan_out(unbraid_gateway::FanOut::Always)
            .idle_timeout(Duration::from_millis(100))
    })
    .await;
    let (id, mut post) = gateway.create(2).await;
    let events = post.rest().await;
    assert_eq!(events.last().unwrap().json()["error"]["code"], "timed_out");
    assert_eq!(gateway.ended(&id).await["end"], "timed_out");
}
