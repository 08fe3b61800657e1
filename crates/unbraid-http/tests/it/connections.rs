//! When a connection is closed, and when it is used again.

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
    answers::{texts, two},
    server::{self, Server, two_choices_answer},
};

/// How soon the server has to see it.
const SOON: Duration = Duration::from_millis(100);

/// A server whose answers begin and never end, and what tells that one was given up.
async fn endless() -> (Server, Probe) {
    let script = Script::new([bytes(content(0, "a")), bytes(content(1, "b")), Step::Stall]);
    let probe = script.probe();
    let script = Mutex::new(Some(script));
    let server = Server::start(move |_| {
        let script = script.lock().unwrap().take();
        server::stream(script.expect("asked once"))
    })
    .await;
    (server, probe)
}

async fn closed_soon(probe: &Probe) {
    #[expect(
        clippy::disallowed_methods,
        reason = "the server is another process in truth: real time counts"
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
        let completions = client(&server, http2).send(&two()).await.unwrap();
        let first = completions.choice(0).await.unwrap();
        let mut content = completions.choice(1).await.unwrap().content();
        drop((completions, first));
        assert_eq!(&*content.next().await.unwrap().unwrap(), "b");
        assert!(!probe.closed(), "a cursor holds it open");
        drop(content);
        closed_soon(&probe).await;
    }
}

#[tokio::test]
async fn cancelling_closes_the_connection() {
    for http2 in [false, true] {
        let (server, probe) = endless().await;
        let completions = client(&server, http2).send(&two()).await.unwrap();
        completions.cancel();
        closed_soon(&probe).await;

        let (server, probe) = endless().await;
        let completions = client(&server, http2).send(&two()).await.unwrap();
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
            gone.send("asked").unwrap();
            // No answer: the next thing that comes is the end.
            server::read_request(&mut socket).await;
            gone.send("gone").unwrap();
        }
    })
    .await;
    let mut seen = seen;
    let client = server.client();
    let sending = tokio::spawn(async move { client.send(&two()).await.map(drop) });
    assert_eq!(seen.recv().await, Some("asked"));
    sending.abort();
    let gone = tokio::time::timeout(SOON, seen.recv()).await;
    assert_eq!(gone, Ok(Some("gone")));
}

/// Stops the clock until it is dropped, so that no timer decides a test: the drain of a body ends by the body alone.
///
/// A paused clock advances by itself while the runtime has nothing to do, which waiting for a socket is, unless a blocking
/// task runs.
struct StoppedClock {
    _running: std::sync::mpsc::Sender<()>,
}

impl StoppedClock {
    fn new() -> Self {
        let (running, stopped) = std::sync::mpsc::channel::<()>();
        tokio::time::pause();
        tokio::task::spawn_blocking(move || stopped.recv().is_err());
        Self { _running: running }
    }
}

/// A body, and what resolves once its reader has dropped it.
fn watched(body: Body) -> (Completions, oneshot::Receiver<()>) {
    let (held, dropped) = oneshot::channel::<()>();
    let settings = body.settings();
    let bytes = body.map(move |read| {
        let _held = &held;
        read
    });
    (settings.from_byte_stream(bytes), dropped)
}

/// The body was read to its end, so that its connection is in the hands of tasks that are ready: these return it to the pool.
async fn returned(dropped: oneshot::Receiver<()>) {
    let _closed = dropped.await.unwrap_err();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn ten_requests_need_one_connection() {
    let _clock = StoppedClock::new();
    for http2 in [false, true] {
        let server = Server::start(|_| two_choices_answer()).await;
        let client = client(&server, http2);
        for _ in 0..10 {
            let (completions, dropped) = watched(client.open(&two()).await.unwrap());
            assert_eq!(texts(&completions).await, ["one", "two"]);
            completions.closed().await.unwrap();
            drop(completions);
            returned(dropped).await;
        }
        assert_eq!((server.requests().len(), server.connections()), (10, 1));
    }
}

#[tokio::test]
async fn streams_in_pieces_need_one_connection_too() {
    let _clock = StoppedClock::new();
    for http2 in [false, true] {
        let ends = Arc::new(Notify::new());
        let end = Arc::clone(&ends);
        let server = Server::start(move |_| {
            let pieces = [content(0, "a"), finish(0, "stop"), DONE.to_owned()];
            let steps = pieces.map(|piece| [bytes(piece), Step::Yield]);
            let end = Arc::clone(&end);
            // The end of the body comes when the client has read `[DONE]`.
            let end = stream::once(async move { end.notified().await });
            let end = end.filter_map(|()| async { None });
            server::frames(Script::new(steps.into_iter().flatten()).chain(end))
        })
        .await;
        let client = client(&server, http2);
        for _ in 0..10 {
            let request = Request::chat("m").user("Hi");
            let (completions, mut dropped) = watched(client.open(&request).await.unwrap());
            // The handles go as soon as the answer is there.
            let text = completions.first().await.unwrap().text().await.unwrap();
            assert_eq!(text, "a");
            completions.closed().await.unwrap();
            drop(completions);
            assert!(dropped.try_recv().is_err_and(|e| e == TryRecvError::Empty));
            ends.notify_one();
            returned(dropped).await;
        }
        assert_eq!((server.requests().len(), server.connections()), (10, 1));
    }
}

#[tokio::test]
async fn an_error_with_a_short_body_leaves_its_connection_usable() {
    let server = Server::start(|_| server::full(404, "application/json", "{}")).await;
    let client = server.client();
    for _ in 0..10 {
        let _refused = client.send(&two()).await.unwrap_err();
    }
    assert_eq!((server.requests().len(), server.connections()), (10, 1));
}
