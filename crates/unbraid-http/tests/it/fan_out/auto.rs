//! `ChoiceStrategy::Auto`.

use unbraid_http::{ChoiceStrategy, Request};

use super::{bodies, ends, one, question, sse};
use crate::server::{self, Server, full};

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
