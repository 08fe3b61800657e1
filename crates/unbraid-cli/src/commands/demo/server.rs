//! The demo's server: it streams the scenario at its pace.

use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt, future::BoxFuture, stream};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    header::{CACHE_CONTROL, HeaderValue},
};
use tokio::time::Instant;

use super::scenario::{self, PATH, TimedEvent};
use crate::server::{self, Body, RequestHandler};

/// Answers every request with the scenario, at this many times its speed.
#[derive(Debug)]
pub(super) struct DemoHandler {
    pub(super) speed: f64,
}

impl RequestHandler for DemoHandler {
    fn handle(self: Arc<Self>, request: Request<Incoming>) -> BoxFuture<'static, Response<Body>> {
        let rejection = server::reject_invalid(&request, &[PATH]);
        async move { rejection.unwrap_or_else(|| self.stream()) }.boxed()
    }
}

impl DemoHandler {
    fn stream(&self) -> Response<Body> {
        let (start, speed) = (Instant::now(), self.speed);
        let body =
            stream::iter(scenario::events()).then(move |TimedEvent { time, data }| async move {
                tokio::time::sleep_until(start + time.div_f64(speed)).await;
                Ok(Frame::data(Bytes::from(data)))
            });
        let body = BodyExt::boxed_unsync(StreamBody::new(body));
        let mut response = server::response("text/event-stream", body);
        let no_cache = HeaderValue::from_static("no-cache");
        response.headers_mut().insert(CACHE_CONTROL, no_cache);
        response
    }
}
