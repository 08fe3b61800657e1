//! The views of a stream.

use std::{borrow::Cow, sync::Arc};

use axum::{
    body::Body,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version,
        header::{ACCEPT, CONNECTION},
        request::Parts,
    },
};
use unbraid_core::ChoiceIndex;
use unbraid_log::StreamId;

use super::{
    Answer, NoBody,
    access::{self, Action, ChoicePath, IdPath},
    add_event_stream_headers, add_stream_headers, json_response, no_content,
};
use crate::{
    api_error::ApiError,
    gateway::Gateway,
    metrics::ViewKind,
    reader::{ReaderArgs, ReaderBody},
    streams::{self, ReaderPermit},
    view::{
        Format, Opened, RequestHeaders, Start, StreamView, Target, ViewError, ViewReader,
        ViewRequest,
    },
};

pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// `GET /v1/streams/{id}/events`
pub(super) async fn combined(
    State(gateway): State<Gateway>,
    IdPath(id): IdPath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    read(&gateway, &parts, &id, None).await
}

/// `GET /v1/streams/{id}/choices/{i}`
pub(super) async fn choice(
    State(gateway): State<Gateway>,
    ChoicePath(id, index): ChoicePath,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    read(&gateway, &parts, &id, Some(&index)).await
}

async fn read(gateway: &Gateway, parts: &Parts, id: &str, index: Option<&str>) -> Answer {
    let (id, found) = access::find(gateway, parts, id, Action::Read).await?;
    let choice = index.map(parse_index).transpose()?;
    let request = ViewRequest::parse(choice, parts.uri.query(), request_headers(&parts.headers))?;
    match request.format {
        Format::Json => {
            let text = json(gateway, found.view, request.target, true).await?;
            let mut response = json_response(StatusCode::OK, text);
            add_stream_headers(gateway, &id, response.headers_mut());
            Ok(response)
        }
        Format::Events => events(gateway, parts, &id, &found.view, &request).await,
    }
}

async fn events(
    gateway: &Gateway,
    parts: &Parts,
    id: &StreamId,
    view: &Arc<StreamView>,
    request: &ViewRequest,
) -> Answer {
    let reader = match open(gateway, view, request).await? {
        Opened::Events(reader) => reader,
        // `EventSource` stops at this.
        Opened::Complete => return Ok(no_content()),
    };
    let mut response = if parts.method == Method::HEAD {
        Response::new(Body::new(NoBody))
    } else {
        let permit = streams::connect(gateway, id, view)?;
        let kind = match request.target {
            Target::Combined => ViewKind::Combined,
            Target::Choice { .. } => ViewKind::Choice,
        };
        let resumed = matches!(request.start, Start::After(_));
        Response::new(reader_body(gateway, reader, permit, kind, resumed))
    };
    add_event_stream_headers(response.headers_mut());
    add_stream_headers(gateway, id, response.headers_mut());
    // A client that resumes finds its gateway anew, and one that reads to the end of the connection sees that of the view.
    // HTTP/2 has no such header: there a client finds another gateway after the GOAWAY of a drain, and until then may resume
    // at this one.
    if parts.version < Version::HTTP_2 {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    Ok(response)
}

/// Opens a view. A snapshot decodes the whole stream, which must not hold up other tasks.
async fn open(
    gateway: &Gateway,
    view: &Arc<StreamView>,
    request: &ViewRequest,
) -> Result<Opened, ApiError> {
    if request.start != Start::Snapshot {
        return Ok(view.open(request)?);
    }
    let (view, request) = (Arc::clone(view), request.clone());
    let opened = gateway
        .inner
        .decoding
        .run(move || view.open(&request))
        .await;
    Ok(opened.map_err(|_| ApiError::INTERNAL)??)
}

/// The body of a reader.
pub(super) fn reader_body(
    gateway: &Gateway,
    reader: ViewReader,
    permit: ReaderPermit,
    kind: ViewKind,
    resumed: bool,
) -> Body {
    let options = &gateway.inner.options;
    let args = ReaderArgs {
        permit,
        kind,
        resumed,
        ping: options.ping,
        max_age: options
            .max_connection_age
            .filter(|_| kind != ViewKind::Post),
        drain: gateway.inner.drain.clone(),
        stalls: gateway.inner.stalls.clone(),
        metrics: gateway.inner.metrics.clone(),
        gateway: gateway.clone(),
    };
    Body::new(ReaderBody::new(reader, args))
}

/// The message so far. It decodes the whole stream, which must not hold up other tasks.
pub(super) async fn json(
    gateway: &Gateway,
    view: Arc<StreamView>,
    target: Target,
    with_state: bool,
) -> Result<String, ApiError> {
    // First, because all who ask for the ends of a lost stream share one decoding.
    view.find_ends().await;
    let decode = move || {
        view.decode_ends();
        view.json(target, with_state)
    };
    let json = gateway.inner.decoding.run(decode).await;
    Ok(json.map_err(|_| ApiError::INTERNAL)??)
}

fn request_headers(headers: &HeaderMap) -> RequestHeaders<'_> {
    RequestHeaders {
        accept: accept(headers),
        last_event_id: headers.get(LAST_EVENT_ID).map(|value| value.as_bytes()),
    }
}

/// The value of `Accept`: of all its lines, which together are one list (RFC 9110, 5.3).
fn accept(headers: &HeaderMap) -> Option<Cow<'_, [u8]>> {
    let mut lines = headers.get_all(ACCEPT).iter().map(|line| line.as_bytes());
    let first = Cow::Borrowed(lines.next()?);
    Some(lines.fold(first, |all, line| [&all, line].join(&b","[..]).into()))
}

/// An index is a decimal without a sign or leading zeros, so that a choice has one URL. Anything else names no choice.
pub(super) fn parse_index(text: &str) -> Result<ChoiceIndex, ApiError> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    let is_canonical = is_decimal && (text == "0" || !text.starts_with('0'));
    let index = text.parse().ok().filter(|_| is_canonical);
    index.map(ChoiceIndex).ok_or(ApiError::CHOICE_NOT_FOUND)
}

impl From<ViewError> for ApiError {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::BadCursor => Self::BAD_CURSOR,
            ViewError::InvalidParameter(name) => Self::INVALID_PARAMETER.with_param(name),
            ViewError::ChoiceNotFound => Self::CHOICE_NOT_FOUND,
            ViewError::NotAcceptable => Self::NOT_ACCEPTABLE,
        }
    }
}
