//! Connections that cannot be established, break, or become silent.

use std::{error::Error, sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt, sync::Notify};
use unbraid::{Completions, StreamError, Timeout};
use unbraid_http::{Client, HttpError};
use unbraid_testkit::script::{Script, Step, bytes, content, finish};

use crate::{
    responses::request,
    server::{self, STREAM_HEAD, Server, chunk, full, read_request},
};

/// Returns how choice 0 ended, and its text.
async fn end(completions: &Completions) -> (&'static str, String) {
    let choice = completions.choice(0).await.unwrap();
    match choice.finished().await {
        Ok(finished) => (finished.end.as_str(), finished.message.content),
        Err(cut) => (cut.end().as_str(), cut.partial().message.content.clone()),
    }
}

/// A server that writes this after the head of a stream. Then it closes the connection, or resets it when it is notified.
async fn writes(body: String, reset: Option<Arc<Notify>>) -> Server {
    Server::raw(move |mut socket| {
        let reply = format!("{STREAM_HEAD}{body}");
        let reset = reset.clone();
        async move {
            read_request(&mut socket).await;
            socket.write_all(reply.as_bytes()).await.unwrap();
            if let Some(notify) = reset {
                // Unread bytes would be lost with the connection.
                notify.notified().await;
                socket.set_zero_linger().unwrap();
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_body_that_ends_regularly_without_a_finish_reason_is_interrupted() {
    let server = writes(format!("{}0\r\n\r\n", chunk(&content(0, "a"))), None).await;
    let completions = server.client().send(&request()).await.unwrap();
    assert_eq!(end(&completions).await, ("interrupted", "a".to_owned()));
    completions.closed().await.unwrap();
}

#[tokio::test]
async fn a_closed_or_reset_connection_is_a_transport_error() {
    for reset in [false, true] {
        let notify = Arc::new(Notify::new());
        let wait = reset.then(|| Arc::clone(&notify));
        let server = writes(chunk(&content(0, "a")), wait).await;
        let completions = server.client().send(&request()).await.unwrap();
        let mut text = completions.choice(0).await.unwrap().content();
        assert_eq!(&*text.next().await.unwrap().unwrap(), "a");
        notify.notify_one();
        assert_eq!(end(&completions).await, ("transport", "a".to_owned()));
        let closed = completions.closed().await.unwrap_err();
        assert!(matches!(closed, StreamError::Transport(_)), "{closed:?}");
        assert_eq!(server.connections(), 1, "no second request is sent");
    }
}

#[tokio::test]
async fn a_finished_choice_stays_finished() {
    let body = [content(0, "a"), finish(0, "stop"), content(1, "b")].concat();
    let server = writes(chunk(&body), None).await;
    let completions = server.client().send(&request()).await.unwrap();
    assert_eq!(end(&completions).await, ("finished", "a".to_owned()));
    let other = completions.choice(1).await.unwrap().finished().await;
    assert_eq!(other.unwrap_err().end().as_str(), "transport");
}

#[tokio::test]
async fn a_reset_http2_stream_is_a_transport_error() {
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
    let completions = client.send(&request()).await.unwrap();
    assert_eq!(end(&completions).await, ("transport", "a".to_owned()));
    assert_eq!(server.requests().len(), 1);
}

const SHORT: Duration = Duration::from_millis(400);

#[track_caller]
fn check_timeout(error: &HttpError, expected: Timeout) {
    let HttpError::TimedOut(timed_out) = error else {
        panic!("{error:?}")
    };
    assert_eq!(timed_out.timeout, expected);
}

#[tokio::test]
async fn a_stalled_body_hits_the_idle_timeout() {
    let server =
        Server::start(|_| server::stream(Script::new([bytes(content(0, "a")), Step::Stall]))).await;
    let client = server.builder().idle_timeout(SHORT).build().unwrap();
    let completions = client.send(&request()).await.unwrap();
    assert_eq!(end(&completions).await, ("timed_out", "a".to_owned()));
    let Err(StreamError::TimedOut(timed_out)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!((timed_out.timeout, timed_out.after), (Timeout::Idle, SHORT));
}

#[tokio::test]
async fn the_first_byte_timeout_covers_head_and_body() {
    let silent = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
        std::future::pending::<()>().await;
    })
    .await;
    let client = silent.builder().first_byte_timeout(SHORT).build().unwrap();
    check_timeout(
        &client.send(&request()).await.unwrap_err(),
        Timeout::FirstByte,
    );
    assert_eq!(silent.connections(), 1, "the server may be working on it");

    let headed = writes_and_waits(STREAM_HEAD).await;
    let client = headed.builder().first_byte_timeout(SHORT).build().unwrap();
    let completions = client.send(&request()).await.unwrap();
    let Err(StreamError::TimedOut(timed_out)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!(timed_out.timeout, Timeout::FirstByte);
}

#[tokio::test]
async fn the_idle_timeout_covers_connecting_head_and_first_byte() {
    // Without an answer to the handshake no connection is established.
    let silent = writes_and_waits("").await;
    let https = silent.base_url().replace("http:", "https:");
    let client = silent
        .builder()
        .base_url(https)
        .idle_timeout(SHORT)
        .retries(0);
    let error = client.build().unwrap().send(&request()).await.unwrap_err();
    check_timeout(&error, Timeout::Idle);

    let client = silent.builder().idle_timeout(SHORT).build().unwrap();
    check_timeout(&client.send(&request()).await.unwrap_err(), Timeout::Idle);

    let headed = writes_and_waits(STREAM_HEAD).await;
    for config in [
        Completions::builder(),
        Completions::builder().idle_timeout(100 * SHORT),
    ] {
        let client = headed.builder().idle_timeout(SHORT).stream_config(config);
        let completions = client.build().unwrap().send(&request()).await.unwrap();
        let Err(StreamError::TimedOut(timed_out)) = completions.closed().await else {
            panic!("{:?}", completions.closed().await)
        };
        assert_eq!((timed_out.timeout, timed_out.after), (Timeout::Idle, SHORT));
    }
}

#[tokio::test]
async fn the_first_byte_may_take_longer_than_the_idle_timeout() {
    let slow = Server::start(|_| {
        let text = bytes(content(0, "a"));
        server::stream(Script::new([Step::Pause(3 * SHORT), text, Step::Stall]))
    })
    .await;
    let client = slow
        .builder()
        .idle_timeout(SHORT)
        .first_byte_timeout(50 * SHORT);
    let completions = client.build().unwrap().send(&request()).await.unwrap();
    assert_eq!(end(&completions).await, ("timed_out", "a".to_owned()));
    let Err(StreamError::TimedOut(timed_out)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!((timed_out.timeout, timed_out.after), (Timeout::Idle, SHORT));
}

#[tokio::test]
async fn every_delta_is_read_before_the_connection_is_lost() {
    let deltas = [content(0, "a"), content(1, "b"), content(0, "c")].concat();
    // In the second case the last event lacks its blank line, and the connection ends in the same read.
    let cut = deltas.trim_end().to_owned() + "\n";
    for body in [deltas, cut] {
        let server = writes(chunk(&body), None).await;
        let completions = server.client().send(&request()).await.unwrap();
        assert_eq!(end(&completions).await, ("transport", "ac".to_owned()));
        let error = completions.closed().await.unwrap_err();
        let StreamError::Transport(lost) = &error else {
            panic!("{error:?}")
        };
        let expected = format!("connection lost after {} bytes", body.len());
        assert_eq!(error.to_string(), expected);
        let causes = lost.causes();
        assert!(causes.contains(": "), "no innermost cause: {causes}");
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
    let error = client.build().unwrap().send(&request()).await.unwrap_err();
    check_timeout(&error, Timeout::Total);

    let server = Server::start(|_| {
        let step = [
            bytes(content(0, "a")),
            Step::Pause(Duration::from_millis(20)),
        ];
        server::stream(Script::new(step.into_iter().cycle().take(10_000)))
    })
    .await;
    let client = server.builder().total_timeout(SHORT).build().unwrap();
    let completions = client.send(&request()).await.unwrap();
    let Err(StreamError::TimedOut(timed_out)) = completions.closed().await else {
        panic!("{:?}", completions.closed().await)
    };
    assert_eq!(timed_out.timeout, Timeout::Total);
}

#[tokio::test]
async fn the_error_for_a_closed_port_names_the_host() {
    let (_closed, address) = server::closed_port();
    let client = Client::builder().base_url(format!("http://{address}/v1?key=SECRET"));
    let client = client.proxy_from_env(false).retries(0).build().unwrap();
    let error = client.send(&request()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("no connection to {address}"));
    assert!(matches!(error, HttpError::Connect { .. }), "{error:?}");
    let mut cause: Option<&dyn Error> = Some(&error);
    while let Some(error) = cause {
        assert!(!format!("{error} {error:?}").contains("SECRET"));
        cause = error.source();
    }
}

#[tokio::test]
async fn a_request_to_a_host_that_closes_the_connection_is_sent_once() {
    let server = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
    })
    .await;
    let error = server.client().send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Transport { .. }), "{error:?}");
    assert_eq!(
        server.connections(),
        1,
        "the server may have begun to respond"
    );
}

#[tokio::test]
async fn a_server_of_another_protocol_is_an_error() {
    let server = writes_and_waits("220 mail.example.com ESMTP\r\n").await;
    let error = server.client().send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Transport { .. }), "{error:?}");
}

#[test]
fn sending_without_a_runtime_is_an_error_and_no_panic() {
    let client = Client::builder().build().unwrap();
    let error = futures::executor::block_on(client.send(&request())).unwrap_err();
    assert!(matches!(error, HttpError::NoRuntime), "{error:?}");
}

#[test]
fn sending_without_a_time_driver_is_an_error_and_no_panic() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build();
    let client = Client::builder().build().unwrap();
    let error = runtime
        .unwrap()
        .block_on(client.send(&request()))
        .unwrap_err();
    assert!(matches!(error, HttpError::NoTimeDriver), "{error:?}");
}
