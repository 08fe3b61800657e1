//! When a connection is closed, and when it is reused.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use tokio::sync::{
    Notify,
    oneshot::{self, error::TryRecvError},
};
use unbraid::Completions;
use unbraid_http::{Body, Client, Request};
use unbraid_testkit::script::{DONE, Probe, Script, Step, bytes, content, finish};

use crate::{
    clock::StoppedClock,
    responses::{request, texts},
    server::{self, Server, two_choices_reply},
};

/// How soon the server has to notice that a connection was closed.
const SOON: Duration = Duration::from_millis(100);

/// A server whose response never ends, and a probe that shows whether the client closed it.
async fn endless() -> (Server, Probe) {
    let script = Script::new([bytes(content(0, "a")), bytes(content(1, "b")), Step::Stall]);
    let probe = script.probe();
    let script = Mutex::new(Some(script));
    let server = Server::start(move |_| {
        let script = script.lock().unwrap().take();
        server::stream(script.expect("one request"))
    })
    .await;
    (server, probe)
}

async fn closed_soon(probe: &Probe) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server represents another process, so real time counts"
    )]
    let since = Instant::now();
    while !probe.closed() {
        assert!(since.elapsed() < SOON, "the server still writes");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn client(server: &Server, http2: bool) -> Client {
    let builder = server.builder().http2_prior_knowledge(http2);
    builder.build().unwrap()
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    for http2 in [false, true] {
        let (server, probe) = endless().await;
        let completions = client(&server, http2).send(&request()).await.unwrap();
        let first = completions.choice(0).await.unwrap();
        let mut content = completions.choice(1).await.unwrap().content();
        drop((completions, first));
        assert_eq!(&*content.next().await.unwrap().unwrap(), "b");
        assert!(!probe.closed(), "a cursor keeps it open");
        drop(content);
        closed_soon(&probe).await;
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    for http2 in [false, true] {
        let (server, probe) = endless().await;
        let completions = client(&server, http2).send(&request()).await.unwrap();
        completions.cancel();
        closed_soon(&probe).await;

        let (server, probe) = endless().await;
        let completions = client(&server, http2).send(&request()).await.unwrap();
        completions.choice(0).await.unwrap().cancel();
        completions.choice(1).await.unwrap().cancel();
        closed_soon(&probe).await;
    }
}

#[tokio::test]
async fn dropping_the_future_of_a_request_closes_its_connection() {
    let (gone, seen) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::raw(move |mut socket| {
        let gone = gone.clone();
        async move {
            server::read_request(&mut socket).await;
            gone.send("requested").unwrap();
            // There is no response, so the next event is the end of the connection.
            server::read_request(&mut socket).await;
            gone.send("closed").unwrap();
        }
    })
    .await;
    let mut seen = seen;
    let client = server.client();
    let sending = tokio::spawn(async move { client.send(&request()).await.map(drop) });
    assert_eq!(seen.recv().await, Some("requested"));
    sending.abort();
    let gone = tokio::time::timeout(SOON, seen.recv()).await;
    assert_eq!(gone, Ok(Some("closed")));
}

/// Reads a body. The receiver resolves once the reader has dropped the body.
fn read_and_watch(body: Body) -> (Completions, oneshot::Receiver<()>) {
    let (held, dropped) = oneshot::channel::<()>();
    let config = body.stream_config();
    let bytes = body.map(move |read| {
        let _held = &held;
        read
    });
    (config.from_byte_stream(bytes), dropped)
}

/// Waits until the connection of a body that was read to its end is back in the pool. Tasks that are ready put it there.
async fn returned_to_pool(dropped: oneshot::Receiver<()>) {
    let _closed = dropped.await.unwrap_err();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ten_requests_need_one_connection() {
    let _clock = StoppedClock::new();
    for http2 in [false, true] {
        let server = Server::start(|_| two_choices_reply()).await;
        let client = client(&server, http2);
        for _ in 0..10 {
            let (completions, dropped) = read_and_watch(client.open(&request()).await.unwrap());
            assert_eq!(texts(&completions).await, ["one", "two"]);
            completions.closed().await.unwrap();
            drop(completions);
            returned_to_pool(dropped).await;
        }
        assert_eq!((server.requests().len(), server.connections()), (10, 1));
    }
}

#[tokio::test]
async fn streams_in_several_writes_need_one_connection() {
    let _clock = StoppedClock::new();
    for http2 in [false, true] {
        let ends = Arc::new(Notify::new());
        let end = Arc::clone(&ends);
        let server = Server::start(move |_| {
            let writes = [content(0, "a"), finish(0, "stop"), DONE.to_owned()];
            let steps = writes.map(|write| [bytes(write), Step::Yield]);
            let end = Arc::clone(&end);
            // The body ends after the client has read `[DONE]`.
            let end = stream::once(async move { end.notified().await });
            let end = end.filter_map(|()| async { None });
            server::frames(Script::new(steps.into_iter().flatten()).chain(end))
        })
        .await;
        let client = client(&server, http2);
        for _ in 0..10 {
            let request = Request::chat("m").user("Hi");
            let (completions, mut dropped) = read_and_watch(client.open(&request).await.unwrap());
            // The handles are dropped as soon as the text is complete.
            let text = completions.first().await.unwrap().text().await.unwrap();
            assert_eq!(text, "a");
            completions.closed().await.unwrap();
            drop(completions);
            assert!(dropped.try_recv().is_err_and(|e| e == TryRecvError::Empty));
            ends.notify_one();
            returned_to_pool(dropped).await;
        }
        assert_eq!((server.requests().len(), server.connections()), (10, 1));
    }
}

#[tokio::test]
async fn an_error_with_a_short_body_leaves_its_connection_usable() {
    let server = Server::start(|_| server::full(404, "application/json", "{}")).await;
    let client = server.client();
    for _ in 0..10 {
        let _error = client.send(&request()).await.unwrap_err();
    }
    assert_eq!((server.requests().len(), server.connections()), (10, 1));
}
