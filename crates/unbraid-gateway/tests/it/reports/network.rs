//! Connections that others cut: a proxy, a client that is killed, and a log with a gap.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures::{StreamExt, future::BoxFuture, stream::BoxStream};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use unbraid_log::{
    Claim, ClaimKey, Command, LogError, LogStatus, LogStore, LogWriter, MemoryLog, MemoryOptions,
    Meta, Record, Seq, StreamId,
};

use crate::{
    create::error_code,
    support::{
        Reader, Step, Upstream, chunk, eventually, finish, request, send, soon, sse, start,
        start_with, stream_of,
    },
};

/// A proxy that cuts every connection after some time, whatever it carries.
async fn cutting_proxy(target: SocketAddr, after: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut near, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut far = TcpStream::connect(target).await?;
                let copied = tokio::io::copy_bidirectional(&mut near, &mut far);
                let _cut = tokio::time::timeout(after, copied).await;
                io::Result::Ok(())
            });
        }
    });
    address
}

fn paced(events: u32) -> Vec<Step> {
    let mut steps = vec![sse()];
    for number in 0..events {
        let data = chunk(number % 2, &format!("t{number} "));
        steps.push(Step::Send(format!("data: {data}\n\n")));
        steps.push(Step::Sleep(Duration::from_millis(5)));
    }
    let end = [finish(0), finish(1), "[DONE]".to_owned()];
    steps.extend(end.map(|data| Step::Send(format!("data: {data}\n\n"))));
    steps.push(Step::End);
    steps
}

/// `ag-ui` 2105: a proxy cuts each connection at a total age that pings do not reset. `Bifrost` 5010: it cuts idle ones.
#[tokio::test]
async fn a_proxy_that_cuts_every_connection_costs_no_event_and_no_request() {
    let upstream = Upstream::steps(paced(80)).await;
    let gateway = start(&upstream).await;
    let proxy = cutting_proxy(gateway.address, Duration::from_millis(60)).await;
    let url = |path: &str| format!("http://{proxy}{path}");
    let post = gateway.http.post(url("/v1/chat/completions"));
    let post = post
        .header("content-type", "application/json")
        .body(request(2));
    let response = send(post).await;
    let id = response.headers()["x-stream-id"]
        .to_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/streams/{id}/events");
    let mut reader = Reader::new(response);
    let (mut shown, mut connections) = (Vec::new(), 1);
    loop {
        while !reader.is_over {
            reader.rest_or_cut().await;
        }
        let complete = reader.text.rfind("\n\n").map_or(0, |end| end + 2);
        shown.extend(crate::support::parse_events(&reader.text[..complete]));
        if shown.last().is_some_and(|event| event.data == "[DONE]") {
            break;
        }
        let cursor = shown.last().and_then(|event| event.id).unwrap_or(0);
        let resume = gateway.http.get(url(&path));
        let resumed = soon(resume.header("last-event-id", cursor.to_string()).send()).await;
        // The cut may hit the head of a response.
        if let Ok(response) = resumed.unwrap() {
            assert_eq!(response.status(), 200);
            reader = Reader::new(response);
            connections += 1;
        }
    }
    assert!(connections > 3, "{connections}");
    assert_eq!(shown, gateway.view(&path).await.rest().await);
    assert_eq!(shown.len(), 83);
    assert_eq!(upstream.seen().len(), 1);
}

/// Section 11: `kill -9` of the client. Its system resets the connection, or nothing arrives from it any more.
#[tokio::test]
async fn a_client_that_is_killed_costs_a_reader_and_no_answer() {
    let gate = Arc::new(Semaphore::new(0));
    let upstream = Upstream::steps(vec![
        sse(),
        Step::Send(format!("data: {}\n\n", chunk(0, "a"))),
        Step::Gate(Arc::clone(&gate)),
        Step::Send(format!("data: {}\n\ndata: [DONE]\n\n", finish(0))),
        Step::End,
    ])
    .await;
    let gateway = start(&upstream).await;
    let mut socket = TcpStream::connect(gateway.address).await.unwrap();
    let body = request(1);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await.unwrap();
    let mut head = String::new();
    let id = loop {
        head.push(char::from(soon(socket.read_u8()).await.unwrap().unwrap()));
        let id = head.split_once("x-stream-id: ");
        if let Some((id, "")) = id.and_then(|(_, rest)| rest.split_once("\r\n")) {
            break id.to_owned();
        }
    };
    // The rest has not been read, so closing the socket sends a reset.
    drop(socket);
    eventually("the reader has left", async || {
        gateway.metric("unbraid_reader_disconnects_total{reason=\"client\"}") == 1.0
    })
    .await;
    gate.add_permits(1);
    assert_eq!(gateway.ended(&id).await["end"], "finished");
    let mut view = gateway.view(&format!("/v1/streams/{id}/events")).await;
    assert_eq!(view.rest().await.len(), 3);
}

/// A log that has lost a record that it had acknowledged.
struct LogWithGap(MemoryLog);

impl LogStore for LogWithGap {
    fn open<'a>(
        &'a self,
        id: &'a StreamId,
        meta: &'a Meta,
    ) -> BoxFuture<'a, Result<Box<dyn LogWriter>, LogError>> {
        self.0.open(id, meta)
    }

    fn read(&self, id: &StreamId, after: Seq) -> BoxStream<'static, Result<Record, LogError>> {
        let is_lost = |record: &Record| record.first() == Seq(3);
        let records = self.0.read(id, after);
        let kept = records.filter(move |record| {
            let is_kept = !record.as_ref().is_ok_and(is_lost);
            std::future::ready(is_kept)
        });
        kept.boxed()
    }

    fn status<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.0.status(id)
    }

    fn seal_lost<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<LogStatus, LogError>> {
        self.0.seal_lost(id)
    }

    fn erase<'a>(&'a self, id: &'a StreamId) -> BoxFuture<'a, Result<(), LogError>> {
        self.0.erase(id)
    }

    fn claim<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<Claim, LogError>> {
        self.0.claim(key, id)
    }

    fn release<'a>(
        &'a self,
        key: &'a ClaimKey,
        id: &'a StreamId,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.0.release(key, id)
    }

    fn send_command<'a>(
        &'a self,
        id: &'a StreamId,
        command: Command,
    ) -> BoxFuture<'a, Result<(), LogError>> {
        self.0.send_command(id, command)
    }

    fn commands(&self) -> BoxStream<'static, (StreamId, Command)> {
        self.0.commands()
    }

    fn commands_of(&self, id: &StreamId) -> BoxStream<'static, Command> {
        self.0.commands_of(id)
    }
}

/// `deer-flow` 4426: a gap is skipped silently.
#[tokio::test]
async fn a_gap_of_the_log_is_an_error_and_never_skipped() {
    let mut steps = vec![sse()];
    for number in 0..6 {
        let data = chunk(0, &format!("t{number}"));
        steps.push(Step::Send(format!("data: {data}\n\n")));
        steps.push(Step::Sleep(Duration::from_millis(30)));
    }
    steps.push(Step::Send(format!(
        "data: {}\n\ndata: [DONE]\n\n",
        finish(0)
    )));
    steps.push(Step::End);
    let upstream = Upstream::steps(steps).await;
    let log: Arc<dyn LogStore> = Arc::new(LogWithGap(MemoryLog::new(MemoryOptions::default())));
    let gateway = start_with(&upstream, |builder| builder.log(Arc::clone(&log))).await;
    // The producer's own gateway reads its memory. Others read the log.
    let other = start_with(&upstream, |builder| builder.log(Arc::clone(&log))).await;
    let post = send(gateway.post(request(1)).header("prefer", "respond-async")).await;
    let id = post.headers()["x-stream-id"].to_str().unwrap().to_owned();
    // A reader of the running stream gets what precedes the gap, or that there is one.
    let path = format!("/v1/streams/{id}/events");
    let response = send(other.get(&path)).await;
    if response.status() == 200 {
        let mut reader = Reader::new(response);
        while !reader.is_over {
            reader.rest_or_cut().await;
        }
        for lost in ["\"t2\"", "\"t3\"", "\"t5\"", "[DONE]"] {
            assert!(!reader.text.contains(lost), "{}", reader.text);
        }
    } else {
        assert_eq!(response.status(), 503);
    }
    eventually("the gap is reported", async || {
        let response = send(other.get(&path)).await;
        response.status() == 503 && error_code(response).await == "log_gap"
    })
    .await;
}

/// `openagents` 6058: reads are billed again on a replay. `LibreChat` 14344, `PageSpace` 1698, `omni` 327: a returning phone
/// starts a second generation.
#[tokio::test]
async fn reading_again_in_every_form_sends_nothing_upstream() {
    let upstream = Upstream::steps(stream_of(&[
        chunk(0, "a"),
        chunk(1, "x"),
        finish(0),
        finish(1),
        "[DONE]".into(),
    ]))
    .await;
    let gateway = start(&upstream).await;
    let (id, mut post) = gateway.create(2).await;
    post.rest().await;
    for path in [
        "",
        "/events",
        "/events?from=snapshot",
        "/events?from=tail",
        "/events?after=2",
        "/events?stream=false",
        "/choices/0",
        "/choices/1?part=content",
        "/choices/1?stream=false",
    ] {
        for method in ["GET", "HEAD"] {
            let request =
                gateway.method(method.parse().unwrap(), &format!("/v1/streams/{id}{path}"));
            let response = send(request).await;
            assert_eq!(response.status(), 200, "{path}");
            soon(response.bytes()).await.unwrap().unwrap();
        }
    }
    assert_eq!(upstream.seen().len(), 1);
}
