//! Bytes become chunks, naively: the whole stream as one text, its lines, its events.

use serde_json::{Deserializer, Value, value::RawValue};

use super::lenient;

/// One thing that the stream says.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    Chunk(Value),
    /// An event named `error`, whatever its data looks like (S15).
    Error(Value),
    Done,
    /// Data that cannot be read (X13).
    Lost,
    /// Strict mode met something that the format does not allow.
    Refused,
}

pub(super) fn split(bytes: &[u8], strict: bool) -> Vec<Frame> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let is_json = text.trim_start().starts_with(['{', '[']) && !text.lines().any(is_field);
    match (is_json, strict) {
        (true, true) => vec![Frame::Refused],
        (true, false) => body(&text),
        (false, _) => events(&text, strict),
    }
}

fn is_field(line: &str) -> bool {
    let name = line.split_once(':').map_or(line, |(name, _)| name);
    line.starts_with(':') || ["data", "event", "id", "retry"].contains(&name)
}

/// A body that is no event stream: JSON lines, one array, or one error (S29, S30).
fn body(text: &str) -> Vec<Frame> {
    let values: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    match values {
        Ok(values) => values.into_iter().flat_map(chunks).collect(),
        Err(_) => text
            .lines()
            .flat_map(|line| whole(line).unwrap_or_else(|| vec![Frame::Lost]))
            .collect(),
    }
}

fn events(text: &str, strict: bool) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut event = Event::default();
    for line in text.lines() {
        if line.is_empty() {
            frames.extend(std::mem::take(&mut event).read(strict));
        } else if strict && (line.starts_with(':') || line.trim().is_empty()) {
            // Legal, and without a meaning (R03).
        } else if strict && !line.starts_with("data:") {
            frames.push(Frame::Refused);
            return frames;
        } else if line.trim() == "[DONE]" {
            // Without `data:` (S9).
            frames.extend(std::mem::take(&mut event).read(strict));
            frames.push(Frame::Done);
        } else {
            event.line(line);
        }
    }
    // The last event of a stream that ends without a blank line counts if nothing of it is missing (S21).
    frames.extend(event.read_cut(strict));
    frames
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    data: Vec<String>,
}

impl Event {
    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => self.data.push(value.to_owned()),
            "event" => value.clone_into(&mut self.name),
            _ => {} // Comments have an empty field name.
        }
    }

    fn read(&self, strict: bool) -> Vec<Frame> {
        let data = self.data.join("\n");
        match (self.name.as_str(), strict) {
            _ if self.data.is_empty() => Vec::new(),
            ("ping", _) => Vec::new(),
            ("error", _) => self.error(&data),
            (_, true) => strictly(&data),
            (_, false) => whole(&data)
                .or_else(|| self.line_by_line())
                .or_else(|| several(&data))
                .or_else(|| fused(&data))
                .unwrap_or_else(|| vec![Frame::Lost]),
        }
    }

    /// The event that the end of the stream cut: read if nothing of it is missing.
    fn read_cut(&self, strict: bool) -> Vec<Frame> {
        let is_whole = whole(&self.data.join("\n")).is_some() || self.line_by_line().is_some();
        if is_whole {
            self.read(strict)
        } else {
            Vec::new()
        }
    }

    /// Frames with a single newline between them (S10).
    fn line_by_line(&self) -> Option<Vec<Frame>> {
        let frames: Option<Vec<_>> = self.data.iter().map(|line| whole(line)).collect();
        frames.map(|frames| frames.concat())
    }

    /// The JSON of an error event or its text; when that is no JSON and has several lines, half a frame stands before
    /// the error, which is the last of them (S32).
    fn error(&self, data: &str) -> Vec<Frame> {
        if let Some(error) = lenient::parse(data) {
            return vec![Frame::Error(error)];
        }
        let Some((last, before)) = self.data.split_last() else {
            return Vec::new();
        };
        let before = before.iter().filter(|line| !line.trim().is_empty());
        let mut frames: Vec<_> = before
            .flat_map(|line| whole(line).unwrap_or_else(|| vec![Frame::Lost]))
            .collect();
        let error = lenient::parse(last).unwrap_or_else(|| last.as_str().into());
        frames.push(Frame::Error(error));
        frames
    }
}

/// What strict mode makes of data: by its grammar it has to be JSON.
fn strictly(data: &str) -> Vec<Frame> {
    match data.trim() {
        "[DONE]" | "\"[DONE]\"" => vec![Frame::Done],
        "" => Vec::new(),
        json if serde_json::from_str::<&RawValue>(json).is_err() => vec![Frame::Refused],
        json => lenient::parse(json).map_or_else(|| vec![Frame::Lost], chunks),
    }
}

/// Data that is one thing: the end, something to skip, or a JSON value.
fn whole(data: &str) -> Option<Vec<Frame>> {
    match data.trim() {
        "[DONE]" | "\"[DONE]\"" => Some(vec![Frame::Done]),
        "" | "ping" => Some(Vec::new()),
        comment if comment.starts_with(':') => Some(Vec::new()), // S5
        json => lenient::parse(json).map(chunks),
    }
}

/// Values one after another in the same data (S28).
fn several(data: &str) -> Option<Vec<Frame>> {
    let values: Result<Vec<Value>, _> = Deserializer::from_str(data).into_iter().collect();
    Some(values.ok()?.into_iter().flat_map(chunks).collect())
}

/// A frame that was cut off and the next one glued to it: the first is lost, the second is read (S27).
fn fused(data: &str) -> Option<Vec<Frame>> {
    let (_, last) = data.rsplit_once("data: ")?;
    let mut frames = vec![Frame::Lost];
    frames.extend(whole(last)?);
    Some(frames)
}

/// An array is taken apart (S29, X10); null, `""` and `{}` only keep the connection alive (S13).
fn chunks(value: Value) -> Vec<Frame> {
    match value {
        Value::Array(values) => values.into_iter().flat_map(chunks).collect(),
        Value::Object(fields) if fields.is_empty() => Vec::new(),
        Value::Object(_) => vec![Frame::Chunk(value)],
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) if text.trim() == "[DONE]" => vec![Frame::Done],
        _ => vec![Frame::Lost],
    }
}
