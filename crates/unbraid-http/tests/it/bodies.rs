//! The body of a response as bytes.

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::{Instant, sleep, timeout_at};
use unbraid::{StreamError, TimedOut, Timeout};
use unbraid_http::{Body, ChoiceStrategy, HttpError, Request};
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

/// The bytes of a body until its error, and the timeout that it names.
async fn read_until_timeout(body: Body) -> (Vec<u8>, TimedOut) {
    let mut body = pin!(body);
    let mut read = Vec::new();
    let ends_at = Instant::now() + Duration::from_secs(30);
    loop {
        let next = timeout_at(ends_at, body.next());
        match next.await.expect("the body goes on").expect("it ended") {
            Ok(bytes) => read.extend_from_slice(&bytes),
            Err(error) => {
                assert!(body.next().await.is_none(), "nothing follows an error");
                let error = error.downcast::<StreamError>().unwrap();
                let StreamError::TimedOut(timed_out) = *error else {
                    panic!("{error:?}")
                };
                return (read, timed_out);
            }
        }
    }
}

#[tokio::test]
async fn the_timeouts_hold_for_the_bytes_of_a_body() {
    const SOON: Duration = Duration::from_millis(300);
    let stalls = || Script::new([bytes(content(0, "a")), bytes(content(0, "b")), Step::Stall]);
    let server = Server::start(move |_| server::stream(stalls())).await;
    for (builder, expected) in [
        (server.builder().idle_timeout(SOON), Timeout::Idle),
        (server.builder().total_timeout(SOON), Timeout::Total),
    ] {
        let body = builder.build().unwrap().open(&request()).await.unwrap();
        let (read, timed_out) = read_until_timeout(body).await;
        assert_eq!(
            read,
            [content(0, "a"), content(0, "b")].concat().into_bytes()
        );
        assert_eq!((timed_out.timeout, timed_out.after), (expected, SOON));
    }
}

#[tokio::test]
async fn the_total_timeout_ends_a_body_that_is_never_silent() {
    const SOON: Duration = Duration::from_millis(500);
    let ticks = || {
        stream::unfold((), |()| async {
            sleep(SOON / 10).await;
            Some((Ok(content(0, "a")), ()))
        })
    };
    let server = Server::start(move |_| server::frames(ticks())).await;
    let client = server.builder().total_timeout(SOON).idle_timeout(SOON);
    let body = client.build().unwrap().open(&request()).await.unwrap();
    let (read, timed_out) = read_until_timeout(body).await;
    assert!(!read.is_empty());
    assert_eq!(timed_out.timeout, Timeout::Total);
}

#[tokio::test]
async fn a_slow_reader_is_not_a_silent_server() {
    const IDLE: Duration = Duration::from_millis(200);
    let texts = || {
        Script::new([
            bytes(content(0, "a")),
            Step::Pause(IDLE / 4),
            bytes(content(0, "b")),
        ])
    };
    let server = Server::start(move |_| server::stream(texts())).await;
    let client = server.builder().idle_timeout(IDLE).build().unwrap();
    let mut body = client.open(&request()).await.unwrap();
    let mut read = Vec::new();
    while let Some(bytes) = body.next().await {
        read.extend_from_slice(&bytes.unwrap());
        sleep(IDLE * 2).await;
    }
    assert_eq!(
        read,
        [content(0, "a"), content(0, "b")].concat().into_bytes()
    );
}
