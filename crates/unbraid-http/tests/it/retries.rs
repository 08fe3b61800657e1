//! Which requests are sent again, as the server counts them.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::io::AsyncWriteExt;
use unbraid_http::{ChoiceStrategy, Client, HttpError, Request};
use unbraid_testkit::script::{Script, Step, bytes, content, finish};

use crate::{
    responses::{request, texts},
    server::{self, Reply, STREAM_HEAD, Server, chunk, full, read_request, two_choices_reply},
};

fn busy(status: u16, header: Option<(&'static str, &str)>) -> Reply {
    let mut reply = full(status, "text/plain", "busy");
    // Without a header the client pauses for at least a quarter of a second.
    let (name, value) = header.unwrap_or(("retry-after-ms", "0"));
    reply.headers_mut().insert(name, value.parse().unwrap());
    reply
}

#[tokio::test]
async fn retryable_statuses_are_retried() {
    let statuses = [408, 409, 429, 500, 502, 503, 504, 529];
    let tries = statuses.map(|status| async move {
        let server = Server::start(move |request| match request {
            0 => busy(status, None),
            _ => two_choices_reply(),
        })
        .await;
        let completions = server.client().send(&request()).await.unwrap();
        assert_eq!(texts(&completions).await, ["one", "two"], "{status}");
        let requests = server.requests();
        assert_eq!(requests.len(), 2, "{status}");
        assert_eq!(requests[0].body(), requests[1].body(), "{status}");
    });
    futures::future::join_all(tries).await;
}

#[tokio::test]
async fn other_statuses_are_not_retried() {
    let statuses = [
        300, 301, 307, 400, 401, 402, 403, 404, 405, 410, 413, 422, 451, 600,
    ];
    for status in statuses {
        let server = Server::start(move |_| busy(status, None)).await;
        let error = server.client().send(&request()).await.unwrap_err();
        assert_eq!(error.status_error().unwrap().attempts(), 1);
        assert_eq!(server.requests().len(), 1, "{status}");
    }
}

/// llama.cpp reports its refusal of `n` as a failure of the server.
#[tokio::test]
async fn a_failure_that_refuses_n_is_not_retried() {
    const REFUSED: &str = r#"{"error":{"code":500,"message":"Only one completion choice is allowed","type":"server_error"}}"#;
    for (status, requests) in [(500, 1), (503, 3)] {
        let server = Server::start(move |_| {
            let mut reply = full(status, "application/json", REFUSED);
            reply
                .headers_mut()
                .insert("retry-after-ms", "0".parse().unwrap());
            reply
        })
        .await;
        let request = request().choice_strategy(ChoiceStrategy::Native);
        let error = server.client().send(&request).await.unwrap_err();
        assert_eq!(error.status_error().unwrap().status(), status);
        assert_eq!(server.requests().len(), requests, "{status}");
    }
}

#[tokio::test]
async fn the_number_of_retries_is_bounded() {
    for (retries, expected) in [(0, 1), (1, 2)] {
        let server = Server::start(|_| busy(503, None)).await;
        let client = server.builder().retries(retries).build().unwrap();
        let error = client.send(&request()).await.unwrap_err();
        assert_eq!(error.status_error().unwrap().attempts(), expected);
        assert_eq!(server.requests().len(), expected as usize);
    }
    let server = Server::start(|_| busy(503, None)).await;
    let error = server.client().send(&request()).await.unwrap_err();
    assert_eq!(
        error.status_error().unwrap().attempts(),
        3,
        "two retries by default"
    );
}

#[tokio::test]
async fn the_client_waits_as_long_as_the_server_asks() {
    let server = Server::start(|request| match request {
        0 => busy(429, Some(("retry-after", "1"))),
        _ => two_choices_reply(),
    })
    .await;
    #[expect(clippy::disallowed_methods, reason = "the pause takes real time")]
    let since = Instant::now();
    drop(server.client().send(&request()).await.unwrap());
    assert!(since.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_wait_of_hours_is_an_error_at_once() {
    let server = Server::start(|_| busy(429, Some(("retry-after", "3600")))).await;
    let error = server.client().send(&request()).await.unwrap_err();
    let status = error.status_error().unwrap();
    assert_eq!(status.retry_after(), Some(Duration::from_secs(3600)));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_wait_beyond_every_limit_is_an_error_that_states_it() {
    for (wait, stated) in [
        ("99999999999999999999999", "18446744073709551615"),
        ("1e300", "18446744073709551615"),
        ("3600", "3600"),
        ("60.5", "61"),
    ] {
        for status in [429, 503] {
            let server = Server::start(move |_| busy(status, Some(("retry-after", wait)))).await;
            let error = server.client().send(&request()).await.unwrap_err();
            assert_eq!(server.requests().len(), 1, "{wait}");
            let expected =
                format!("; the server asks to wait {stated} s, longer than the limit of 60 s");
            assert!(error.to_string().ends_with(&expected), "{error}");
        }
    }
    // The wait is not the reason if the status is not retried anyway.
    let server = Server::start(|_| busy(400, Some(("retry-after", "3600")))).await;
    let error = server.client().send(&request()).await.unwrap_err();
    assert_eq!(error.to_string(), "status 400 Bad Request");
}

#[tokio::test]
async fn a_server_may_forbid_retries() {
    let server = Server::start(|_| busy(500, Some(("x-should-retry", "false")))).await;
    let _error = server.client().send(&request()).await.unwrap_err();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_closed_port_is_retried() {
    let (socket, address) = server::closed_port();
    let client = Client::builder().base_url(format!("http://{address}/v1"));
    let client = client.proxy_from_env(false).retries(6).build().unwrap();
    let starting = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let listener = socket.listen(8).unwrap();
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        let reply = format!("{STREAM_HEAD}{}0\r\n\r\n", chunk(&server::two_choices()));
        socket.write_all(reply.as_bytes()).await.unwrap();
    });
    let completions = client.send(&request()).await.unwrap();
    assert_eq!(texts(&completions).await, ["one", "two"]);
    starting.await.unwrap();
}

#[tokio::test]
async fn no_request_is_sent_again_once_a_response_has_begun() {
    // The connection fails after the head, after one byte, or after a delta.
    for body in ["", "d", &content(0, "a")] {
        for http2 in [false, true] {
            let steps = [bytes(body), Step::Yield, Step::Fail];
            let steps = Mutex::new(steps.to_vec());
            let server =
                Server::start(move |_| server::stream(Script::new(steps.lock().unwrap().clone())))
                    .await;
            let client = server.builder().http2_prior_knowledge(http2).retries(5);
            // The head may be lost with the connection. In both cases the request is not sent again.
            match client.build().unwrap().send(&request()).await {
                Ok(completions) => assert!(completions.closed().await.is_err()),
                Err(error) => assert!(matches!(error, HttpError::Transport { .. }), "{error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert_eq!(server.requests().len(), 1, "{body:?}, http2: {http2}");
        }
    }
}

#[tokio::test]
async fn a_partial_head_is_the_beginning_of_a_response() {
    let server = Server::raw(|mut socket| async move {
        read_request(&mut socket).await;
        socket.write_all(b"HTTP/1.1 200 O").await.unwrap();
    })
    .await;
    let error = server.client().send(&request()).await.unwrap_err();
    assert!(matches!(error, HttpError::Transport { .. }), "{error:?}");
    assert_eq!(server.connections(), 1);
}

/// An HTTP/2 server that refuses the streams with these ordinals, from 0, and responds to the others.
async fn refusing(refused: &'static [usize], seen: Arc<AtomicUsize>) -> Server {
    Server::raw(move |socket| {
        let seen = Arc::clone(&seen);
        async move {
            let mut connection = h2::server::handshake(socket).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                if refused.contains(&seen.fetch_add(1, Ordering::SeqCst)) {
                    respond.send_reset(h2::Reason::REFUSED_STREAM);
                    continue;
                }
                tokio::spawn(async move {
                    let mut body = request.into_body();
                    while let Some(Ok(bytes)) = body.data().await {
                        let _released = body.flow_control().release_capacity(bytes.len());
                    }
                    let head = hyper::Response::new(());
                    let mut body = respond.send_response(head, false).unwrap();
                    let reply = [content(0, "a"), finish(0, "stop")].concat();
                    body.send_data(reply.into(), true).unwrap();
                });
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_stream_that_the_server_did_not_process_is_sent_again() {
    for choices in [ChoiceStrategy::Native, ChoiceStrategy::FanOut] {
        let seen = Arc::new(AtomicUsize::new(0));
        let server = refusing(&[0], Arc::clone(&seen)).await;
        let client = server.builder().http2_prior_knowledge(true);
        let request = Request::chat("m").user("x".repeat(100_000)).n(1);
        let completions = client
            .build()
            .unwrap()
            .send(&request.choice_strategy(choices))
            .await;
        assert_eq!(texts(&completions.unwrap()).await, ["a"], "{choices:?}");
        assert_eq!(seen.load(Ordering::SeqCst), 2, "{choices:?}");
    }
}
