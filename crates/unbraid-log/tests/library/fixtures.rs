use std::sync::Arc;

use futures::stream;
use unbraid::{BoxError, ChoiceOutcome, Completions};
use unbraid_log::{StreamId, completions, record};
use unbraid_testkit::fixture::Fixture;

use crate::new_log;

/// What a reader of the answer sees of a choice.
fn seen(outcome: &ChoiceOutcome) -> (u32, &'static str, String, Option<String>) {
    let reason = outcome.finish_reason.as_ref();
    (
        outcome.choice.0,
        outcome.end.as_str(),
        serde_json::to_string(&outcome.message).unwrap(),
        reason.map(|reason| reason.as_str().to_owned()),
    )
}

async fn outcomes(completions: &Completions) -> Vec<(u32, &'static str, String, Option<String>)> {
    let mut outcomes = Vec::new();
    let mut choices = completions.choices();
    while let Some(Ok(choice)) = choices.next().await {
        outcomes.push(seen(&choice.outcome().await));
    }
    outcomes
}

/// Every stream of the fixtures gives the same answers through a log. Its log contains the events.
#[tokio::test(start_paused = true)]
async fn every_fixture_gives_the_same_answers_through_a_log() {
    compare(|bytes| vec![Ok(bytes.to_vec())]).await;
}

/// What a dialect has held back for its end is not lost with the connection.
#[tokio::test(start_paused = true)]
async fn every_fixture_gives_the_same_answers_through_a_log_if_its_connection_fails() {
    for parts in [2, 4] {
        compare(|bytes| {
            let near = bytes.len() - bytes.len() / parts;
            let blank_lines = bytes
                .windows(2)
                .enumerate()
                .filter(|(_, two)| two == b"\n\n");
            let cut = blank_lines.map(|(at, _)| at + 2).find(|at| *at >= near);
            let received = bytes.get(..cut.unwrap_or(near)).unwrap_or_default();
            vec![Ok(received.to_vec()), Err("connection reset".into())]
        })
        .await;
    }
}

/// Compares what is read directly with what is read through a log, of a body for each fixture.
async fn compare(body_of: impl Fn(&[u8]) -> Vec<Result<Vec<u8>, BoxError>>) {
    let (mut compared, mut differing) = (0, Vec::new());
    for fixture in Fixture::all() {
        let has_options = fixture.options != Default::default();
        if has_options
            || fixture
                .path
                .extension()
                .is_none_or(|extension| extension != "sse")
        {
            continue;
        }
        let body = || stream::iter(body_of(&fixture.bytes));
        let direct = Completions::from_byte_stream(body());
        let expected = outcomes(&direct).await;
        let (log, id) = (new_log(), StreamId::random().unwrap());
        let recording = record(body(), Arc::clone(&log), id.clone()).await.unwrap();
        let own = outcomes(&recording.completions()).await;
        let read = outcomes(&completions(log, id)).await;
        assert_eq!(own, read, "{}", fixture.name);
        if read != expected {
            differing.push(format!("{}:\n  {expected:?}\n  {read:?}", fixture.name));
        }
        compared += 1;
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(compared > 100, "{compared}");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_two_mebibytes_is_read_in_parts() {
    let text = "word ".repeat(400_000);
    let body = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let (log, id) = (new_log(), StreamId::random().unwrap());
    let body = stream::iter([Ok::<_, std::io::Error>(body)]);
    record(body, Arc::clone(&log), id.clone()).await.unwrap();
    let answer = completions(log, id).first().await.unwrap();
    assert!(answer.text().await.unwrap() == text);
}
