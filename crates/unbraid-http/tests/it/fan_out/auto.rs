//! `ChoiceStrategy::Auto`.

use std::time::Duration;

use serde_json::json;
use unbraid_http::{ChoiceStrategy, Request};

use super::{bodies, ends, one, question, sse};
use crate::{
    clock::StoppedClock,
    server::{self, Server, full},
};

#[tokio::test]
async fn auto_sends_one_request_if_n_is_supported() {
    let server = Server::start(|_| server::two_choices_reply()).await;
    let client = server.client();
    let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
    let completions = client.send(&request).await.unwrap();
    assert_eq!(
        ends(&completions).await,
        ["0 finished one", "1 finished two"]
    );
    assert!(completions.closed().await.is_ok());
    assert_eq!(server.requests().len(), 1);
    assert_eq!(bodies(&server)[0]["n"], 2);
}

#[tokio::test]
async fn auto_requests_each_choice_if_n_is_refused_and_remembers_it() {
    let server = Server::start(|ordinal| match ordinal {
        0 => full(
            400,
            "application/json",
            r#"{"error":{"message":"Only `n=1` is supported","type":"invalid_request_error"}}"#,
        ),
        _ => sse(one("a")),
    })
    .await;
    let client = server.client();
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    for requests in [4, 7] {
        let completions = client.send(&request).await.unwrap();
        let expected = ["0 finished a", "1 finished a", "2 finished a"];
        assert_eq!(ends(&completions).await, expected);
        assert_eq!(server.requests().len(), requests);
    }
    let other = Request::chat("another")
        .user("Hello?")
        .n(2)
        .choice_strategy(ChoiceStrategy::Auto);
    let completions = client.send(&other).await.unwrap();
    assert_eq!(ends(&completions).await.len(), 2);
    assert_eq!(
        bodies(&server)[7]["n"],
        2,
        "another model gets its own request with `n`"
    );
}

#[tokio::test]
async fn auto_requests_the_missing_choices_if_n_is_ignored() {
    let server = Server::start(|ordinal| sse(one(&ordinal.to_string()))).await;
    let client = server.client();
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    let completions = client.send(&request).await.unwrap();
    let outcomes = ends(&completions).await;
    assert_eq!(outcomes.len(), 3);
    assert_eq!(outcomes[0], "0 finished 0", "the first answer counts");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(completions.usage().await.prompt_tokens, Some(15));
    let again = client.send(&request).await.unwrap();
    assert_eq!(ends(&again).await.len(), 3);
    assert!(
        bodies(&server)[3].get("n").is_none(),
        "no further request has `n`"
    );
}

#[tokio::test]
async fn auto_returns_any_other_error_of_the_first_request() {
    let server = Server::start(|_| full(404, "text/plain", "no such model")).await;
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    let error = server.client().send(&request).await.unwrap_err();
    assert_eq!(
        error.status_error().map(unbraid_http::StatusError::status),
        Some(404)
    );
    assert_eq!(server.requests().len(), 1);
}

/// An error with status 400 that names the parameter `n`.
fn refusal(message: &str) -> server::Reply {
    let error =
        json!({ "error": { "message": message, "param": "n", "type": "invalid_request_error" } });
    full(400, "application/json", error.to_string())
}

#[tokio::test]
async fn a_model_that_allows_fewer_choices_is_asked_with_n_again() {
    for message in [
        "n must be less than or equal to 2",
        "the maximum value of n is 2",
        "Invalid 'n': integer above maximum value. Expected a value <= 2, but got 3 instead.",
    ] {
        let server = Server::start(move |ordinal| match ordinal {
            0 => refusal(message),
            4 => server::two_choices_reply(),
            _ => sse(one("a")),
        })
        .await;
        let client = server.client();
        let request = question().choice_strategy(ChoiceStrategy::Auto);
        let completions = client.send(&request.clone().n(3)).await.unwrap();
        let expected = ["0 finished a", "1 finished a", "2 finished a"];
        assert_eq!(ends(&completions).await, expected, "{message}");
        let completions = client.send(&request.n(2)).await.unwrap();
        assert_eq!(ends(&completions).await.len(), 2, "{message}");
        assert_eq!(server.requests().len(), 5, "{message}");
        assert_eq!(bodies(&server)[4]["n"], 2, "{message}");
    }
}

#[tokio::test]
async fn a_model_is_not_remembered_if_the_single_requests_fail() {
    let server = Server::start(|ordinal| match ordinal {
        0..=2 => refusal("n is not valid here"),
        _ => server::two_choices_reply(),
    })
    .await;
    let client = server.client();
    let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
    client.send(&request).await.unwrap_err();
    let completions = client.send(&request).await.unwrap();
    assert_eq!(
        ends(&completions).await,
        ["0 finished one", "1 finished two"]
    );
    assert_eq!(bodies(&server)[3]["n"], 2);
}

#[tokio::test]
async fn auto_sends_no_further_request_if_the_first_answer_is_enough() {
    let server = Server::start(|_| sse(one("a"))).await;
    let client = server.client();
    let clock = StoppedClock::new();
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    let completions = client.send(&request).await.unwrap();
    let outcome = completions.first().await.unwrap().outcome().await;
    assert_eq!(outcome.message.content, "a");
    // The caller learns of the end of the answer at the same time as the client, and may react a little later.
    let mut turns = 0..10_000;
    clock
        .wait_until("some time", || turns.next().is_none())
        .await;
    assert_eq!(completions.first_finished(1).await.len(), 1);
    clock.advance(Duration::from_secs(60)).await;
    let is_closed = || completions.is_closed();
    clock.wait_until("it goes on", is_closed).await;
    assert_eq!(server.requests().len(), 1);
}
