//! A running proxy, with a provider that answers from a recording.

use std::{
    collections::BTreeMap,
    future::pending,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    http::header::CONTENT_TYPE,
    response::IntoResponse,
    routing::post,
};
use futures::{StreamExt, stream};
use tokio::{net::TcpListener, sync::watch, time::timeout};
use unbraid::{Config, Demux};
use unbraid_http::Client;
use unbraid_proxy_example::{Proxy, Recording, demo};

pub(crate) const HAIKUS: &str = include_str!("../../../streams/haikus.sse");

/// The longest that a test waits for something.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A running proxy.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) proxy: Proxy,
}

/// Starts a proxy in front of a provider, which is served at `/demo`.
pub(crate) async fn start(provider: Router, grace: Duration) -> Running {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let client = Client::builder()
        .base_url(format!("http://{address}/demo"))
        .proxy_from_env(false)
        .retries(0)
        .build()
        .unwrap();
    let proxy = Proxy::new(client, "m").grace(grace);
    let app = proxy.clone().router().merge(provider);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Running { address, proxy }
}

/// A provider that replays a recording with this pause before each event.
pub(crate) fn recorded(stream: &'static str, pause_ms: u64) -> Router {
    demo(Recording::new(stream, Duration::from_millis(pause_ms)))
}

/// A provider that begins both choices and then stays silent, and a value that turns true when its connection is closed.
pub(crate) fn silent() -> (Router, watch::Receiver<bool>) {
    let (closed, was_closed) = watch::channel(false);
    let provider = Router::new().route(
        "/demo/chat/completions",
        post(async move || {
            let guard = OnDrop(closed.clone());
            let first = stream::iter([0, 1]).map(|index| {
                let delta = r#"{"content":"Once"}"#;
                Ok::<_, std::io::Error>(Bytes::from(format!(
                    "data: {{\"choices\":[{{\"index\":{index},\"delta\":{delta}}}]}}\n\n"
                )))
            });
            let silence = stream::once(async move {
                let _guard = guard;
                pending().await
            });
            let body = Body::from_stream(first.chain(silence));
            ([(CONTENT_TYPE, "text/event-stream")], body).into_response()
        }),
    );
    (provider, was_closed)
}

struct OnDrop(watch::Sender<bool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}

/// The texts of a recording's choices, as another reader understands them.
pub(crate) fn texts(recording: &str) -> BTreeMap<u32, String> {
    let mut demux = Demux::new(Config::default());
    demux.feed(recording.as_bytes());
    demux.finish();
    let choices = demux.choices();
    choices
        .map(|choice| (choice.index().0, choice.message().content))
        .collect()
}

impl Running {
    /// Waits until no choice of any request is kept.
    pub(crate) async fn all_freed(&self) {
        let freed = async {
            let mut ticks = tokio::time::interval(Duration::from_millis(5));
            while self.proxy.open_requests() > 0 {
                ticks.tick().await;
            }
        };
        timeout(PATIENCE, freed)
            .await
            .expect("all choices are freed");
    }
}
