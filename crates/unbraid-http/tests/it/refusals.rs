//! Statuses other than success, whatever their bodies hold.

use std::time::{Duration, SystemTime};

use tokio::io::AsyncWriteExt;
use unbraid_http::{HttpError, Request, StatusError, limits::MAX_ERROR_BODY_BYTES};
use unbraid_testkit::script::{Script, Step, bytes};

use crate::{
    answers::two,
    server::{self, Answer, Server, full, read_request},
};

/// The error that comes of an answer, without another attempt.
async fn refused(answer: impl Fn() -> Answer + Send + Sync + 'static) -> StatusError {
    let server = Server::start(move |_| answer()).await;
    refused_by(&server).await
}

async fn refused_by(server: &Server) -> StatusError {
    // The first byte has come with the head; a body that stalls is no timeout.
    let client = server.builder().retries(0).api_key("sk-top-secret");
    let client = client.first_byte_timeout(Duration::from_secs(3));
    let refused = client.build().unwrap().send(&two()).await.unwrap_err();
    assert_eq!(refused.as_str(), "status");
    assert!(refused.status_error().is_some());
    let HttpError::Status(answer) = refused else {
        panic!("{refused:?}")
    };
    answer
}

fn json(status: u16, body: &'static str) -> Answer {
    full(status, "application/json", body)
}

fn with(mut answer: Answer, name: &'static str, value: &str) -> Answer {
    answer.headers_mut().insert(name, value.parse().unwrap());
    answer
}

#[tokio::test]
async fn a_bad_key() {
    let answer = refused(|| {
        let body = r#"{"error":{"message":"Incorrect API key provided: sk-top-secret. See ..","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#;
        with(json(401, body), "x-request-id", "req_123")
    })
    .await;
    assert_eq!(
        answer.to_string(),
        "status 401 Unauthorized (type invalid_request_error, code invalid_api_key, request req_123)"
    );
    assert_eq!(
        answer.message(),
        Some("Incorrect API key provided: [key]. See ..")
    );
    assert_eq!(answer.request_id(), Some("req_123"));
    assert_eq!(answer.kind(), Some("invalid_request_error"));
    assert_eq!(answer.code(), Some("invalid_api_key"));
    assert!(answer.body_head().contains("[key]"));
    assert!(!format!("{answer:?}").contains("Incorrect"), "{answer:?}");
}

#[tokio::test]
async fn an_unknown_model_or_address() {
    let server = Server::start(|request| match request {
        0 => json(404, r#"{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","code":404}"#),
        _ => json(405, r#"{"detail":"Method Not Allowed"}"#),
    })
    .await;
    let answer = refused_by(&server).await;
    let address = format!("{}/v1/chat/completions", server.address());
    assert_eq!(answer.address(), address);
    assert_eq!(
        answer.to_string(),
        format!("status 404 Not Found from {address} (type NotFoundError, code 404)")
    );
    assert_eq!(answer.message(), Some("The model `m` does not exist."));
    let answer = refused_by(&server).await;
    assert_eq!(
        answer.to_string(),
        format!("status 405 Method Not Allowed from {address}")
    );
}

#[tokio::test]
async fn what_a_server_refuses_is_not_second_guessed() {
    let server = Server::start(|_| {
        json(
            400,
            r#"{"detail":[{"loc":["body","n"],"msg":"n must be at least 1"}]}"#,
        )
    })
    .await;
    let refused = server
        .client()
        .send(&Request::chat("m").n(0))
        .await
        .unwrap_err();
    let answer = refused.status_error().unwrap();
    assert_eq!(
        (answer.status(), answer.message()),
        (400, Some("n must be at least 1"))
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn pages_and_nothing() {
    let answer = refused(|| {
        let page = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center>";
        full(502, "text/html", page)
    })
    .await;
    assert_eq!(answer.message(), Some("502 Bad Gateway"));
    assert_eq!(answer.to_string(), "status 502 Bad Gateway");
    let answer = refused(|| full(500, "text/plain", "")).await;
    assert_eq!((answer.message(), answer.body_head()), (None, ""));
    let answer = refused(|| full(599, "text/plain", "so it is")).await;
    assert_eq!(answer.to_string(), "status 599");
    assert_eq!(answer.message(), Some("so it is"));
}

#[tokio::test]
async fn an_event_stream_under_an_error_status_is_an_error() {
    let answer = refused(|| full(500, "text/event-stream", server::two_choices())).await;
    assert_eq!(answer.status(), 500);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Server::start(|_| server::two_choices_answer()).await;
    let address = elsewhere.base_url();
    let answer = refused(move || with(full(308, "text/plain", ""), "location", &address)).await;
    assert_eq!(
        answer.to_string(),
        "status 308 Permanent Redirect; redirects are not followed"
    );
    assert_eq!(
        elsewhere.connections(),
        0,
        "neither prompt nor key go there"
    );
}

#[tokio::test]
async fn retry_after_in_every_form() {
    let waits = |name: &'static str, value: String| async move {
        refused(move || with(json(429, "{}"), name, &value))
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
    let both = refused(|| {
        let answer = with(json(429, "{}"), "retry-after-ms", "NaN");
        with(answer, "retry-after", "7")
    });
    assert_eq!(both.await.retry_after(), seconds(7.0));
    let date = |at| httpdate::fmt_http_date(at);
    let past = SystemTime::now() - Duration::from_secs(60);
    assert_eq!(waits("retry-after", date(past)).await, seconds(0.0));
    let future = SystemTime::now() + Duration::from_secs(100);
    let wait = waits("retry-after", date(future)).await.unwrap();
    assert!((60..=100).contains(&wait.as_secs()), "{wait:?}");
}

#[tokio::test]
async fn ids_of_other_providers() {
    let id = |name| async move {
        let answer = refused(move || with(json(400, "{}"), name, "id 1")).await;
        assert_eq!(
            answer.to_string(),
            "status 400 Bad Request",
            "no plain identifier"
        );
        answer.request_id().map(str::to_owned)
    };
    assert_eq!(id("request-id").await.as_deref(), Some("id 1"));
    assert_eq!(id("apim-request-id").await.as_deref(), Some("id 1"));
    assert_eq!(id("x-something-else").await, None);
}

#[tokio::test]
async fn a_body_without_an_end_is_bounded() {
    let long = refused(|| full(500, "text/plain", "x".repeat(MAX_ERROR_BODY_BYTES + 1))).await;
    assert_eq!(long.body_head().len(), MAX_ERROR_BODY_BYTES);
    let fits = refused(|| full(500, "text/plain", "x".repeat(MAX_ERROR_BODY_BYTES))).await;
    assert_eq!(fits.body_head().len(), MAX_ERROR_BODY_BYTES);
    let endless = refused(|| {
        let step = bytes("y".repeat(1000));
        let mut answer = server::stream(Script::new(std::iter::repeat_n(step, 10_000)));
        *answer.status_mut() = hyper::StatusCode::INTERNAL_SERVER_ERROR;
        answer
    })
    .await;
    assert_eq!(endless.body_head().len(), MAX_ERROR_BODY_BYTES);
}

#[tokio::test]
async fn a_body_that_is_cut_gives_what_came() {
    let server = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
        let answer = "HTTP/1.1 503 Busy\r\ncontent-length: 1000\r\n\r\nall slots";
        socket.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let answer = refused_by(&server).await;
    assert_eq!(answer.message(), Some("all slots"));
}

#[tokio::test]
async fn a_body_that_stalls_gives_what_came() {
    let answer = refused(|| {
        let mut answer = server::stream(Script::new([bytes("all slots"), Step::Stall]));
        *answer.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
        answer
    })
    .await;
    assert_eq!(answer.message(), Some("all slots"));
}
