//! Answers that are not streams: refusals, and one whole JSON object.

use std::fmt;

use axum::{
    body::Body,
    http::{
        HeaderMap, HeaderValue, Response, StatusCode,
        header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
    },
};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt, stream};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use unbraid_core::limits::MAX_LINE_BYTES;

use crate::{
    api_error::ApiError,
    bodies::BodyMemory,
    generation::RefusedError,
    limits::{MAX_BLANK_BYTES, MAX_JSON_ANSWER, MAX_REFUSAL_BYTES},
    upstream::{Answer, ByteStream, bounded, read_error},
};

/// An answer that is passed through as it arrives.
pub(crate) struct WholeAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    is_multiplexed: bool,
    body: ByteStream,
}

/// An answer that was read to its end.
#[derive(Clone)]
pub(crate) struct BufferedAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    /// Whether its connection takes several requests at once.
    pub(super) is_multiplexed: bool,
    pub(crate) body: Bytes,
}

/// What a response is that does not say that it is an event stream.
pub(super) enum Kind {
    Json(WholeAnswer),
    Stream(ByteStream),
}

impl WholeAnswer {
    /// The answer, decompressed. One that the gateway cannot decompress is passed through: the client may be able to read it.
    pub(crate) fn of(answer: Answer) -> Self {
        let mut headers = answer.headers.clone();
        headers.remove(CONTENT_LENGTH);
        let (status, is_multiplexed) = (answer.status, answer.is_multiplexed());
        let body = if answer.has_unknown_encoding() {
            answer.into_raw().boxed()
        } else {
            headers.remove(CONTENT_ENCODING);
            answer.into_bounded()
        };
        Self {
            status,
            headers,
            is_multiplexed,
            body,
        }
    }

    /// Reads the answer to its end. Its bytes count as those of a request's body.
    pub(crate) async fn buffered(
        mut self,
        memory: &BodyMemory,
    ) -> Result<BufferedAnswer, ApiError> {
        let (mut bytes, mut held) = (BytesMut::new(), memory.hold(0));
        while let Some(read) = self.body.next().await {
            let read = read.map_err(|error| read_error(&error))?;
            if bytes.len() + read.len() > MAX_JSON_ANSWER {
                return Err(ApiError::UPSTREAM_INVALID);
            }
            held.add(read.len());
            bytes.extend_from_slice(&read);
        }
        Ok(BufferedAnswer {
            status: self.status,
            headers: self.headers,
            is_multiplexed: self.is_multiplexed,
            body: held.into_bytes(bytes),
        })
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from_stream(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

impl BufferedAnswer {
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(Body::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }

    /// Whether a refusal names the field that asks for usage. If the field is only quoted in it, the request is refused once more
    /// for the actual reason.
    pub(super) fn refuses_usage(&self) -> bool {
        let names_field = |name: &str| memchr::memmem::find(&self.body, name.as_bytes()).is_some();
        matches!(self.status.as_u16(), 400 | 404 | 422 | 501)
            && ["stream_options", "include_usage"]
                .into_iter()
                .any(names_field)
    }

    /// The error object of a stream whose request got this answer.
    pub(crate) fn refused_error(&self) -> RefusedError {
        let body = self.body.get(..MAX_REFUSAL_BYTES).unwrap_or(&self.body);
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error").unwrap_or(&body);
        let field = |name| error.get(name).cloned().unwrap_or(Value::Null);
        let message = match field("message") {
            Value::Null if error.is_string() => error.clone(),
            Value::Null => "the upstream refused the request".into(),
            message => message,
        };
        refused(
            self.status,
            &message,
            &field("type"),
            &field("param"),
            &field("code"),
        )
    }
}

impl From<BufferedAnswer> for WholeAnswer {
    fn from(answer: BufferedAnswer) -> Self {
        Self {
            status: answer.status,
            headers: answer.headers,
            is_multiplexed: answer.is_multiplexed,
            body: one_read(answer.body),
        }
    }
}

impl fmt::Debug for BufferedAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferedAnswer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl From<ApiError> for RefusedError {
    fn from(error: ApiError) -> Self {
        let body = error.body();
        let field = |name: &str| {
            body.pointer(&format!("/error/{name}"))
                .cloned()
                .unwrap_or_default()
        };
        refused(
            error.status,
            &field("message"),
            &field("type"),
            &field("param"),
            &field("code"),
        )
    }
}

fn refused(
    status: StatusCode,
    message: &Value,
    kind: &Value,
    param: &Value,
    code: &Value,
) -> RefusedError {
    let error = json!({
        "status": status.as_u16(), "message": message, "type": kind, "param": param, "code": code,
    });
    RefusedError(error.to_string())
}

/// Decides by its first byte whether a response is an event stream or JSON. Some servers declare one as the other.
pub(super) async fn distinguish(answer: Answer) -> Result<Kind, ApiError> {
    let (status, mut headers) = (answer.status, answer.headers.clone());
    let declared_json = answer.is_content_type("application/json");
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
    let (idle, stop) = (answer.idle_timeout, answer.stop.clone());
    let is_multiplexed = answer.is_multiplexed();
    let mut body = answer.into_decoded();
    let mut start = BytesMut::new();
    let mut is_json = declared_json;
    // The timeout is not part of the body: if it is an event stream, the generation ends it as `timed_out`.
    loop {
        let read = tokio::select! {
            read = timeout(idle, body.next()) => read,
            () = stop.cancelled() => return Err(ApiError::DRAINING),
        };
        let Some(read) = read.map_err(|_elapsed| ApiError::UPSTREAM_TIMEOUT)? else {
            break;
        };
        let bytes = read.map_err(|error| read_error(&error))?;
        let first = bytes.trim_ascii_start().first().copied();
        // Copied, because each read keeps the buffer of its connection: some servers send a blank line now and then for as long as
        // they work.
        start.extend_from_slice(&bytes);
        if let Some(first) = first {
            is_json = matches!(first, b'{' | b'[');
            break;
        }
        if start.len() > MAX_BLANK_BYTES {
            break; // it is what it is declared as, and bounded as that
        }
    }
    let body = one_read(start.freeze()).chain(body).boxed();
    if !is_json {
        return Ok(Kind::Stream(body));
    }
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(Kind::Json(WholeAnswer {
        status,
        headers,
        is_multiplexed,
        body: bounded(body, idle, stop),
    }))
}

/// A completion as an event stream: one chunk, and one with the usage, as a provider that streams sends it to a client that
/// asks for usage; `None` if it is not a completion.
pub(crate) fn as_stream(body: &[u8]) -> Option<Bytes> {
    in_chunks(body, take_usage)
}

/// A completion as an event stream of one chunk, which has the usage, too.
pub(super) fn as_one_chunk(body: &[u8]) -> Option<Bytes> {
    in_chunks(body, |_| String::new())
}

fn in_chunks(body: &[u8], take_usage: fn(&mut Map<String, Value>) -> String) -> Option<Bytes> {
    let mut completion: Value = serde_json::from_slice(body).ok()?;
    let object = completion.as_object_mut()?;
    for choice in object.get_mut("choices")?.as_array_mut()? {
        let choice = choice.as_object_mut()?;
        if let Some(mut message) = choice.shift_remove("message") {
            let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
            for (index, call) in calls.into_iter().flatten().enumerate() {
                if let Some(call) = call.as_object_mut() {
                    call.entry("index").or_insert_with(|| index.into());
                }
            }
            choice.insert("delta".into(), message);
        }
    }
    if object.get("object").and_then(Value::as_str) == Some("chat.completion") {
        object.insert("object".into(), "chat.completion.chunk".into());
    }
    let usage = take_usage(object);
    let line = format!("data: {completion}");
    // A longer line would end the stream.
    (line.len() <= MAX_LINE_BYTES).then(|| (line + &usage + "\n\ndata: [DONE]\n\n").into())
}

/// Moves the usage of a chunk to an event of its own, which is empty if there is none.
fn take_usage(chunk: &mut Map<String, Value>) -> String {
    let Some(usage) = chunk.get_mut("usage").filter(|usage| usage.is_object()) else {
        return String::new();
    };
    let usage = usage.take();
    chunk.shift_remove("usage");
    let mut last = Map::new();
    for name in ["id", "object", "created", "model"] {
        if let Some(value) = chunk.get(name) {
            last.insert(name.into(), value.clone());
        }
    }
    last.insert("choices".into(), json!([]));
    last.insert("usage".into(), usage);
    format!("\n\ndata: {}", Value::Object(last))
}

/// A body that consists of one read.
pub(crate) fn one_read(bytes: Bytes) -> ByteStream {
    stream::iter([Ok(bytes)]).boxed()
}

/// The number of choices of a whole completion, if it is one.
pub(crate) fn count_choices(body: &[u8]) -> Option<usize> {
    let completion: Value = serde_json::from_slice(body).ok()?;
    completion.get("choices")?.as_array().map(Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completion(content_bytes: usize) -> String {
        let message = json!({"role": "assistant", "content": "a".repeat(content_bytes)});
        json!({"object": "chat.completion", "choices": [{"index": 0, "message": message}]})
            .to_string()
    }

    #[test]
    fn a_completion_that_is_longer_than_a_line_of_a_stream_may_be_is_not_made_one() {
        assert!(as_stream(completion(1000).as_bytes()).is_some());
        let around = completion(0).len();
        assert!(as_stream(completion(MAX_LINE_BYTES - around - 100).as_bytes()).is_some());
        assert!(as_stream(completion(MAX_LINE_BYTES).as_bytes()).is_none());
        assert!(as_stream(b"[]").is_none());
    }
}
