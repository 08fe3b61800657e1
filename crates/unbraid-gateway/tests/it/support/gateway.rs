//! A gateway on a free port.

use std::{net::SocketAddr, num::NonZero};

use reqwest::{Method, RequestBuilder, Response};
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use unbraid_gateway::{Gateway, GatewayBuilder, Server};

use super::{Json, Reader, Upstream, request, soon};

pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Gateway,
    pub(crate) http: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    server: JoinHandle<()>,
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A gateway with default options.
pub(crate) async fn start(upstream: &Upstream) -> TestGateway {
    start_with(upstream, |builder| builder).await
}

pub(crate) async fn start_with(
    upstream: &Upstream,
    configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
) -> TestGateway {
    start_to(&upstream.url(), configure).await
}

/// A gateway in front of the upstream with this base URL.
pub(crate) async fn start_to(
    upstream: &str,
    configure: impl FnOnce(GatewayBuilder) -> GatewayBuilder,
) -> TestGateway {
    // The client of the tests has no provider of its own; another test may have installed it.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let gateway = configure(Gateway::builder(upstream)).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    // As `unbraid serve` does it: a stream and its readers may be on different threads.
    let workers = NonZero::new(2).unwrap();
    let server = Server::new(gateway.clone()).workers(workers);
    let server = tokio::spawn(async move {
        server
            .serve(listener, async { drop(stopped.await) })
            .await
            .unwrap();
    });
    TestGateway {
        address,
        gateway,
        http: reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .unwrap(),
        stop: Some(stop),
        server,
    }
}

impl TestGateway {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path))
    }

    pub(crate) fn method(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, self.url(path))
    }

    /// A POST of a chat completion.
    pub(crate) fn post(&self, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.post_to("/v1/chat/completions", body)
    }

    pub(crate) fn post_to(&self, path: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.http
            .post(self.url(path))
            .header("content-type", "application/json")
            .body(body)
    }

    /// Creates a stream with `n` choices. Returns its id and its POST.
    pub(crate) async fn create(&self, n: u32) -> (String, Reader) {
        let response = send(self.post(request(n))).await;
        assert_eq!(response.status(), 200);
        let id = response.headers()["x-stream-id"]
            .to_str()
            .unwrap()
            .to_owned();
        (id, Reader::new(response))
    }

    /// Opens a view.
    pub(crate) async fn view(&self, path: &str) -> Reader {
        let response = send(self.get(path)).await;
        assert_eq!(response.status(), 200, "{path}");
        Reader::new(response)
    }

    pub(crate) async fn status(&self, id: &str) -> Value {
        let response = send(self.get(&format!("/v1/streams/{id}"))).await;
        assert_eq!(response.status(), 200);
        response.value().await
    }

    /// Waits until a stream has ended, and returns its status.
    pub(crate) async fn ended(&self, id: &str) -> Value {
        super::eventually("the stream ends", async || {
            self.status(id).await["state"] == "ended"
        })
        .await;
        self.status(id).await
    }

    /// Begins the drain.
    pub(crate) fn drain(&mut self) {
        if let Some(stop) = self.stop.take() {
            stop.send(()).unwrap();
        }
    }

    /// Waits until the server ends, which must not panic.
    pub(crate) async fn finished(&mut self) {
        let ended = soon(&mut self.server).await;
        ended.expect("the server does not end").unwrap();
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.server.is_finished()
    }

    pub(crate) fn metric(&self, line: &str) -> f64 {
        let text = self.gateway.metrics();
        let value = text
            .lines()
            .find_map(|known| known.strip_prefix(line)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }
}

/// Sends a request that must be answered.
pub(crate) async fn send(request: RequestBuilder) -> Response {
    soon(request.send())
        .await
        .expect("the gateway does not answer")
        .unwrap()
}
