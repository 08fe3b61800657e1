//! Checks a response, and reads it as completions.

mod error_body;
mod ext;

use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::{
    Response,
    header::{CONTENT_TYPE, HeaderMap},
};
use tokio::time::timeout;
use unbraid::{BoxError, Dialect, TimedOut};

pub use self::ext::ResponseExt;
use crate::{
    body::{ByteStream, FirstByte, byte_stream},
    error::HttpError,
    limits::{MAX_ERROR_BODY_BYTES, MAX_ERROR_BODY_TIME},
    secrets::Secrets,
    status::{Head, StatusError},
};

/// A response with a status of success, whose body may contain completions.
pub(crate) struct CheckedResponse {
    /// The items that were read to find out whether the body is a web page.
    begin: Vec<Result<Bytes, BoxError>>,
    rest: ByteStream,
}

impl CheckedResponse {
    /// Turns a status other than success, and a web page, into an error.
    ///
    /// The content type alone decides nothing. The core distinguishes events from a single JSON response by their bytes, and
    /// some servers declare a stream as `text/html`, because their framework declares everything so. But a body that is
    /// declared as a page and begins with `<` is one.
    pub(crate) async fn new(
        response: Response,
        secrets: &Secrets,
        attempt: u32,
    ) -> Result<Self, HttpError> {
        let head = Head::of(&response);
        let mut rest = byte_stream(response);
        if !head.status.is_success() {
            let body_head = error_body::read(Vec::new(), rest).await;
            let status = StatusError::new(&head, &body_head, secrets, attempt);
            return Err(HttpError::Status(status));
        }
        if !is_declared_html(&head.headers) {
            let begin = Vec::new();
            return Ok(Self { begin, rest });
        }
        let mut begin = Vec::new();
        // A body that does not begin in time is passed on: the timeouts of the stream still apply.
        let end = timeout(
            MAX_ERROR_BODY_TIME,
            read_first_character(&mut rest, &mut begin),
        );
        let end = end.await.unwrap_or(None);
        if first_character(&begin) == Some(b'<') {
            let body_head = error_body::read(begin, rest).await;
            let page = StatusError::new(&head, &body_head, secrets, attempt);
            return Err(HttpError::UnexpectedHtml(page));
        }
        if end.is_some() {
            rest = stream::empty().boxed();
        }
        let begin = [Ok(Bytes::from(begin))].into_iter().chain(end).collect();
        Ok(Self { begin, rest })
    }

    /// Returns the body. Its first byte has to arrive within the timeout, if there is one.
    pub(crate) fn into_bytes(self, first_byte: Option<TimedOut>) -> FirstByte {
        let bytes = stream::iter(self.begin).chain(self.rest);
        FirstByte::new(bytes.boxed(), first_byte)
    }
}

/// Reads until the first character that is not white space. Returns the last item if the body ends before.
async fn read_first_character(
    bytes: &mut ByteStream,
    begin: &mut Vec<u8>,
) -> Option<Result<Bytes, BoxError>> {
    while first_character(begin).is_none() && begin.len() < MAX_ERROR_BODY_BYTES {
        match bytes.next().await {
            Some(Ok(chunk)) => begin.extend_from_slice(&chunk),
            Some(Err(error)) => return Some(Err(error)),
            None => return Some(Ok(Bytes::new())),
        }
    }
    None
}

fn is_declared_html(headers: &HeaderMap) -> bool {
    is_declared(headers, "text/html")
}

/// The dialect that the content type identifies (D05). Those of event streams and of JSON say nothing about it.
pub(crate) fn dialect_of(headers: &HeaderMap) -> Option<Dialect> {
    is_declared(headers, "application/vnd.amazon.eventstream").then_some(Dialect::Bedrock)
}

fn is_declared(headers: &HeaderMap, expected: &str) -> bool {
    let is_expected = |content_type: &str| {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        media_type.eq_ignore_ascii_case(expected)
    };
    let content_type = headers.get(CONTENT_TYPE);
    content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(is_expected)
}

fn first_character(begin: &[u8]) -> Option<u8> {
    let begin = begin.strip_prefix("\u{feff}".as_bytes()).unwrap_or(begin);
    begin
        .iter()
        .copied()
        .find(|byte| !byte.is_ascii_whitespace())
}
