//! What streams and readers of every kind leave in the gateway's tables: nothing.

use std::{sync::Arc, time::Duration};

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{advance, pause, sleep},
};
use tower_service::Service;
use unbraid_log::{
    LogStore,
    internal::scripted::{Engine, Fault},
};

use super::{Gateway, GatewayService};
use crate::{OnLogFailure, api_error::ApiError, views::Lines};

const DAY: Duration = Duration::from_secs(24 * 3600);

const CHUNK: &str =
    "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";

/// A provider that does what the model's name says.
async fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(answer(socket));
        }
    });
    format!("http://{address}/v1")
}

async fn answer(mut socket: TcpStream) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        if socket.read_buf(&mut request).await? == 0 {
            return Ok(());
        }
    }
    let request = String::from_utf8_lossy(&request);
    if request.contains("refuses") {
        let refusal = "HTTP/1.1 400 Bad\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
        return socket.write_all(refusal.as_bytes()).await;
    }
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    socket
        .write_all((head.to_owned() + CHUNK).as_bytes())
        .await?;
    if request.contains("completes") {
        return socket.write_all(b"data: [DONE]\n\n").await;
    }
    if request.contains("stalls") {
        // Until the gateway closes the connection.
        let _closed = socket.read_u8().await;
    }
    Ok(())
}

struct Client(GatewayService);

impl Client {
    async fn send(
        &mut self,
        method: Method,
        path: &str,
        lines: &[(&str, &str)],
        body: String,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("host", "localhost");
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        self.0
            .call(request.body(Body::from(body)).unwrap())
            .await
            .unwrap()
    }

    async fn post(&mut self, model: &str, lines: &[(&str, &str)]) -> Response<Body> {
        let lines = [&[("content-type", "application/json")], lines].concat();
        let body = format!(r#"{{"model":"{model}","n":1,"stream":true}}"#);
        self.send(Method::POST, "/v1/chat/completions", &lines, body)
            .await
    }

    async fn get(&mut self, path: &str) -> Response<Body> {
        self.send(Method::GET, path, &[], String::new()).await
    }

    /// One stream of each kind, with its readers. Returns the bodies that were left open.
    async fn one_of_each_kind(&mut self, number: usize) -> Vec<Body> {
        let mut left = Vec::new();
        for model in ["completes", "is cut"] {
            let answer = self.post(model, &[]).await;
            let path = path_of(&answer);
            read(answer).await;
            for view in ["", "/events", "/choices/0", "/choices/9"] {
                read(self.get(&format!("{path}{view}")).await).await;
            }
            let json = self.get(&format!("{path}/events?stream=false")).await;
            assert_eq!(json.status(), StatusCode::OK);
        }
        assert_eq!(
            self.post("refuses", &[]).await.status(),
            StatusCode::BAD_REQUEST
        );
        let key = number.to_string();
        for model in ["completes", "completes", "stalls"] {
            let answer = self.post(model, &[("idempotency-key", &key)]).await;
            let is_other = model == "stalls";
            assert_eq!(
                answer.status() == StatusCode::UNPROCESSABLE_ENTITY,
                is_other
            );
            read(answer).await;
        }
        let live = self
            .post("completes", &[("x-stream-durability", "live")])
            .await;
        read(live).await;
        for end in ["/choices/0", "/cancel", ""] {
            let answer = self.post("stalls", &[("prefer", "respond-async")]).await;
            let path = path_of(&answer);
            left.push(self.get(&format!("{path}/events")).await.into_body());
            let method = if end == "/cancel" {
                Method::POST
            } else {
                Method::DELETE
            };
            let ended = self
                .send(method, &format!("{path}{end}"), &[], String::new())
                .await;
            assert!(ended.status().is_success(), "{end}: {}", ended.status());
        }
        left.push(
            self.post("stalls", &[("x-stream-orphan-after", "0")])
                .await
                .into_body(),
        );
        left
    }
}

fn path_of(answer: &Response<Body>) -> String {
    let id = answer.headers().get("x-stream-id").expect("it has an id");
    format!("/v1/streams/{}", id.to_str().unwrap())
}

async fn read(answer: Response<Body>) -> Bytes {
    // A body may be cut, as that of the upstream was.
    let read = answer.into_body().collect().await;
    read.map(|body| body.to_bytes()).unwrap_or_default()
}

impl Gateway {
    /// The entries of every table that has one for each stream, request or reader.
    fn entries(&self) -> Vec<(&'static str, usize)> {
        let inner = &self.inner;
        let mut entries = inner.streams.entries().to_vec();
        entries.push(("pending", inner.pending.entries()));
        entries.push(("stalls", inner.stalls.entries()));
        entries.push(("bodies", inner.bodies.bytes()));
        entries.push(("log", inner.memory.as_ref().unwrap().streams()));
        entries
    }
}

/// Streams of every kind expire, and the tables are as they were before the first one. unbraid-log has the same test for the
/// tables of a log.
#[tokio::test]
async fn nothing_is_left_in_any_table_after_everything_has_expired() {
    let gateway = Gateway::builder(provider().await).build().unwrap();
    let mut client = Client(gateway.service());
    let mut metrics = Vec::new();
    for round in 0..3 {
        let mut left = Vec::new();
        for number in 0..20 {
            left.extend(client.one_of_each_kind(100 * round + number).await);
        }
        // An HTTP/2 connection has each of its answers watched.
        let watched = left.iter().map(|_| gateway.inner.stalls.register());
        let watched: Vec<_> = watched.collect();
        let entries = gateway.entries();
        let of = |name| entries.iter().find(|(known, _)| *known == name).unwrap().1;
        assert!(
            of("readers") >= 20 && of("stalls") >= 20 && of("log") >= 20,
            "{entries:?}"
        );
        drop((left, watched));
        gateway.all_ended().await;
        metrics.push(gateway.metrics().lines().count());
    }
    assert_eq!(
        metrics[0], metrics[2],
        "no label has a value for each stream"
    );
    pause();
    for _ in 0..3 {
        advance(DAY).await;
        // The next request frees what has expired, and each task that watches readers notices that they have left.
        client.get("/v1/streams/0000000000000000000000").await;
        sleep(Duration::from_secs(10)).await;
    }
    let entries = gateway.entries();
    assert!(entries.iter().all(|(_, count)| *count == 0), "{entries:?}");
    // Views are removed as others are opened. There were 60 streams with readers and more in each round.
    client.one_of_each_kind(1000).await;
    let views = gateway.inner.views.entries();
    assert!(views < 250, "{views} views");
}

/// The log answers every question in between.
#[tokio::test(start_paused = true)]
async fn a_log_that_takes_no_events_is_reported_once_and_so_is_its_end() {
    let lines = Lines::default();
    let _captured = tracing::subscriber::set_default(lines.clone());
    let log = Engine::new(Duration::from_secs(15)).gateway();
    let gateway = Gateway::builder("http://127.0.0.1:9/v1")
        .log(Arc::clone(&log) as Arc<dyn LogStore>)
        .on_log_failure(OnLogFailure::Fail)
        .build()
        .unwrap();
    for fault in [Fault::Full, Fault::Down] {
        let before = lines.count();
        for _ in 0..20 {
            log.script([None, Some(fault)]);
            let refused = gateway.check_log().await;
            assert_eq!(refused, Err(ApiError::LOG_UNAVAILABLE), "{fault:?}");
            sleep(Duration::from_secs(5)).await;
        }
        assert_eq!(lines.count() - before, 1, "{fault:?}");
        for _ in 0..2 {
            assert_eq!(gateway.check_log().await, Ok(()));
        }
        assert_eq!(lines.count() - before, 2, "{fault:?}");
        // A success counts for five seconds, and outages are reported every ten.
        sleep(Duration::from_secs(10)).await;
    }
}
