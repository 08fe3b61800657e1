//! The errors of each provider, and which of them are sent again.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use unbraid::{ChoiceEnd, StreamError};
use unbraid_http::Provider;

use super::{OTHERS, answer, builder, client, question, recorded};
use crate::server::{Reply, Server, full};

fn error(status: u16, body: &Value) -> Reply {
    full(status, "application/json", body.to_string())
}

#[tokio::test]
async fn the_error_of_each_provider_is_typed() {
    for (provider, status, body, expected) in [
        (
            Provider::Responses,
            400,
            json!({ "error": { "message": "no", "type": "invalid_request_error", "param": "input", "code": "bad" } }),
            "status 400 Bad Request (type invalid_request_error, code bad)",
        ),
        (
            Provider::Anthropic,
            400,
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" }, "request_id": "req_1" }),
            "status 400 Bad Request (type invalid_request_error, request req_1)",
        ),
        (
            Provider::Gemini,
            403,
            json!([{ "error": { "code": 403, "message": "no", "status": "PERMISSION_DENIED" } }]),
            "status 403 Forbidden (type PERMISSION_DENIED, code 403)",
        ),
        (
            Provider::Ollama,
            400,
            json!({ "error": "no" }),
            "status 400 Bad Request",
        ),
        (
            Provider::Cohere,
            422,
            json!({ "id": "e1", "message": "no" }),
            "status 422 Unprocessable Entity",
        ),
    ] {
        let server = Server::start(move |_| error(status, &body)).await;
        let error = client(provider, &server)
            .send(&question())
            .await
            .unwrap_err();
        let refused = error.status_error().unwrap();
        assert_eq!(refused.message(), Some("no"), "{provider}");
        assert_eq!(refused.to_string(), expected, "{provider}");
        assert_eq!(server.requests().len(), 1, "{provider}");
    }
}

#[tokio::test]
async fn the_id_of_a_request_is_in_the_headers_of_each_provider() {
    for (provider, name) in [
        (Provider::Responses, "x-request-id"),
        (Provider::Anthropic, "request-id"),
        (Provider::Cohere, "x-debug-trace-id"),
    ] {
        let server = Server::start(move |_| {
            let mut reply = error(404, &json!({ "request_id": "of the body" }));
            reply.headers_mut().insert(name, "id-1".parse().unwrap());
            reply
        })
        .await;
        let error = client(provider, &server)
            .send(&question())
            .await
            .unwrap_err();
        assert_eq!(error.status_error().unwrap().request_id(), Some("id-1"));
    }
}

#[tokio::test]
async fn overloaded_providers_are_asked_again() {
    let statuses = [408, 409, 429, 500, 502, 503, 504, 529];
    let cases = OTHERS.map(|provider| statuses.map(|status| (provider, status)));
    let cases = cases
        .into_iter()
        .flatten()
        .map(|(provider, status)| async move {
            let server = Server::start(move |ordinal| match ordinal {
                0 => {
                    let mut reply = error(status, &json!({}));
                    let name = "retry-after-ms";
                    reply.headers_mut().insert(name, "0".parse().unwrap());
                    reply
                }
                _ => answer(provider, "Hi"),
            })
            .await;
            let completions = client(provider, &server).send(&question()).await.unwrap();
            let text = completions.first().await.unwrap().text().await.unwrap();
            assert_eq!(text, "Hi", "{provider} {status}");
            assert_eq!(server.requests().len(), 2);
        });
    futures::future::join_all(cases).await;
}

#[tokio::test]
async fn the_client_waits_as_long_as_the_body_of_gemini_asks() {
    let body = |delay: &str| {
        json!({ "error": {
            "code": 429,
            "message": "quota",
            "status": "RESOURCE_EXHAUSTED",
            "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay }],
        } })
    };
    let short = body("0.7s");
    let server = Server::start(move |ordinal| match ordinal {
        0 => error(429, &short),
        _ => answer(Provider::Gemini, "Hi"),
    })
    .await;
    let started = Instant::now();
    drop(
        client(Provider::Gemini, &server)
            .send(&question())
            .await
            .unwrap(),
    );
    assert!(started.elapsed() > Duration::from_millis(700));
    assert_eq!(server.requests().len(), 2);

    let long = body("3600s");
    let server = Server::start(move |_| error(429, &long)).await;
    let error = client(Provider::Gemini, &server)
        .send(&question())
        .await
        .unwrap_err();
    let refused = error.status_error().unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(refused.attempts(), 1);
    assert!(
        refused.to_string().contains("asks to wait 3600 s"),
        "{refused}"
    );
}

#[tokio::test]
async fn an_answer_that_has_begun_is_not_requested_again() {
    for (provider, name) in [
        (
            Provider::Anthropic,
            "anthropic/anthropic-a19-error-mid-stream",
        ),
        (Provider::Responses, "responses/openai-p17-failed"),
        (Provider::Gemini, "gemini/gemini-g15-error"),
        (Provider::Ollama, "ollama/ollama-o08-error"),
        (Provider::Cohere, "cohere/cohere-h10-error"),
    ] {
        let server = Server::start(move |_| recorded(name)).await;
        let completions = client(provider, &server).send(&question()).await.unwrap();
        let closed = completions.closed().await;
        assert!(
            matches!(closed, Err(StreamError::Server(_))),
            "{name}: {closed:?}"
        );
        assert_eq!(server.requests().len(), 1, "{name}");
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for provider in OTHERS {
        let server = Server::start(|_| {
            let mut reply = full(307, "text/plain", "");
            reply
                .headers_mut()
                .insert("location", "/elsewhere".parse().unwrap());
            reply
        })
        .await;
        let error = client(provider, &server)
            .send(&question())
            .await
            .unwrap_err();
        assert_eq!(error.status_error().unwrap().status(), 307);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn limits_and_timeouts_apply_to_every_provider() {
    for provider in OTHERS {
        let server = Server::start(move |_| answer(provider, "a text beyond the limit")).await;
        let config = unbraid::Completions::builder()
            .limits(unbraid::Limits::default().with_choice_bytes(10));
        let limited = builder(provider, &server)
            .stream_config(config)
            .build()
            .unwrap();
        let completions = limited.send(&question()).await.unwrap();
        let outcome = completions.first().await.unwrap().outcome().await;
        assert!(
            matches!(outcome.end, ChoiceEnd::LimitExceeded(_)),
            "{provider}: {:?}",
            outcome.end
        );

        let silent = Server::raw(|mut socket| async move {
            crate::server::read_request(&mut socket).await;
            std::future::pending::<()>().await;
        })
        .await;
        let patient = builder(provider, &silent).first_byte_timeout(Duration::from_millis(50));
        let error = patient
            .build()
            .unwrap()
            .send(&question())
            .await
            .unwrap_err();
        assert_eq!(error.as_str(), "timed_out");
    }
}
