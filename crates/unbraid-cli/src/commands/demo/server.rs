//! The demo's server: the invented model, which answers every question with the scenario.

use std::{convert::identity, iter::Peekable, sync::Arc, time::Duration, vec};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Method, Request, Response,
    body::{Frame, Incoming},
    header::{CACHE_CONTROL, HeaderValue},
};

use serde_json::Value;
use unbraid_core::{BoxError, Config, Demux};

use super::scenario::{self, MAX_CHOICES, MODELS_PATH, PATH, TimedEvent};
use crate::{
    input::Playback,
    server::{self, Body, RequestHandler},
};

/// How often a silent stream sends a comment, as providers do, so that a pause does not look like a lost connection.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Answers every request with the scenario, at the pace of the playback.
#[derive(Debug)]
pub(super) struct DemoHandler {
    pub(super) playback: Playback,
}

impl RequestHandler for DemoHandler {
    fn handle(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        async move { self.answer(request).await.unwrap_or_else(identity) }.boxed()
    }
}

impl DemoHandler {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Response<Body>> {
        if request.method() == Method::GET && request.uri().path() == MODELS_PATH {
            return Ok(server::json_text_response(scenario::models().to_string()));
        }
        if let Some(rejection) = server::reject_invalid(&request, &[PATH]) {
            return Err(rejection);
        }
        let (_, request) = server::read_object(request.into_body())
            .await
            .map_err(|(status, message)| server::error_response(status, message))?;
        let choices = request.get("n").and_then(Value::as_u64).unwrap_or(1);
        let choices = u32::try_from(choices).unwrap_or(MAX_CHOICES);
        Ok(match request.get("stream") {
            Some(Value::Bool(true)) => self.stream(choices),
            _ => whole(choices),
        })
    }

    fn stream(&self, choices: u32) -> Response<Body> {
        let player = Player {
            start: self.playback.now(),
            playback: self.playback.clone(),
            events: scenario::events(choices).into_iter().peekable(),
        };
        let body = stream::unfold(player, Player::next);
        let body = BodyExt::boxed_unsync(StreamBody::new(body));
        let mut response = server::response("text/event-stream", body);
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
}

/// The response to a request that does not ask for a stream.
fn whole(choices: u32) -> Response<Body> {
    let mut demux = Demux::new(Config::default());
    for event in scenario::events(choices) {
        demux.feed(event.data.as_bytes());
    }
    demux.finish();
    server::json_text_response(demux.aggregate_json())
}

/// The events that one request has not received yet.
struct Player {
    playback: Playback,
    /// When the request came, by the clock of the playback.
    start: Duration,
    events: Peekable<vec::IntoIter<TimedEvent>>,
}

impl Player {
    async fn next(mut self) -> Option<(Result<Frame<Bytes>, BoxError>, Self)> {
        let due = self.start + self.events.peek()?.time;
        let frame = tokio::select! {
            () = self.playback.sleep_until(due) => Bytes::from(self.events.next()?.data),
            () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b": keep-alive\n\n"),
        };
        Some((Ok(Frame::data(frame)), self))
    }
}
