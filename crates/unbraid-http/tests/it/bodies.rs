//! The body of a response as bytes.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use unbraid::{StreamError, Timeout};
use unbraid_http::{ChoiceStrategy, HttpError, Request};
use unbraid_testkit::{
    fixture::Fixture,
    script::{Script, Step, bytes, content},
};

use crate::{
    responses::{request, texts},
    server::{self, Server, full, two_choices, two_choices_reply},
};

#[tokio::test]
async fn a_body_has_every_byte_of_the_response() {
    let fixtures = Fixture::all();
    let some = fixtures.into_iter().step_by(10).map(|f| f.bytes);
    // A page of HTML is an error.
    let some: Vec<Vec<u8>> = some
        .filter(|body| !body.trim_ascii_start().starts_with(b"<"))
        .collect();
    let served = some.clone();
    let server =
        Server::start(move |ordinal| full(200, "text/html", served[ordinal].clone())).await;
    let client = server.client();
    for expected in &some {
        let mut body = client.open(&request()).await.unwrap();
        let mut read = Vec::new();
        while let Some(bytes) = body.next().await {
            read.extend_from_slice(&bytes.unwrap());
        }
        assert_eq!(&read, expected);
    }
}

#[tokio::test]
async fn a_body_is_read_like_the_result_of_send() {
    let server = Server::start(|_| two_choices_reply()).await;
    let client = server.client();
    let body = client.open(&request()).await.unwrap();
    assert_eq!(texts(&body.into_completions()).await, ["one", "two"]);

    let body = client.open(&request()).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (config, copy) = (body.stream_config(), Arc::clone(&seen));
    let copied = body.inspect_ok(move |bytes| copy.lock().unwrap().extend_from_slice(bytes));
    assert_eq!(
        texts(&config.from_byte_stream(copied)).await,
        ["one", "two"]
    );
    assert_eq!(*seen.lock().unwrap(), two_choices().into_bytes());
}

#[tokio::test]
async fn the_stream_config_has_the_number_of_choices_and_the_rest_of_the_total_timeout() {
    let script = || Script::new([bytes(content(7, "seven")), Step::Stall]);
    let server = Server::start(move |_| server::stream(script())).await;
    let client = server.builder().total_timeout(Duration::from_millis(300));
    let request = Request::chat("m").user("Hi").n(1);
    let body = client.build().unwrap().open(&request).await.unwrap();
    let completions = body.stream_config().from_byte_stream(body);
    assert!(
        completions.choice(0).await.is_some(),
        "a single choice has index 0"
    );
    let Err(StreamError::TimedOut(timed_out)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await);
    };
    assert_eq!(timed_out.timeout, Timeout::Total);
    // What was configured, and not what was left when the answer began.
    assert_eq!(timed_out.after, Duration::from_millis(300));
}

#[tokio::test]
async fn open_sends_one_request_and_fails_like_send() {
    let server = Server::start(|ordinal| match ordinal {
        0 => two_choices_reply(),
        _ => full(404, "text/plain", "no such model"),
    })
    .await;
    let client = server.client();
    let request = request().choice_strategy(ChoiceStrategy::FanOut);
    client.open(&request).await.unwrap();
    assert_eq!(server.requests().len(), 1);
    let error = client.open(&request).await.unwrap_err();
    assert!(matches!(error, HttpError::Status(status) if status.status() == 404));
}
