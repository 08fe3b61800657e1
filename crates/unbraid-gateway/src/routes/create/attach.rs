//! Answers a POST from a stream that is open: as events, as JSON, or with 202.

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, LAST_MODIFIED,
            LINK, LOCATION,
        },
    },
};
use unbraid_log::{Seq, StreamId};

use crate::{
    gateway::Gateway,
    metrics::ViewKind,
    routes::{
        Answer, add_event_stream_headers, add_stream_headers, aggregate, json_response, no_content,
        read::reader_body, status, stream_url,
    },
    streams::{self, ReaderPermit},
    view::{Opened, ViewRequest},
};

/// What the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All events, or those after a cursor.
    Events(Option<Seq>),
    /// The whole answer.
    Json,
    /// 202 with the status.
    Async,
}

/// How a request attaches to a stream. It holds nothing of the request's body: a client that asked for JSON waits for the whole
/// answer.
pub(super) struct Attach {
    pub(super) gateway: Gateway,
    pub(super) id: StreamId,
    pub(super) form: Form,
    /// The headers of the upstream's response, for the request that opened the stream.
    pub(super) headers: HeaderMap,
    /// Whether another request with the same idempotency key opened it.
    pub(super) replayed: bool,
    /// The place among the stream's readers, if the request has one already.
    pub(super) reader: Option<ReaderPermit>,
}

const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

impl Attach {
    pub(super) async fn answer(self) -> Answer {
        let Self {
            gateway,
            id,
            form,
            headers,
            replayed,
            reader,
        } = self;
        let gateway = &gateway;
        let found = gateway.inner.views.find(&id, |_| true).await?;
        let connect = || streams::connect(gateway, &id, &found.view);
        let mut response = match form {
            Form::Events(after) => match found.view.open(&ViewRequest::of_post(after))? {
                Opened::Complete => no_content(),
                Opened::Events(events) => {
                    let permit = reader.map_or_else(connect, Ok)?;
                    let resumed = after.is_some();
                    let body = reader_body(gateway, events, permit, ViewKind::Post, resumed);
                    let mut response = Response::new(body);
                    *response.headers_mut() = without_body_headers(headers);
                    add_event_stream_headers(response.headers_mut());
                    response
                }
            },
            Form::Json => {
                // The client that waits counts as a reader.
                let _reader = reader.map_or_else(connect, Ok)?;
                let (status, body) = aggregate::wait(gateway, &found.view).await?;
                let mut response = json_response(status, body);
                let own = std::mem::replace(response.headers_mut(), without_body_headers(headers));
                response.headers_mut().extend(own);
                response
            }
            Form::Async => {
                let status = status::current(gateway, &id, &found.view, status::RUNNING).await;
                let mut response = json_response(StatusCode::ACCEPTED, status.body);
                let headers = response.headers_mut();
                headers.insert(
                    PREFERENCE_APPLIED,
                    HeaderValue::from_static("respond-async"),
                );
                if let Ok(url) = HeaderValue::try_from(stream_url(gateway, &id)) {
                    headers.insert(LOCATION, url);
                }
                response
            }
        };
        add_stream_headers(gateway, &id, response.headers_mut());
        if replayed {
            mark_replayed(&mut response);
        }
        Ok(response)
    }
}

/// Says that another request with the same key did the work.
pub(super) fn mark_replayed(response: &mut Response<Body>) {
    let headers = response.headers_mut();
    headers.insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
}

/// The headers that describe the upstream's own body do not describe ours.
fn without_body_headers(mut headers: HeaderMap) -> HeaderMap {
    for name in [
        CONTENT_TYPE,
        CONTENT_LENGTH,
        CONTENT_ENCODING,
        ETAG,
        LAST_MODIFIED,
        CACHE_CONTROL,
        LINK,
        LOCATION,
    ] {
        headers.remove(name);
    }
    headers
}
