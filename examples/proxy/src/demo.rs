//! A provider without a key: it answers every request with a recording, at a readable pace.

use std::{convert::Infallible, time::Duration};

use axum::{
    Router,
    body::Body,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use futures::{StreamExt, stream};

/// A recorded stream, and the time between two of its events.
#[derive(Debug, Clone, Copy)]
pub struct Recording {
    stream: &'static str,
    pause: Duration,
}

impl Recording {
    /// A recording with its pace.
    #[must_use]
    pub fn new(stream: &'static str, pause: Duration) -> Self {
        Self { stream, pause }
    }
}

/// The provider's address: `/demo/chat/completions`.
pub fn demo(recording: Recording) -> Router {
    Router::new().route(
        "/demo/chat/completions",
        post(move || async move { answer(recording) }),
    )
}

fn answer(recording: Recording) -> Response {
    let events = recording.stream.split_inclusive("\n\n");
    let body = stream::iter(events).then(move |event| async move {
        tokio::time::sleep(recording.pause).await;
        Ok::<_, Infallible>(event)
    });
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    (kind, Body::from_stream(body.boxed())).into_response()
}
