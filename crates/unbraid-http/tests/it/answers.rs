//! What a good answer may look like.

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

use crate::server::{self, Answer, Server, full, two_choices, two_choices_answer};

/// The text of each choice, by index.
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

pub(crate) fn two() -> Request {
    Request::chat("m").user("Count.").n(2)
}

/// Asks a server that gives this answer, and expects two choices.
#[track_caller]
fn check(answer: impl Fn() -> Answer + Send + Sync + 'static) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let server = Server::start(move |_| answer()).await;
        let completions = server.client().send(&two()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"], "{caller}");
        completions.closed().await.unwrap();
    }
}

#[tokio::test]
async fn every_fixture_is_the_same_over_both_versions_of_http() {
    let fixtures = Arc::new(Fixture::all());
    let served = Arc::clone(&fixtures);
    let server = Server::start(move |request| {
        // One HTTP/1.1 and one HTTP/2 request for each.
        full(200, "text/event-stream", served[request / 2].bytes.clone())
    })
    .await;
    let clients = [false, true].map(|http2| {
        let client = server.builder().http2_prior_knowledge(http2);
        move |settings| client.clone().stream_config(settings).build().unwrap()
    });
    let usual = clients
        .each_ref()
        .map(|client| client(settings(&Options::default())));
    for fixture in fixtures.iter() {
        let read = |bytes: Vec<u8>| stream::iter([Ok::<_, std::io::Error>(bytes)]);
        let direct = settings(&fixture.options).from_byte_stream(read(fixture.bytes.clone()));
        for (client, usual) in clients.iter().zip(&usual) {
            let client = match fixture.options == Options::default() {
                true => usual.clone(), // to make one takes a while: it reads the system's certificates
                false => client(settings(&fixture.options)),
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

fn settings(options: &Options) -> unbraid::CompletionsBuilder {
    let settings = Completions::builder()
        .strict(options.strict)
        .usage_after_done(options.usage_after_done)
        .think_tags(match options.split_think {
            SplitThink::Never => ThinkTags::Off,
            SplitThink::AtTag => ThinkTags::Split,
            SplitThink::AtStart => ThinkTags::SplitOpen,
        });
    match options.expect_choices {
        Some(n) => settings.expect_choices(n),
        None => settings,
    }
}

#[tokio::test]
async fn one_byte_at_a_time() {
    check(|| server::stream(Script::of(cut::bytewise(two_choices().as_bytes())))).await;
}

#[tokio::test]
async fn the_content_type_decides_nothing_alone() {
    for kind in [
        "text/plain",
        "application/octet-stream",
        "application/x-ndjson",
        "x",
    ] {
        check(move || full(200, kind, two_choices())).await;
    }
    // What Flask calls everything.
    check(|| full(200, "text/html; charset=utf-8", two_choices())).await;
    check(|| full(200, "TEXT/HTML", format!("\u{feff}\r\n{}", two_choices()))).await;
    check(|| {
        let mut answer = server::stream(Script::of([" ", "\n", &two_choices()]));
        let kind = hyper::header::HeaderValue::from_static("text/html");
        answer
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, kind);
        answer
    })
    .await;
    check(|| {
        let mut answer = two_choices_answer();
        answer.headers_mut().remove(hyper::header::CONTENT_TYPE);
        answer
    })
    .await;
}

#[tokio::test]
async fn other_successes_are_successes() {
    check(|| full(201, "text/event-stream", two_choices())).await;
}

#[tokio::test]
async fn a_whole_completion_is_delivered_as_choices() {
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
async fn an_error_object_with_a_status_of_success_is_told_by_the_handles() {
    let server = Server::start(|_| {
        let error = json!({ "error": { "message": "overloaded", "type": "server_error" } });
        full(200, "application/json", error.to_string())
    })
    .await;
    let completions = server.client().send(&two()).await.unwrap();
    let Err(StreamError::Server(error)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!(error.message(), Some("overloaded"));
}

#[tokio::test]
async fn a_web_page_is_no_stream() {
    let page = "\n<!doctype html><title>Sign in</title><p>for SECRETS";
    let server = Server::start(move |_| full(200, "text/html; charset=utf-8", page)).await;
    let refused = server.client().send(&two()).await.unwrap_err();
    let address = server.address();
    assert_eq!(
        refused.to_string(),
        format!(
            "a web page came, and no stream of completions: status 200 OK from {address}/v1/chat/completions"
        )
    );
    let HttpError::UnexpectedHtml(answer) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!(answer.message(), Some("Sign in"));
    assert_eq!(answer.body_head(), page);
    assert_eq!((answer.status(), answer.attempts()), (200, 1));
    assert!(!format!("{refused:?}").contains("SECRETS"));
    assert_eq!(server.requests().len(), 1, "it is not sent again");

    let own = server::own_client();
    let response = own.get(server.base_url()).send().await.unwrap();
    let refused = response.into_completions().await.unwrap_err();
    assert!(
        matches!(refused, HttpError::UnexpectedHtml(_)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_called_a_page_and_does_not_begin_is_left_to_the_stream() {
    let server = Server::start(|_| {
        let mut answer = server::stream(Script::new([bytes("\n"), Step::Stall]));
        let kind = hyper::header::HeaderValue::from_static("text/html");
        answer
            .headers_mut()
            .insert(hyper::header::CONTENT_TYPE, kind);
        answer
    })
    .await;
    let client = server.builder().idle_timeout(Duration::from_millis(100));
    let completions = client.build().unwrap().send(&two()).await.unwrap();
    let closed = completions.closed().await;
    assert!(
        matches!(closed, Err(StreamError::TimedOut(_))),
        "{closed:?}"
    );
}

#[tokio::test]
async fn a_page_under_another_name_is_told_by_the_handles() {
    let server = Server::start(|_| full(200, "text/plain", "<html>")).await;
    let completions = server.client().send(&two()).await.unwrap();
    let closed = completions.closed().await;
    assert!(
        matches!(closed, Err(StreamError::UnsupportedFormat { .. })),
        "{closed:?}"
    );
}

#[tokio::test]
async fn an_empty_success_is_told_by_the_handles() {
    for kind in ["text/event-stream", "text/html"] {
        let server = Server::start(move |_| full(200, kind, "")).await;
        let completions = server.client().send(&two()).await.unwrap();
        let closed = completions.closed().await;
        assert!(
            matches!(closed, Err(StreamError::Empty { .. })),
            "{closed:?}"
        );
    }
}
