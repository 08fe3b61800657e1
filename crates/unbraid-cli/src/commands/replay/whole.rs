//! The response that answers a request without streaming, and the framings of Gemini's streams.

use bytes::Bytes;
use serde_json::{Value, value::RawValue};
use unbraid_core::{
    Demux, Dialect,
    internal::{FrameLimits, Framer, compact},
};

use crate::native;

/// What a request without streaming gets.
#[derive(Debug, Clone)]
pub(super) enum Whole {
    Response(Bytes),
    /// The recording holds no answer: it is sent as it is.
    Recording,
    /// The answer has no form without streaming, for this reason.
    None(String),
}

impl Whole {
    /// The response of a recording that this demux has read.
    pub(super) fn new(demux: &Demux, bytes: &Bytes) -> Self {
        let dialect = demux.metadata().dialect();
        let is_own_body = !matches!(dialect, Some(Dialect::Chat | Dialect::Text))
            && matches!(serde_json::from_slice(bytes), Ok(Value::Object(_)));
        if demux.choices().next().is_none() || is_own_body {
            return Self::Recording;
        }
        if dialect == Some(Dialect::Responses) {
            return match response_object(bytes) {
                Some(response) => Self::Response(response.to_string().into()),
                None => Self::None("no event holds the response".to_owned()),
            };
        }
        match native::response(demux) {
            Ok(Some(response)) => Self::Response(response.into()),
            Ok(None) => Self::Recording,
            Err(error) => Self::None(error.to_string()),
        }
    }
}

/// The response in the last event of a stream of the Responses API. Some backends send it without some of its items, which are
/// then those of the events before (P10). Others send events without `type`, which the name of the event has, too (P02).
fn response_object(mut bytes: &[u8]) -> Option<Value> {
    let mut items: Vec<(u64, Value)> = Vec::new();
    let mut last = None;
    let limit = bytes.len();
    let mut framer = Framer::new(FrameLimits::new(limit, limit), false);
    while let Some(Ok(frame)) = framer.next(&mut bytes) {
        let Ok(mut event) = serde_json::from_slice::<Value>(frame.data) else {
            continue;
        };
        let name = frame.event.and_then(|name| std::str::from_utf8(name).ok());
        match event.get("type").and_then(Value::as_str).or(name) {
            Some("response.output_item.done") => {
                let index = event.get("output_index").and_then(Value::as_u64);
                let index = index.unwrap_or(items.len() as u64);
                items.push((index, event.get_mut("item")?.take()));
            }
            Some("response.completed" | "response.incomplete" | "response.failed") => {
                last = event.get_mut("response").map(Value::take);
            }
            _ => {}
        }
    }
    let mut response = last?;
    let output = response.get("output").and_then(Value::as_array);
    if output.map_or(0, Vec::len) < items.len() || output.is_none() {
        items.sort_by_key(|(index, _)| *index);
        let items = items.into_iter().map(|(_, item)| item).collect();
        response
            .as_object_mut()?
            .insert("output".into(), Value::Array(items));
    }
    Some(response)
}

/// The data of each server-sent event that is an object.
fn objects(bytes: &[u8]) -> impl Iterator<Item = &RawValue> {
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
    let data = lines.filter_map(|line| line.strip_prefix(b"data:"));
    let values =
        data.filter_map(|data| serde_json::from_slice::<&RawValue>(data.trim_ascii()).ok());
    values.filter(|value| value.get().starts_with('{'))
}

/// The chunks of a stream of Gemini in the framing that a request asks for: server-sent events with `alt=sse`, otherwise an
/// array. `None` if the recording is in that framing already.
pub(super) fn reframed(recording: &[Bytes], as_events: bool) -> Option<Vec<Bytes>> {
    let bytes = recording.concat();
    let is_array = bytes.trim_ascii_start().first() == Some(&b'[');
    if is_array != as_events {
        return None;
    }
    if is_array {
        let chunks: Vec<&RawValue> = serde_json::from_slice(&bytes).ok()?;
        // Compact, because data has no line ends.
        let event = |chunk: &&RawValue| format!("data: {}\r\n\r\n", compact(chunk.get())).into();
        return Some(chunks.iter().map(event).collect());
    }
    let chunks: Vec<&RawValue> = objects(&bytes).collect();
    let last = chunks.len().checked_sub(1)?;
    let element = |(at, chunk): (usize, &&RawValue)| {
        let start = if at == 0 { "[" } else { ",\r\n" };
        let end = if at == last { "]" } else { "" };
        Bytes::from(format!("{start}{}{end}", chunk.get()))
    };
    Some(chunks.iter().enumerate().map(element).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_of_gemini_has_two_framings() {
        let array = [Bytes::from(
            "[{\"a\": 1.50}\n,\n{\"b\":12345678901234567890123}]",
        )];
        let events = reframed(&array, true).unwrap();
        assert_eq!(
            events.concat(),
            b"data: {\"a\":1.50}\r\n\r\ndata: {\"b\":12345678901234567890123}\r\n\r\n"
        );
        assert!(reframed(&array, false).is_none());
        assert!(reframed(&events, true).is_none());
        let again = reframed(&events, false).unwrap();
        assert_eq!(
            again.concat(),
            b"[{\"a\":1.50},\r\n{\"b\":12345678901234567890123}]"
        );
    }

    #[test]
    fn p10_a_response_without_items_gets_those_of_the_stream() {
        let stream = "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":{\"id\":\"b\"}}\n\n\
            data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"a\"}}\n\n\
            data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"output\":[]}}\n\n";
        let response = response_object(stream.as_bytes()).unwrap();
        assert_eq!(response["output"][0]["id"], "a");
        assert_eq!(response["output"][1]["id"], "b");
        assert!(response_object(b"data: {}\n\n").is_none());
    }

    #[test]
    fn p02_events_without_a_type_have_it_in_their_name() {
        let stream = "event: response.output_item.done\ndata: {\"output_index\":0,\"item\":{\"id\":\"a\"}}\n\n\
            event: response.completed\ndata: {\"response\":{\"id\":\"r\"}}\n\n";
        let response = response_object(stream.as_bytes()).unwrap();
        assert_eq!(
            response,
            serde_json::json!({"id": "r", "output": [{"id": "a"}]})
        );
    }
}
