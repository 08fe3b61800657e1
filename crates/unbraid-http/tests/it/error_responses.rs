//! Responses with a status other than success.

use std::time::{Duration, SystemTime};

use tokio::io::AsyncWriteExt;
use unbraid_http::{HttpError, Request, StatusError, limits::MAX_ERROR_BODY_BYTES};
use unbraid_testkit::script::{Script, Step, bytes};

use crate::{
    responses::request,
    server::{self, Reply, Server, full, read_request},
};

/// Returns the error of a response, without another attempt.
async fn status_error(reply: impl Fn() -> Reply + Send + Sync + 'static) -> StatusError {
    let server = Server::start(move |_| reply()).await;
    status_error_of(&server).await
}

async fn status_error_of(server: &Server) -> StatusError {
    // The head counts as the first byte, so a stalled body is not a timeout.
    let client = server.builder().retries(0).api_key("sk-top-secret");
    let client = client.first_byte_timeout(Duration::from_secs(3));
    let error = client.build().unwrap().send(&request()).await.unwrap_err();
    assert_eq!(error.as_str(), "status");
    assert!(error.status_error().is_some());
    let HttpError::Status(status) = error else {
        panic!("{error:?}")
    };
    status
}

fn json(status: u16, body: &'static str) -> Reply {
    full(status, "application/json", body)
}

fn with_header(mut reply: Reply, name: &'static str, value: &str) -> Reply {
    reply.headers_mut().insert(name, value.parse().unwrap());
    reply
}

#[tokio::test]
async fn a_wrong_key_is_reported_without_the_key() {
    let error = status_error(|| {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-top-secret. See ..","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#;
        with_header(json(401, body), "x-request-id", "req_123")
    })
    .await;
    assert_eq!(
        error.to_string(),
        "status 401 Unauthorized (type invalid_request_error, code invalid_api_key, request req_123)"
    );
    assert_eq!(
        error.message(),
        Some("Incorrect API key provided: [key]. See ..")
    );
    assert_eq!(error.request_id(), Some("req_123"));
    assert_eq!(error.kind(), Some("invalid_request_error"));
    assert_eq!(error.code(), Some("invalid_api_key"));
    assert!(error.body_head().contains("[key]"));
    assert!(!format!("{error:?}").contains("Incorrect"), "{error:?}");
}

#[tokio::test]
async fn an_unknown_model_or_address_is_reported_with_the_address() {
    let server = Server::start(|request| match request {
        0 => json(404, r#"{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","code":404}"#),
        _ => json(405, r#"{"detail":"Method Not Allowed"}"#),
    })
    .await;
    let error = status_error_of(&server).await;
    let address = format!("{}/v1/chat/completions", server.address());
    assert_eq!(error.address(), address);
    assert_eq!(
        error.to_string(),
        format!("status 404 Not Found from {address} (type NotFoundError, code 404)")
    );
    assert_eq!(error.message(), Some("The model `m` does not exist."));
    let error = status_error_of(&server).await;
    assert_eq!(
        error.to_string(),
        format!("status 405 Method Not Allowed from {address}")
    );
}

#[tokio::test]
async fn the_client_checks_no_field_before_the_server() {
    let server = Server::start(|_| {
        json(
            400,
            r#"{"detail":[{"loc":["body","n"],"msg":"n must be at least 1"}]}"#,
        )
    })
    .await;
    let error = server
        .client()
        .send(&Request::chat("m").n(0))
        .await
        .unwrap_err();
    let error = error.status_error().unwrap();
    assert_eq!(
        (error.status(), error.message()),
        (400, Some("n must be at least 1"))
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn pages_and_empty_bodies_are_reported() {
    let error = status_error(|| {
        let page = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center>";
        full(502, "text/html", page)
    })
    .await;
    assert_eq!(error.message(), Some("502 Bad Gateway"));
    assert_eq!(error.to_string(), "status 502 Bad Gateway");
    let error = status_error(|| full(500, "text/plain", "")).await;
    assert_eq!((error.message(), error.body_head()), (None, ""));
    let error = status_error(|| full(599, "text/plain", "so it is")).await;
    assert_eq!(error.to_string(), "status 599");
    assert_eq!(error.message(), Some("so it is"));
}

#[tokio::test]
async fn an_event_stream_under_an_error_status_is_an_error() {
    let error = status_error(|| full(500, "text/event-stream", server::two_choices())).await;
    assert_eq!(error.status(), 500);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(|_| server::two_choices_reply()).await;
    let address = elsewhere.base_url();
    let error =
        status_error(move || with_header(full(308, "text/plain", ""), "location", &address)).await;
    assert_eq!(
        error.to_string(),
        "status 308 Permanent Redirect; redirects are not followed"
    );
    assert_eq!(
        elsewhere.connections(),
        0,
        "neither the prompt nor the key is sent there"
    );
}

#[tokio::test]
async fn retry_after_is_parsed_in_every_form() {
    let waits = |name: &'static str, value: String| async move {
        status_error(move || with_header(json(429, "{}"), name, &value))
            .await
            .retry_after()
    };
    let seconds = |seconds| Some(Duration::from_secs_f64(seconds));
    assert_eq!(waits("retry-after", "7".into()).await, seconds(7.0));
    assert_eq!(waits("retry-after", " 1.5 ".into()).await, seconds(1.5));
    assert_eq!(waits("retry-after-ms", "250".into()).await, seconds(0.25));
    for odd in ["-1", "-1e300", "NaN", "soon", ""] {
        assert_eq!(waits("retry-after", odd.into()).await, None, "{odd:?}");
    }
    let endless = "9".repeat(400);
    for long in [
        "99999999999999999999999",
        "18446744073709551616",
        "1e300",
        &endless,
    ] {
        let wait = waits("retry-after", long.into()).await;
        assert_eq!(wait, Some(Duration::MAX), "{long}");
        let wait = waits("retry-after-ms", format!("{long}000")).await;
        assert_eq!(wait, Some(Duration::MAX), "{long}");
    }
    let both = status_error(|| {
        let reply = with_header(json(429, "{}"), "retry-after-ms", "NaN");
        with_header(reply, "retry-after", "7")
    });
    assert_eq!(both.await.retry_after(), seconds(7.0));
    let date = |time| httpdate::fmt_http_date(time);
    let past = SystemTime::now() - Duration::from_secs(60);
    assert_eq!(waits("retry-after", date(past)).await, seconds(0.0));
    let future = SystemTime::now() + Duration::from_secs(100);
    let wait = waits("retry-after", date(future)).await.unwrap();
    assert!((60..=100).contains(&wait.as_secs()), "{wait:?}");
}

#[tokio::test]
async fn request_ids_of_other_providers_are_found() {
    let id = |name| async move {
        let error = status_error(move || with_header(json(400, "{}"), name, "id 1")).await;
        assert_eq!(
            error.to_string(),
            "status 400 Bad Request",
            "not an identifier"
        );
        error.request_id().map(str::to_owned)
    };
    assert_eq!(id("request-id").await.as_deref(), Some("id 1"));
    assert_eq!(id("apim-request-id").await.as_deref(), Some("id 1"));
    assert_eq!(id("x-something-else").await, None);
}

#[tokio::test]
async fn an_endless_error_body_is_bounded() {
    let long = status_error(|| full(500, "text/plain", "x".repeat(MAX_ERROR_BODY_BYTES + 1))).await;
    assert_eq!(long.body_head().len(), MAX_ERROR_BODY_BYTES);
    let fits = status_error(|| full(500, "text/plain", "x".repeat(MAX_ERROR_BODY_BYTES))).await;
    assert_eq!(fits.body_head().len(), MAX_ERROR_BODY_BYTES);
    let endless = status_error(|| {
        let step = bytes("y".repeat(1000));
        let mut reply = server::stream(Script::new(std::iter::repeat_n(step, 10_000)));
        *reply.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        reply
    })
    .await;
    assert_eq!(endless.body_head().len(), MAX_ERROR_BODY_BYTES);
}

#[tokio::test]
async fn a_truncated_error_body_is_used() {
    let server = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
        let error = "HTTP/1.1 503 Busy\r\ncontent-length: 1000\r\n\r\nall slots";
        socket.write_all(error.as_bytes()).await.unwrap();
    })
    .await;
    let error = status_error_of(&server).await;
    assert_eq!(error.message(), Some("all slots"));
}

#[tokio::test]
async fn a_stalled_error_body_is_used() {
    let error = status_error(|| {
        let mut reply = server::stream(Script::new([bytes("all slots"), Step::Stall]));
        *reply.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
        reply
    })
    .await;
    assert_eq!(error.message(), Some("all slots"));
}
