//! Timeouts of fan-outs.

use std::time::Duration;

use futures::stream;
use hyper::StatusCode;
use tokio::{sync::watch, time::timeout};
use unbraid::{ChoiceEnd, Completions, Timeout};
use unbraid_http::{ChoiceStrategy, HttpError};
use unbraid_testkit::script::{Script, Step, bytes, content};

use super::{DEADLINE, ends, one, question};
use crate::{
    clock::StoppedClock,
    server::{self, Server},
};

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

/// How long a call may take, with a stopped clock. After it, a timer may be a millisecond late.
const TOTAL: Duration = Duration::from_secs(60);
const LATE: Duration = Duration::from_millis(1);

/// A server whose bodies end once their request is one of the first so many. The first one may refuse `n`.
struct GatedServer {
    server: Server,
    answered: watch::Sender<usize>,
    clock: StoppedClock,
}

impl GatedServer {
    async fn start(refuses_n: bool) -> Self {
        let answered = watch::Sender::new(0);
        let sender = answered.clone();
        let server = Server::start(move |ordinal| {
            let is_refused = refuses_n && ordinal == 0;
            let mut answered = sender.subscribe();
            let body = stream::once(async move {
                let _closed = answered.wait_for(|answered| *answered > ordinal).await;
                Ok(if is_refused {
                    REFUSAL.to_owned()
                } else {
                    one("a")
                })
            });
            let mut reply = server::frames(body);
            if is_refused {
                *reply.status_mut() = StatusCode::BAD_REQUEST;
            }
            reply
        })
        .await;
        let clock = StoppedClock::new();
        Self {
            server,
            answered,
            clock,
        }
    }

    async fn wait_for_requests(&self, count: usize) {
        let is_sent = || self.server.requests().len() == count;
        self.clock.wait_until("they are not sent", is_sent).await;
    }

    /// Waits until the completion is closed, which the clock allows now. Returns the ends, and checks the timeouts.
    async fn ends_now(&self, completions: &Completions) -> Vec<String> {
        let is_closed = || completions.is_closed();
        self.clock.wait_until("it is not over", is_closed).await;
        let mut choices = completions.choices();
        while let Some(Ok(choice)) = choices.next().await {
            if let ChoiceEnd::TimedOut(timed_out) = choice.outcome().await.end {
                assert_eq!(
                    (timed_out.timeout, timed_out.after),
                    (Timeout::Total, TOTAL)
                );
            }
        }
        ends(completions).await
    }
}

const REFUSAL: &str =
    r#"{"error":{"message":"Only `n=1` is supported","type":"invalid_request_error"}}"#;

#[tokio::test]
async fn requests_that_wait_have_the_deadline_of_the_others() {
    let gated = GatedServer::start(false).await;
    let client = gated.server.builder().max_requests(2).total_timeout(TOTAL);
    let completions = client.build().unwrap().fan_out(&question(), 6);
    gated.wait_for_requests(2).await;
    gated.clock.advance(TOTAL * 2 / 3).await;
    gated.answered.send_replace(2);
    gated.wait_for_requests(4).await;
    gated.clock.advance(TOTAL / 3 + LATE).await;
    let ends = gated.ends_now(&completions).await;
    let finished = ends.iter().filter(|end| end.ends_with(" finished a"));
    let timed_out = ends.iter().filter(|end| end.ends_with(" timed_out "));
    assert_eq!((finished.count(), timed_out.count()), (2, 4), "{ends:?}");
    assert_eq!(gated.server.requests().len(), 4, "two are never sent");
}

#[tokio::test]
async fn missing_choices_have_the_deadline_of_the_first_request() {
    let gated = GatedServer::start(false).await;
    let client = gated.server.builder().total_timeout(TOTAL);
    let request = question().n(3).choice_strategy(ChoiceStrategy::Auto);
    let completions = client.build().unwrap().send(&request).await.unwrap();
    gated.clock.advance(TOTAL * 5 / 6).await;
    gated.answered.send_replace(1);
    // The missing requests wait for a moment after the end of the first answer.
    while gated.server.requests().len() < 3 {
        tokio::task::yield_now().await;
        gated.clock.advance(LATE / 100).await;
    }
    gated.clock.advance(TOTAL / 6 + LATE).await;
    let expected = ["0 finished a", "1 timed_out ", "2 timed_out "];
    assert_eq!(gated.ends_now(&completions).await, expected);
}

#[tokio::test]
async fn a_refusal_of_n_does_not_extend_the_deadline() {
    // Less than the time that the body of an error may take.
    const REFUSED_AFTER: Duration = Duration::from_secs(4);
    let gated = GatedServer::start(true).await;
    let client = gated.server.builder().total_timeout(TOTAL).build().unwrap();
    let request = question().n(2).choice_strategy(ChoiceStrategy::Auto);
    let sending = tokio::spawn(async move { client.send(&request).await });
    gated.wait_for_requests(1).await;
    gated.clock.advance(REFUSED_AFTER).await;
    gated.answered.send_replace(1);
    gated.wait_for_requests(3).await;
    let completions = sending.await.unwrap().unwrap();
    gated.clock.advance(TOTAL - REFUSED_AFTER + LATE).await;
    let expected = ["0 timed_out ", "1 timed_out "];
    assert_eq!(gated.ends_now(&completions).await, expected);
}
