//! The demo's server: it streams the scenario at its pace.

use std::{iter::Peekable, sync::Arc, time::Duration, vec};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    header::{CACHE_CONTROL, HeaderValue},
};

use unbraid_core::BoxError;

use super::scenario::{self, PATH, TimedEvent};
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
        let rejection = server::reject_invalid(&request, &[PATH]);
        async move { rejection.unwrap_or_else(|| self.stream()) }.boxed()
    }
}

impl DemoHandler {
    fn stream(&self) -> Response<Body> {
        let player = Player {
            start: self.playback.now(),
            playback: self.playback.clone(),
            events: scenario::events().into_iter().peekable(),
        };
        let body = stream::unfold(player, Player::next);
        let body = BodyExt::boxed_unsync(StreamBody::new(body));
        let mut response = server::response("text/event-stream", body);
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
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
