//! Timeouts of fan-outs.

use std::time::Duration;

use tokio::time::timeout;
use unbraid::{ChoiceEnd, Timeout};
use unbraid_http::{ChoiceStrategy, HttpError};
use unbraid_testkit::script::{Script, Step, bytes, content};

use super::{DEADLINE, ends, one, question};
use crate::server::{self, Server};

#[tokio::test]
async fn a_fan_out_that_times_out_is_an_error_of_send() {
    let silent = Server::raw(|mut socket| async move {
        server::read_request(&mut socket).await;
        std::future::pending::<()>().await;
    })
    .await;
    let soon = Duration::from_millis(300);
    for (builder, expected) in [
        (silent.builder().total_timeout(soon), Timeout::Total),
        (
            silent.builder().first_byte_timeout(soon),
            Timeout::FirstByte,
        ),
        (silent.builder().idle_timeout(soon), Timeout::Idle),
    ] {
        let request = question().n(2).choice_strategy(ChoiceStrategy::FanOut);
        let error = builder.build().unwrap().send(&request).await.unwrap_err();
        let HttpError::TimedOut(timed_out) = error else {
            panic!("{error:?}")
        };
        assert_eq!(timed_out.timeout, expected);
    }
}

#[tokio::test]
async fn a_waiting_request_does_not_time_out() {
    let server = Server::start(|ordinal| {
        let pause = Step::Pause(Duration::from_millis(700));
        server::stream(Script::new([pause, bytes(one(&ordinal.to_string()))]))
    })
    .await;
    let first_byte = Duration::from_secs(2);
    let client = server.builder().first_byte_timeout(first_byte);
    let client = client.max_requests(1).build().unwrap();
    let completions = client.fan_out(&question(), 4);
    let expected = [
        "0 finished 0",
        "1 finished 1",
        "2 finished 2",
        "3 finished 3",
    ];
    assert_eq!(ends(&completions).await, expected);
}

#[tokio::test]
async fn the_first_byte_timeout_starts_when_a_request_is_sent() {
    const TIMEOUT: Duration = Duration::from_millis(200);
    let server =
        Server::start(|_| server::stream(Script::new([Step::Pause(TIMEOUT / 2), bytes(one("a"))])))
            .await;
    let client = server.builder().max_requests(1).first_byte_timeout(TIMEOUT);
    let completions = client.build().unwrap().fan_out(&question(), 4);
    let expected = [
        "0 finished a",
        "1 finished a",
        "2 finished a",
        "3 finished a",
    ];
    assert_eq!(ends(&completions).await, expected);

    let server = Server::start(|_| server::stream(Script::new([Step::Stall]))).await;
    let client = server
        .builder()
        .first_byte_timeout(TIMEOUT)
        .build()
        .unwrap();
    let completions = client.fan_out(&question(), 1);
    let choice = completions.first().await.unwrap();
    let error = timeout(DEADLINE, choice.finished())
        .await
        .expect("no result before the deadline");
    let error = error.unwrap_err();
    let ChoiceEnd::TimedOut(timed_out) = error.end() else {
        panic!(
            "the body has no byte, and the choice ended as {:?}",
            error.end()
        );
    };
    assert_eq!(timed_out.timeout, Timeout::FirstByte);
}

#[tokio::test]
async fn the_total_timeout_bounds_the_body_with_every_strategy() {
    for strategy in [
        ChoiceStrategy::Native,
        ChoiceStrategy::FanOut,
        ChoiceStrategy::Auto,
    ] {
        let stalls = |_| server::stream(Script::new([bytes(content(0, "a")), Step::Stall]));
        let server = Server::start(stalls).await;
        let client = server
            .builder()
            .total_timeout(Duration::from_millis(300))
            .build()
            .unwrap();
        let completions = client
            .send(&question().n(2).choice_strategy(strategy))
            .await
            .unwrap();
        let ends = ends(&completions).await;
        assert_eq!(ends[0], "0 timed_out a", "{strategy:?}");
    }
}
