//! Requests as sources of a merged completion.

use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;
use unbraid::{Completions, Timeout};
use unbraid_http::{Provider, Request};
use unbraid_testkit::script::{Script, Step, bytes, content};

use crate::{
    fan_out::{ends, one, question, sse},
    providers,
    server::{self, Server, full, two_choices_reply},
};

#[tokio::test]
async fn a_source_has_a_choice_for_each_prompt() {
    let server = Server::start(|_| two_choices_reply()).await;
    let client = server.client();
    for request in [
        Request::text("m", json!(["a", "b"])),
        Request::text("m", json!([[1, 2], [3]])),
        Request::text("m", json!(["a"])).n(2),
        Request::text("m", json!(["a", "b"])).field("n", json!(null)),
    ] {
        let merged = Completions::merge([client.source(request)]);
        let expected = ["0 finished one", "1 finished two"];
        assert_eq!(ends(&merged).await, expected);
    }
}

#[tokio::test]
async fn a_source_has_every_candidate_of_gemini() {
    let candidate = |index: u32, text: &str| json!({ "index": index, "content": { "role": "model", "parts": [{ "text": text }] }, "finishReason": "STOP" });
    let chunk = json!({ "candidates": [candidate(0, "one"), candidate(1, "two")] });
    let body = format!("data: {chunk}\n\n");
    let server = Server::start(move |_| full(200, "text/event-stream", body.clone())).await;
    let client = providers::client(Provider::Gemini, &server);
    let config = json!({ "candidateCount": 2 });
    let contents = json!([{ "role": "user", "parts": [{ "text": "Hi" }] }]);
    let native = json!({ "model": "m", "contents": contents, "generationConfig": config });
    for request in [
        question().field("generationConfig", config),
        question().n(2),
        Request::native(native).unwrap(),
    ] {
        let merged = Completions::merge([client.source(request)]);
        let expected = ["0 finished one", "1 finished two"];
        assert_eq!(ends(&merged).await, expected);
    }
}

#[tokio::test]
async fn a_source_has_the_timeouts_of_its_client() {
    const SOON: Duration = Duration::from_millis(300);
    let silent =
        Server::start(|_| server::stream(Script::new([bytes(content(0, "a")), Step::Stall]))).await;
    let other = Server::start(|_| sse(one("b"))).await;
    for (builder, expected) in [
        (silent.builder().idle_timeout(SOON), Timeout::Idle),
        (silent.builder().total_timeout(SOON), Timeout::Total),
    ] {
        let client = builder.build().unwrap();
        let merged =
            Completions::merge([client.source(question()), other.client().source(question())]);
        let ended = timeout(Duration::from_secs(30), ends(&merged)).await;
        assert_eq!(
            ended.unwrap(),
            ["0 timed_out a", "1 finished b"],
            "{expected:?}"
        );
    }
}
