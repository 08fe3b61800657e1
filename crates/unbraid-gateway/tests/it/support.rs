//! What the tests share: a scripted upstream, a gateway in front of it, and readers of its answers.

mod events;
mod gateway;
mod socket;
mod upstream;

use std::time::Duration;

pub(crate) use self::{
    events::{Event, Reader, parse_events},
    gateway::{TestGateway, send, start, start_to, start_with},
    socket::{answer, raw},
    upstream::{Seen, Step, Upstream, chunk, finish, json_body, sse, stream_of},
};

/// How long anything in these tests may take before it counts as hung.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for something that must happen.
#[track_caller]
pub(crate) fn soon<F: Future>(future: F) -> tokio::time::Timeout<F> {
    tokio::time::timeout(PATIENCE, future)
}

/// Polls a condition until it holds.
pub(crate) async fn eventually(what: &str, mut is_met: impl AsyncFnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !is_met().await {
        assert!(tokio::time::Instant::now() < deadline, "{what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Reads a JSON body. reqwest's own method is behind a feature that nothing else needs.
pub(crate) trait Json {
    async fn value(self) -> serde_json::Value;
}

impl Json for reqwest::Response {
    async fn value(self) -> serde_json::Value {
        serde_json::from_slice(&soon(self.bytes()).await.unwrap().unwrap()).unwrap()
    }
}

/// A request for a streamed answer with `n` choices.
pub(crate) fn request(n: u32) -> String {
    format!(
        r#"{{"model":"m","n":{n},"stream":true,"messages":[{{"role":"user","content":"Hi"}}]}}"#
    )
}
