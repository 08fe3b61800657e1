//! One choice as server-sent events.

use std::{convert::Infallible, time::Duration};

use axum::response::{
    IntoResponse, Response,
    sse::{Event as ServerEvent, KeepAlive, Sse},
};
use futures::{Stream, StreamExt, future, stream};
use serde_json::json;
use unbraid::{ChoiceError, Completions, Event, Sequenced};

use crate::session::Viewer;

/// When a browser reconnects.
const RETRY: Duration = Duration::from_millis(500);

/// Comments in a silent stream, so that the server notices a closed connection.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The events of a choice after number `last`. The choice may not have begun yet.
pub(crate) fn response(
    completions: Completions,
    index: u32,
    viewer: Viewer,
    last: Option<u64>,
) -> Response {
    // Sent at once, so that the browser knows that it is connected.
    let hello = ServerEvent::default().retry(RETRY).comment("");
    let events = stream::once(events(completions, index)).flatten();
    let events = events
        .filter(move |event| future::ready(is_new(event, last)))
        .map(move |event| {
            let _until_the_stream_is_dropped = &viewer;
            Ok::<_, Infallible>(server_event(event))
        });
    let events = stream::once(future::ready(Ok(hello))).chain(events);
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    // Proxies in between must not collect the stream.
    let no = axum::http::HeaderValue::from_static("no");
    response.headers_mut().insert("x-accel-buffering", no);
    response
}

/// Waits for the choice. A stream that ends without it has no events, and the page gets an end.
async fn events(
    completions: Completions,
    index: u32,
) -> impl Stream<Item = Option<Result<Sequenced, ChoiceError>>> {
    let choice = completions.choice(index).await;
    let missing = choice.is_none().then_some(None);
    let events = choice.map(|choice| choice.events());
    stream::iter(events)
        .flatten()
        .map(Some)
        .chain(stream::iter(missing))
}

fn is_new(event: &Option<Result<Sequenced, ChoiceError>>, last: Option<u64>) -> bool {
    match (event, last) {
        (Some(Ok(event)), Some(last)) => event.seq > last,
        _ => true,
    }
}

fn server_event(event: Option<Result<Sequenced, ChoiceError>>) -> ServerEvent {
    let failed = |end: &str, message: &str| {
        ServerEvent::default()
            .event("end")
            .data(json!({ "end": end, "message": message }).to_string())
    };
    match event {
        Some(Ok(Sequenced { seq, event, .. })) => {
            let data = match &event {
                // The text of an error, beside its type.
                Event::End(end) if end.is_error() => {
                    json!({ "end": end.as_str(), "message": end.to_string() }).to_string()
                }
                event => serde_json::to_string(event).unwrap_or_else(|_| "{}".to_owned()),
            };
            ServerEvent::default()
                .id(seq.to_string())
                .event(event.as_str())
                .data(data)
        }
        Some(Err(error)) => failed(error.end().as_str(), &error.end().to_string()),
        None => failed("missing", "the answer has no such choice"),
    }
}
