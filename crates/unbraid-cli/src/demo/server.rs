//! What the demo's server answers: the scenario, at its pace.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    header::{CACHE_CONTROL, HeaderValue},
};
use tokio::time::{self, Instant};

use super::scenario::{self, PATH, Piece};
use crate::serve::{self, Answers, Body};

/// Streams the scenario to whoever asks, so many times as fast as it was written.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) speed: f64,
}

impl Answers for Scenario {
    fn answer(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        let refused = serve::refused(&request, &[PATH]);
        async move { refused.unwrap_or_else(|| self.stream()) }.boxed()
    }
}

impl Scenario {
    fn stream(&self) -> Response<Body> {
        let (start, speed) = (Instant::now(), self.speed);
        let body = stream::iter(scenario::pieces()).then(move |Piece { at, data }| async move {
            time::sleep_until(start + at.div_f64(speed)).await;
            Ok(Frame::data(Bytes::from(data)))
        });
        let body = BodyExt::boxed_unsync(StreamBody::new(body));
        let mut response = serve::response("text/event-stream", body);
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
}
