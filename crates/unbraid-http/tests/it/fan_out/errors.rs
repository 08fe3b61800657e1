//! Fan-outs of which some or all requests fail.

use unbraid::StreamError;
use unbraid_http::{ChoiceStrategy, Client, HttpError, Request, limits::MAX_FAN_OUT};

use super::{ends, one, question, sse};
use crate::server::{self, Server, full};

/// Returns the error and the message of the server as text.
fn shown(error: &HttpError) -> String {
    format!(
        "{error}: {:?}",
        error.status_error().and_then(|a| a.message())
    )
}

#[tokio::test]
async fn one_refused_request_is_the_error_of_its_choice() {
    let server = Server::start(|ordinal| match ordinal {
        1 => full(
            401,
            "application/json",
            r#"{"error":{"message":"no such key"}}"#,
        ),
        _ => sse(one("fine")),
    })
    .await;
    let client = server.builder().max_requests(1).build().unwrap();
    let completions = client.fan_out(&question(), 3);
    let expected = ["0 finished fine", "1 transport ", "2 finished fine"];
    assert_eq!(ends(&completions).await, expected);
    assert!(completions.closed().await.is_ok());
    let error = completions
        .choice(1)
        .await
        .unwrap()
        .finished()
        .await
        .unwrap_err();
    let Some(HttpError::Status(status)) = HttpError::find_in(&error) else {
        panic!("{error:?}");
    };
    assert_eq!(
        (status.status(), status.message()),
        (401, Some("no such key"))
    );
    let usage = completions.usage().await;
    assert_eq!(
        usage.prompt_tokens,
        Some(10),
        "a refused request is not billed"
    );
}

#[tokio::test]
async fn a_completion_fails_if_every_request_fails() {
    let server = Server::start(|_| full(403, "text/plain", "go away")).await;
    let completions = server.client().fan_out(&question(), 2);
    assert_eq!(ends(&completions).await, ["0 transport ", "1 transport "]);
    let error = completions.closed().await.unwrap_err();
    assert!(matches!(error, StreamError::Transport(_)));
    assert_eq!(
        HttpError::find_in(&error).map(HttpError::as_str),
        Some("status")
    );
}

#[tokio::test]
async fn a_fan_out_with_every_request_refused_is_an_error_of_send() {
    const BODY: &str = r#"{"error":{"message":"no such key","code":"invalid_api_key"}}"#;
    let server = Server::start(|_| full(401, "application/json", BODY)).await;
    let mut errors = Vec::new();
    for strategy in [
        ChoiceStrategy::Native,
        ChoiceStrategy::FanOut,
        ChoiceStrategy::Auto,
    ] {
        let request = question().n(3).choice_strategy(strategy);
        let error = server.client().send(&request).await.unwrap_err();
        assert!(matches!(error, HttpError::Status(_)), "{error:?}");
        errors.push(shown(&error));
    }
    assert_eq!(
        errors[0],
        r#"status 401 Unauthorized (code invalid_api_key): Some("no such key")"#
    );
    assert_eq!(errors[1..], [errors[0].clone(), errors[0].clone()]);
    assert_eq!(server.requests().len(), 1 + 3 + 1);
}

#[tokio::test]
async fn auto_with_every_further_request_refused_is_an_error_of_send() {
    let server = Server::start(|ordinal| match ordinal {
        0 => full(400, "text/plain", "n must be 1"),
        _ => full(402, "text/plain", "no credit"),
    })
    .await;
    let client = server.client();
    // The first call does not show that the model has no `n`, so the second one tries it again.
    for requests in [3, 4] {
        let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
        let error = client.send(&request).await.unwrap_err();
        let expected = r#"status 402 Payment Required: Some("no credit")"#;
        assert_eq!(shown(&error), expected);
        assert_eq!(server.requests().len(), requests);
    }
}

#[tokio::test]
async fn a_fan_out_to_a_closed_port_is_an_error_of_send() {
    let (_closed, address) = server::closed_port();
    let client = Client::builder().base_url(format!("http://{address}/v1"));
    let client = client.proxy_from_env(false).retries(0).build().unwrap();
    let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
    let error = client.send(&request).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
}

#[test]
fn a_fan_out_without_a_runtime_is_an_error_and_no_panic() {
    let client = Client::builder().build().unwrap();
    let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
    let error = futures::executor::block_on(client.send(&request)).unwrap_err();
    assert!(matches!(error, HttpError::NoRuntime), "{error:?}");
}

#[tokio::test]
async fn a_fan_out_begins_with_its_first_response_and_keeps_the_errors_of_the_others() {
    let server = Server::start(|ordinal| match ordinal {
        2 => sse(one("fine")),
        _ => full(402, "text/plain", "no credit"),
    })
    .await;
    let client = server.builder().max_requests(1).build().unwrap();
    let request = question().n(4).choice_strategy(ChoiceStrategy::FanOut);
    let completions = client.send(&request).await.unwrap();
    let expected = [
        "0 transport ",
        "1 transport ",
        "2 finished fine",
        "3 transport ",
    ];
    assert_eq!(ends(&completions).await, expected);
    assert!(completions.closed().await.is_ok());
}

#[tokio::test]
async fn a_fan_out_of_too_many_requests_sends_none() {
    let server = Server::start(|_| sse(one("a"))).await;
    let client = server.client();
    let prompts = Request::text("m", serde_json::json!(["a", "b"]));
    for (request, expected) in [
        (question().n(MAX_FAN_OUT + 1), 1025),
        (prompts.n(513), 1026),
        (question().n(u32::MAX), u64::from(u32::MAX)),
    ] {
        for strategy in [ChoiceStrategy::FanOut, ChoiceStrategy::Auto] {
            let request = request.clone().choice_strategy(strategy);
            let error = client.send(&request).await.unwrap_err();
            let HttpError::TooManyChoices { requested, max } = error else {
                panic!("{error:?}")
            };
            assert_eq!((requested, max), (expected, 1024));
            let expected = format!("a fan-out of {expected} requests exceeds the limit of 1024");
            assert_eq!(error.to_string(), expected);
        }
    }
    let completions = client.fan_out(&question(), 1025);
    let closed = completions.closed().await.unwrap_err();
    let cause = HttpError::find_in(&closed).map(HttpError::as_str);
    assert_eq!(cause, Some("too_many_choices"));
    assert_eq!(server.requests().len(), 0);
}
