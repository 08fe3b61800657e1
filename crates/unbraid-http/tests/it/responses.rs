//! The forms of a successful response.

use std::{sync::Arc, time::Duration};

use futures::stream;
use serde_json::json;
use unbraid::{Completions, StreamError, ThinkTags};
use unbraid_http::{HttpError, Request, ResponseExt};
use unbraid_testkit::{
    cut,
    fixture::{Fixture, Options, SplitThink},
    script::{Script, Step, bytes},
};

use crate::server::{self, Reply, Server, full, two_choices, two_choices_reply};

/// Returns the text of each choice, ordered by index.
pub(crate) async fn texts(completions: &Completions) -> Vec<String> {
    let mut texts = Vec::new();
    let mut choices = completions.choices();
    while let Some(choice) = choices.next().await {
        let choice = choice.unwrap();
        texts.push((choice.index(), choice.text().await.unwrap()));
    }
    texts.sort();
    texts.into_iter().map(|(_, text)| text).collect()
}

/// A request for two choices.
pub(crate) fn request() -> Request {
    Request::chat("m").user("Count.").n(2)
}

/// Sends a request to a server with this response, and expects two choices.
#[track_caller]
fn check(reply: impl Fn() -> Reply + Send + Sync + 'static) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let server = Server::start(move |_| reply()).await;
        let completions = server.client().send(&request()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"], "{caller}");
        completions.closed().await.unwrap();
    }
}

#[tokio::test]
async fn every_fixture_gives_the_same_result_over_both_http_versions() {
    let fixtures = Arc::new(Fixture::all());
    let served = Arc::clone(&fixtures);
    let server = Server::start(move |request| {
        // Each fixture is requested once by HTTP/1.1 and once by HTTP/2.
        full(200, "text/event-stream", served[request / 2].bytes.clone())
    })
    .await;
    let clients = [false, true].map(|http2| {
        let client = server.builder().http2_prior_knowledge(http2);
        move |config| client.clone().stream_config(config).build().unwrap()
    });
    let defaults = clients
        .each_ref()
        .map(|client| client(stream_config(&Options::default())));
    for fixture in fixtures.iter() {
        let read = |bytes: Vec<u8>| stream::iter([Ok::<_, std::io::Error>(bytes)]);
        let direct = stream_config(&fixture.options).from_byte_stream(read(fixture.bytes.clone()));
        for (client, default) in clients.iter().zip(&defaults) {
            let client = match fixture.options == Options::default() {
                true => default.clone(), // a new client reads the system's certificates, which is slow
                false => client(stream_config(&fixture.options)),
            };
            let request = Request::chat("m").user("Hi");
            let completions = client.send(&request).await.unwrap();
            let (name, closed) = (&fixture.name, completions.closed().await);
            assert_eq!(
                closed.map_err(|error| error.to_string()),
                direct.closed().await.map_err(|error| error.to_string()),
                "{name}"
            );
            assert_eq!(
                completions.aggregate().await,
                direct.aggregate().await,
                "{name}"
            );
        }
    }
    let versions: Vec<_> = server
        .requests()
        .iter()
        .map(hyper::Request::version)
        .collect();
    let (first, second) = (hyper::Version::HTTP_11, hyper::Version::HTTP_2);
    assert_eq!(versions, [first, second].repeat(fixtures.len()));
}

fn stream_config(options: &Options) -> unbraid::CompletionsBuilder {
    let config = Completions::builder()
        .strict(options.strict)
        .usage_after_done(options.usage_after_done)
        .think_tags(match options.split_think {
            SplitThink::Never => ThinkTags::Off,
            SplitThink::AtTag => ThinkTags::Split,
            SplitThink::AtStart => ThinkTags::SplitOpen,
        });
    match options.expect_choices {
        Some(n) => config.expect_choices(n),
        None => config,
    }
}

#[tokio::test]
async fn a_stream_of_single_bytes_is_read() {
    check(|| server::stream(Script::of(cut::bytewise(two_choices().as_bytes())))).await;
}

#[tokio::test]
async fn the_content_type_alone_decides_nothing() {
    for kind in [
        "text/plain",
        "application/octet-stream",
        "application/x-ndjson",
        "x",
    ] {
        check(move || full(200, kind, two_choices())).await;
    }
    // The content type that Flask uses by default.
    check(|| full(200, "text/html; charset=utf-8", two_choices())).await;
    check(|| full(200, "TEXT/HTML", format!("\u{feff}\r\n{}", two_choices()))).await;
    check(|| {
        let mut reply = server::stream(Script::of([" ", "\n", &two_choices()]));
        let kind = hyper::header::HeaderValue::from_static("text/html");
        reply
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, kind);
        reply
    })
    .await;
    check(|| {
        let mut reply = two_choices_reply();
        reply.headers_mut().remove(hyper::header::CONTENT_TYPE);
        reply
    })
    .await;
}

#[tokio::test]
async fn a_status_201_is_a_success() {
    check(|| full(201, "text/event-stream", two_choices())).await;
}

#[tokio::test]
async fn a_completion_that_is_not_streamed_is_read_as_choices() {
    let choice = |index: u32, text: &str| json!({ "index": index, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" });
    let whole = json!({
        "id": "c",
        "object": "chat.completion",
        "choices": [choice(0, "one"), choice(1, "two")],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 },
    });
    check(move || full(200, "application/json", whole.to_string())).await;
}

#[tokio::test]
async fn the_handles_report_an_error_object_with_a_status_of_success() {
    let server = Server::start(|_| {
        let error = json!({ "error": { "message": "overloaded", "type": "server_error" } });
        full(200, "application/json", error.to_string())
    })
    .await;
    let completions = server.client().send(&request()).await.unwrap();
    let Err(StreamError::Server(error)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!(error.message(), Some("overloaded"));
}

#[tokio::test]
async fn a_web_page_is_an_error_of_send() {
    let page = "\n<!doctype html><title>Sign in</title><p>for SECRETS";
    let server = Server::start(move |_| full(200, "text/html; charset=utf-8", page)).await;
    let error = server.client().send(&request()).await.unwrap_err();
    let address = server.address();
    assert_eq!(
        error.to_string(),
        format!(
            "the response is a web page, not a stream of completions: status 200 OK from {address}/v1/chat/completions"
        )
    );
    let HttpError::UnexpectedHtml(status) = &error else {
        panic!("{error:?}")
    };
    assert_eq!(status.message(), Some("Sign in"));
    assert_eq!(status.body_head(), page);
    assert_eq!((status.status(), status.attempts()), (200, 1));
    assert!(!format!("{error:?}").contains("SECRETS"));
    assert_eq!(server.requests().len(), 1, "it is not sent again");

    let own = server::own_client();
    let response = own.get(server.base_url()).send().await.unwrap();
    let error = response.into_completions().await.unwrap_err();
    assert!(matches!(error, HttpError::UnexpectedHtml(_)), "{error:?}");
}

#[tokio::test]
async fn a_silent_body_declared_as_a_page_is_left_to_the_stream_timeouts() {
    let server = Server::start(|_| {
        let mut reply = server::stream(Script::new([bytes("\n"), Step::Stall]));
        let kind = hyper::header::HeaderValue::from_static("text/html");
        reply
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, kind);
        reply
    })
    .await;
    let client = server.builder().idle_timeout(Duration::from_millis(100));
    let completions = client.build().unwrap().send(&request()).await.unwrap();
    let closed = completions.closed().await;
    assert!(
        matches!(closed, Err(StreamError::TimedOut(_))),
        "{closed:?}"
    );
}

#[tokio::test]
async fn the_handles_report_a_page_that_is_declared_as_text() {
    let server = Server::start(|_| full(200, "text/plain", "<html>")).await;
    let completions = server.client().send(&request()).await.unwrap();
    let closed = completions.closed().await;
    assert!(
        matches!(closed, Err(StreamError::UnsupportedFormat { .. })),
        "{closed:?}"
    );
}

#[tokio::test]
async fn the_handles_report_an_empty_success() {
    for kind in ["text/event-stream", "text/html"] {
        let server = Server::start(move |_| full(200, kind, "")).await;
        let completions = server.client().send(&request()).await.unwrap();
        let closed = completions.closed().await;
        assert!(
            matches!(closed, Err(StreamError::Empty { .. })),
            "{closed:?}"
        );
    }
}
