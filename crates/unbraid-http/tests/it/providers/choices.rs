//! Several choices from providers with and without a way to ask for them.

use std::time::Duration;

use futures::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::time::timeout;
use unbraid::StreamError;
use unbraid_http::{ChoiceStrategy, HttpError, Provider, Request, RequestError};

use super::{answer, client, question};
use crate::{
    fan_out::ends,
    server::{Server, frames, full},
};

fn bodies(server: &Server) -> Vec<Value> {
    let requests = server.requests();
    let bodies = requests.iter().map(|request| request.body());
    bodies
        .map(|body| serde_json::from_slice(body).unwrap())
        .collect()
}

const WITHOUT_N: [Provider; 4] = [
    Provider::Responses,
    Provider::Anthropic,
    Provider::Ollama,
    Provider::Cohere,
];

#[tokio::test]
async fn one_request_per_choice_where_there_is_no_n() {
    for provider in WITHOUT_N {
        for strategy in [ChoiceStrategy::FanOut, ChoiceStrategy::Auto] {
            let server = Server::start(move |_| answer(provider, "Hi")).await;
            let request = question().n(3).choice_strategy(strategy);
            let completions = client(provider, &server).send(&request).await.unwrap();
            let expected = ["0 finished Hi", "1 finished Hi", "2 finished Hi"];
            assert_eq!(ends(&completions).await, expected, "{provider}");
            let expected = question().body_for(provider).unwrap();
            assert_eq!(bodies(&server), vec![expected; 3], "{provider}");
            assert_eq!(completions.metadata().dialect(), provider.dialect());
        }
    }
}

#[tokio::test]
async fn several_choices_in_one_request_are_refused_before_it_is_sent() {
    for provider in WITHOUT_N {
        let server = Server::start(move |_| answer(provider, "Hi")).await;
        let error = client(provider, &server)
            .send(&question().n(3))
            .await
            .unwrap_err();
        let HttpError::Request(RequestError::Unsupported { field, why, .. }) = error else {
            panic!("{error}")
        };
        assert_eq!(field, "n");
        assert!(why.contains("ChoiceStrategy::FanOut"), "{why}");
        assert_eq!(server.requests().len(), 0);
    }
}

#[tokio::test]
async fn native_requests_can_be_fanned_out() {
    for provider in super::OTHERS {
        let native = Request::native(json!({ "model": "m", "a": 1 })).unwrap();
        for request in [
            native.clone().n(2).choice_strategy(ChoiceStrategy::FanOut),
            native.clone().n(2).choice_strategy(ChoiceStrategy::Auto),
        ] {
            let server = Server::start(move |_| answer(provider, "Hi")).await;
            let completions = client(provider, &server).send(&request).await.unwrap();
            assert_eq!(ends(&completions).await, ["0 finished Hi", "1 finished Hi"]);
            let expected = native.body_for(provider).unwrap();
            assert_eq!(bodies(&server), vec![expected; 2], "{provider}");
        }
    }
}

#[tokio::test]
async fn seeds_increase_wherever_a_body_has_them() {
    for (provider, place) in [
        (Provider::Gemini, "/generationConfig/seed"),
        (Provider::Ollama, "/options/seed"),
        (Provider::Cohere, "/seed"),
    ] {
        let server = Server::start(move |_| answer(provider, "Hi")).await;
        let request = question().seed(7).temperature(0.5);
        let completions = client(provider, &server).fan_out(&request, 3);
        assert_eq!(ends(&completions).await.len(), 3);
        let mut seeds: Vec<i64> = Vec::new();
        for body in bodies(&server) {
            seeds.push(body.pointer(place).unwrap().as_i64().unwrap());
            let mut expected = request.body_for(provider).unwrap();
            *expected.pointer_mut(place).unwrap() = body.pointer(place).unwrap().clone();
            assert_eq!(body, expected);
        }
        seeds.sort_unstable();
        assert_eq!(seeds, [7, 8, 9], "{provider}");
    }
}

#[tokio::test]
async fn g04_gemini_gives_candidates() {
    let candidates = json!({ "candidates": [
        { "index": 1, "content": { "parts": [{ "text": "two" }] }, "finishReason": "STOP" },
        { "index": 0, "content": { "parts": [{ "text": "one" }] }, "finishReason": "STOP" },
    ] });
    let body = format!("data: {candidates}\r\n\r\n");
    for strategy in [ChoiceStrategy::Native, ChoiceStrategy::Auto] {
        let body = body.clone();
        let server = Server::start(move |_| full(200, "text/event-stream", body.clone())).await;
        let request = question().n(2).choice_strategy(strategy);
        let completions = client(Provider::Gemini, &server)
            .send(&request)
            .await
            .unwrap();
        assert_eq!(
            ends(&completions).await,
            ["0 finished one", "1 finished two"]
        );
        let [sent] = bodies(&server).try_into().unwrap();
        assert_eq!(sent["generationConfig"]["candidateCount"], 2);
    }
}

#[tokio::test]
async fn a_gemini_model_with_one_candidate_is_asked_several_times() {
    let refusal = json!({ "error": {
        "code": 400,
        "message": "Multiple candidates is not enabled for this model",
        "status": "INVALID_ARGUMENT",
    } });
    let server = Server::start(move |ordinal| match ordinal {
        0 => full(400, "application/json", refusal.to_string()),
        _ => answer(Provider::Gemini, "Hi"),
    })
    .await;
    let client = client(Provider::Gemini, &server);
    let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
    for requests in [3, 5] {
        let completions = client.send(&request).await.unwrap();
        assert_eq!(ends(&completions).await, ["0 finished Hi", "1 finished Hi"]);
        assert_eq!(
            server.requests().len(),
            requests,
            "the client remembers the model"
        );
    }
    let single = question().body_for(Provider::Gemini).unwrap();
    assert_eq!(bodies(&server)[1..], vec![single; 4]);
}

#[tokio::test]
async fn cancelling_the_only_choice_closes_the_connection() {
    let begin = [
        r#"data: {"type":"message_start","message":{"id":"r","role":"assistant"}}"#,
        r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
    ];
    let begin = begin.join("\n\n") + "\n\n";
    let server = Server::start(move |_| {
        // The server never ends its answer.
        let reads = stream::iter([Ok(begin.clone())]).chain(stream::pending());
        frames(reads)
    })
    .await;
    let client = client(Provider::Anthropic, &server);
    let completions = client.send(&question()).await.unwrap();
    completions.first().await.unwrap().cancel();
    let closed = timeout(Duration::from_secs(30), completions.closed()).await;
    let closed = closed.expect("no other choice can appear, so nothing is waited for");
    assert!(matches!(closed, Err(StreamError::Cancelled)), "{closed:?}");
}
