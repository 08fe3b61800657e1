//! Connections that do not come about, break, or fall silent.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt, sync::Notify};
use unbraid::{Completions, StreamError, Timeout};
use unbraid_http::{Client, HttpError};
use unbraid_testkit::script::{Script, Step, bytes, content, finish};

use crate::{
    answers::two,
    server::{self, STREAM_HEAD, Server, chunk, full, read_request},
};

/// How choice 0 ended, and the text that it had.
async fn end(completions: &Completions) -> (&'static str, String) {
    let choice = completions.choice(0).await.unwrap();
    match choice.finished().await {
        Ok(finished) => (finished.end.as_str(), finished.message.content),
        Err(cut) => (cut.end().as_str(), cut.partial().message.content.clone()),
    }
}

/// A server that writes this behind the head of a stream. Then it closes the connection, or, once it is told to, resets it.
async fn writes(body: String, reset: Option<Arc<Notify>>) -> Server {
    Server::raw(move |mut socket| {
        let answer = format!("{STREAM_HEAD}{body}");
        let reset = reset.clone();
        async move {
            read_request(&mut socket).await;
            socket.write_all(answer.as_bytes()).await.unwrap();
            if let Some(told) = reset {
                // Unread bytes would be lost with the connection.
                told.notified().await;
                socket.set_zero_linger().unwrap();
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_body_that_ends_in_good_order_without_a_reason_is_interrupted() {
    let server = writes(format!("{}0\r\n\r\n", chunk(&content(0, "a"))), None).await;
    let completions = server.client().send(&two()).await.unwrap();
    assert_eq!(end(&completions).await, ("interrupted", "a".to_owned()));
    completions.closed().await.unwrap();
}

#[tokio::test]
async fn a_cut_or_reset_connection_is_a_transport_error() {
    for reset in [false, true] {
        let told = Arc::new(Notify::new());
        let wait = reset.then(|| Arc::clone(&told));
        let server = writes(chunk(&content(0, "a")), wait).await;
        let completions = server.client().send(&two()).await.unwrap();
        let mut text = completions.choice(0).await.unwrap().content();
        assert_eq!(&*text.next().await.unwrap().unwrap(), "a");
        told.notify_one();
        assert_eq!(end(&completions).await, ("transport", "a".to_owned()));
        let closed = completions.closed().await.unwrap_err();
        assert!(matches!(closed, StreamError::Transport(_)), "{closed:?}");
        assert_eq!(server.connections(), 1, "never a second answer");
    }
}

#[tokio::test]
async fn a_choice_that_had_finished_stays_so() {
    let body = [content(0, "a"), finish(0, "stop"), content(1, "b")].concat();
    let server = writes(chunk(&body), None).await;
    let completions = server.client().send(&two()).await.unwrap();
    assert_eq!(end(&completions).await, ("finished", "a".to_owned()));
    let other = completions.choice(1).await.unwrap().finished().await;
    assert_eq!(other.unwrap_err().end().as_str(), "transport");
}

#[tokio::test]
async fn a_reset_stream_of_http2_is_a_transport_error() {
    let server = Server::start(|_| {
        server::stream(Script::new([
            bytes(content(0, "a")),
            Step::Yield,
            Step::Fail,
        ]))
    })
    .await;
    let client = server
        .builder()
        .http2_prior_knowledge(true)
        .build()
        .unwrap();
    let completions = client.send(&two()).await.unwrap();
    assert_eq!(end(&completions).await, ("transport", "a".to_owned()));
    assert_eq!(server.requests().len(), 1);
}

const SHORT: Duration = Duration::from_millis(400);

#[track_caller]
fn is_timeout(error: &HttpError, expected: Timeout) {
    let HttpError::TimedOut(passed) = error else {
        panic!("{error:?}")
    };
    assert_eq!(passed.timeout, expected);
}

#[tokio::test]
async fn a_body_that_stalls_runs_into_the_idle_timeout() {
    let server =
        Server::start(|_| server::stream(Script::new([bytes(content(0, "a")), Step::Stall]))).await;
    let client = server.builder().idle_timeout(SHORT).build().unwrap();
    let completions = client.send(&two()).await.unwrap();
    assert_eq!(end(&completions).await, ("timed_out", "a".to_owned()));
    let Err(StreamError::TimedOut(passed)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!((passed.timeout, passed.after), (Timeout::Idle, SHORT));
}

#[tokio::test]
async fn the_first_byte_is_waited_for_in_head_and_body() {
    let silent = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
        std::future::pending::<()>().await;
    })
    .await;
    let client = silent.builder().first_byte_timeout(SHORT).build().unwrap();
    is_timeout(&client.send(&two()).await.unwrap_err(), Timeout::FirstByte);
    assert_eq!(silent.connections(), 1, "the server may be at work on it");

    let headed = writes_and_waits(STREAM_HEAD).await;
    let client = headed.builder().first_byte_timeout(SHORT).build().unwrap();
    let completions = client.send(&two()).await.unwrap();
    let Err(StreamError::TimedOut(passed)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!(passed.timeout, Timeout::FirstByte);
}

#[tokio::test]
async fn the_idle_timeout_covers_connecting_head_and_first_byte() {
    // A handshake that is not answered is a connection that does not come about.
    let mute = writes_and_waits("").await;
    let https = mute.base_url().replace("http:", "https:");
    let client = mute
        .builder()
        .base_url(https)
        .idle_timeout(SHORT)
        .retries(0);
    let refused = client.build().unwrap().send(&two()).await.unwrap_err();
    is_timeout(&refused, Timeout::Idle);

    let client = mute.builder().idle_timeout(SHORT).build().unwrap();
    is_timeout(&client.send(&two()).await.unwrap_err(), Timeout::Idle);

    let headed = writes_and_waits(STREAM_HEAD).await;
    for settings in [
        Completions::builder(),
        Completions::builder().idle_timeout(100 * SHORT),
    ] {
        let client = headed.builder().idle_timeout(SHORT).stream_config(settings);
        let completions = client.build().unwrap().send(&two()).await.unwrap();
        let Err(StreamError::TimedOut(passed)) = completions.closed().await else {
            panic!("{:?}", completions.closed().await)
        };
        assert_eq!((passed.timeout, passed.after), (Timeout::Idle, SHORT));
    }
}

#[tokio::test]
async fn the_first_byte_may_take_longer_than_later_ones() {
    let slow = Server::start(|_| {
        let text = bytes(content(0, "a"));
        server::stream(Script::new([Step::Pause(3 * SHORT), text, Step::Stall]))
    })
    .await;
    let client = slow
        .builder()
        .idle_timeout(SHORT)
        .first_byte_timeout(50 * SHORT);
    let completions = client.build().unwrap().send(&two()).await.unwrap();
    assert_eq!(end(&completions).await, ("timed_out", "a".to_owned()));
    let Err(StreamError::TimedOut(passed)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!((passed.timeout, passed.after), (Timeout::Idle, SHORT));
}

#[tokio::test]
async fn every_delta_that_came_is_read_before_a_connection_is_lost() {
    let deltas = [content(0, "a"), content(1, "b"), content(0, "c")].concat();
    // The last event lacks its blank line, and the connection ends in the same read.
    let cut = deltas.trim_end().to_owned() + "\n";
    for body in [deltas, cut] {
        let server = writes(chunk(&body), None).await;
        let completions = server.client().send(&two()).await.unwrap();
        assert_eq!(end(&completions).await, ("transport", "ac".to_owned()));
        let error = completions.closed().await.unwrap_err();
        let StreamError::Transport(lost) = &error else {
            panic!("{error:?}")
        };
        let expected = format!("connection lost after {} bytes", body.len());
        assert_eq!(error.to_string(), expected);
        let causes = lost.causes();
        assert!(causes.contains(": "), "the innermost one counts: {causes}");
        assert!(!causes.contains(&server.address().to_string()), "{causes}");
    }
}

async fn writes_and_waits(text: &'static str) -> Server {
    Server::raw(move |mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(text.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    })
    .await
}

#[tokio::test]
async fn the_total_timeout_covers_attempts_and_body() {
    let busy = Server::start(|_| full(503, "text/plain", "busy")).await;
    let client = busy.builder().retries(1000).total_timeout(2 * SHORT);
    let refused = client.build().unwrap().send(&two()).await.unwrap_err();
    is_timeout(&refused, Timeout::Total);

    let server = Server::start(|_| {
        let step = [
            bytes(content(0, "a")),
            Step::Pause(Duration::from_millis(20)),
        ];
        server::stream(Script::new(step.into_iter().cycle().take(10_000)))
    })
    .await;
    let client = server.builder().total_timeout(SHORT).build().unwrap();
    let completions = client.send(&two()).await.unwrap();
    let Err(StreamError::TimedOut(passed)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!(passed.timeout, Timeout::Total);
}

#[tokio::test]
async fn a_refused_port_is_told_with_its_host() {
    let (_closed, address) = server::closed_port();
    let client = Client::builder().base_url(format!("http://{address}/v1?key=SECRET"));
    let client = client.proxy_from_env(false).retries(0).build().unwrap();
    let refused = client.send(&two()).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("no connection to {address}"));
    assert!(matches!(refused, HttpError::Connect { .. }), "{refused:?}");
    let mut cause: Option<&dyn Error> = Some(&refused);
    while let Some(error) = cause {
        assert!(!format!("{error} {error:?}").contains("SECRET"));
        cause = error.source();
    }
}

#[tokio::test]
async fn a_host_that_accepts_and_hangs_up_is_asked_once() {
    let server = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
    })
    .await;
    let refused = server.client().send(&two()).await.unwrap_err();
    assert!(
        matches!(refused, HttpError::Transport { .. }),
        "{refused:?}"
    );
    assert_eq!(server.connections(), 1, "it may have begun to answer");
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_an_error() {
    let server = writes_and_waits("220 mail.example.com ESMTP\r\n").await;
    let refused = server.client().send(&two()).await.unwrap_err();
    assert!(
        matches!(refused, HttpError::Transport { .. }),
        "{refused:?}"
    );
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let client = Client::builder().build().unwrap();
    let refused = futures::executor::block_on(client.send(&two())).unwrap_err();
    assert!(matches!(refused, HttpError::NoRuntime), "{refused:?}");
}

#[test]
fn without_timers_there_is_an_error_and_no_panic() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let client = Client::builder().build().unwrap();
    let refused = runtime.unwrap().block_on(client.send(&two())).unwrap_err();
    assert!(matches!(refused, HttpError::NoTimeDriver), "{refused:?}");
}
