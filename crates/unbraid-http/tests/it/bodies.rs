//! The body as bytes, beside what is read out of it.

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
    answers::{texts, two},
    server::{self, Server, full, two_choices, two_choices_answer},
};

#[tokio::test]
async fn a_body_is_there_byte_for_byte() {
    let fixtures = Fixture::all();
    let some: Vec<Vec<u8>> = fixtures.into_iter().step_by(10).map(|f| f.bytes).collect();
    let served = some.clone();
    let server = Server::start(move |at| full(200, "text/html", served[at].clone())).await;
    let client = server.client();
    for expected in some
        .iter()
        .filter(|body| !body.trim_ascii_start().starts_with(b"<"))
    {
        let mut body = client.open(&two()).await.unwrap();
        let mut read = Vec::new();
        while let Some(bytes) = body.next().await {
            read.extend_from_slice(&bytes.unwrap());
        }
        assert_eq!(&read, expected);
    }
}

#[tokio::test]
async fn a_body_is_read_as_send_reads_it() {
    let server = Server::start(|_| two_choices_answer()).await;
    let client = server.client();
    let body = client.open(&two()).await.unwrap();
    assert_eq!(texts(&body.into_completions()).await, ["one", "two"]);

    let body = client.open(&two()).await.unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (settings, copy) = (body.settings(), Arc::clone(&seen));
    let copied = body.inspect_ok(move |bytes| copy.lock().unwrap().extend_from_slice(bytes));
    assert_eq!(
        texts(&settings.from_byte_stream(copied)).await,
        ["one", "two"]
    );
    assert_eq!(*seen.lock().unwrap(), two_choices().into_bytes());
}

#[tokio::test]
async fn the_settings_know_what_was_asked_and_what_time_is_left() {
    let stray = || Script::new([bytes(content(7, "seven")), Step::Stall]);
    let server = Server::start(move |_| server::stream(stray())).await;
    let client = server.builder().total_timeout(Duration::from_millis(300));
    let request = Request::chat("m").user("Hi").n(1);
    let body = client.build().unwrap().open(&request).await.unwrap();
    let completions = body.settings().from_byte_stream(body);
    assert!(
        completions.choice(0).await.is_some(),
        "one choice is choice 0"
    );
    let Err(StreamError::TimedOut(passed)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await);
    };
    assert_eq!(passed.timeout, Timeout::Total);
    assert!(passed.after < Duration::from_millis(300));
}

#[tokio::test]
async fn it_is_one_request_and_fails_as_send_does() {
    let server = Server::start(|at| match at {
        0 => two_choices_answer(),
        _ => full(404, "text/plain", "no such model"),
    })
    .await;
    let client = server.client();
    let request = two().choice_strategy(ChoiceStrategy::FanOut);
    client.open(&request).await.unwrap();
    assert_eq!(server.requests().len(), 1);
    let refused = client.open(&request).await.unwrap_err();
    assert!(matches!(refused, HttpError::Status(status) if status.status() == 404));
}
