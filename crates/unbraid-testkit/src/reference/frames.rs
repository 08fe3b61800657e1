//! Splits the whole stream into lines, events and chunks.

use serde_json::{Deserializer, Value, value::RawValue};

use super::{fault, lenient};

/// One item of the stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Frame {
    /// A value, and the name of its event.
    Chunk(Value, String),
    /// An event named `error`, with any data (S15).
    Error(Value),
    Done,
    /// Data that cannot be read (X13).
    Lost,
    /// Input that violates the format, in strict mode.
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

/// A body that is not an event stream: JSON lines, one array, or one error (S29, S30).
fn body(text: &str) -> Vec<Frame> {
    let values: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    match values {
        Ok(values) => values.into_iter().flat_map(chunks).collect(),
        Err(_) => text
            .lines()
            .flat_map(|line| single_item(line).unwrap_or_else(|| vec![Frame::Lost]))
            .collect(),
    }
}

fn events(text: &str, strict: bool) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut event = Event::default();
    for line in text.lines() {
        if line.is_empty() {
            event.rename();
            frames.extend(std::mem::take(&mut event).read(strict));
        } else if strict && (line.starts_with(':') || line.trim().is_empty()) {
            // R03: legal, without a meaning.
        } else if strict && !line.starts_with("data:") {
            frames.push(Frame::Refused);
            return frames;
        } else if line.trim() == "[DONE]" {
            // S9: without `data:`.
            frames.extend(std::mem::take(&mut event).read(strict));
            frames.push(Frame::Done);
        } else {
            if !strict && event.is_followed_by(line) {
                let name = event.next.take().unwrap_or_default();
                frames.extend(event.read(strict));
                event = Event::named_so(name);
            }
            event.line(line);
        }
    }
    event.rename();
    // S21: an event without its blank line at the end of the stream counts if its data is complete.
    frames.extend(event.read_cut(strict, text.ends_with('\n')));
    frames
}

#[derive(Debug, Default)]
struct Event {
    name: String,
    data: Vec<String>,
    /// A second name, after the data.
    next: Option<String>,
}

impl Event {
    fn line(&mut self, line: &str) {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if !value.trim().is_empty() {
                    self.rename();
                }
                self.data.push(value.to_owned());
            }
            "event" if !self.data.is_empty() && !self.name.is_empty() => {
                self.next = Some(value.to_owned());
            }
            // S16: a ping without a blank line before it does not rename the event before it.
            "event" if value == "ping" && !self.data.is_empty() => {}
            "event" => value.clone_into(&mut self.name),
            // S15: an error as a field of its own.
            "error" if value.starts_with('{') && self.data.is_empty() => {
                field.clone_into(&mut self.name);
                self.data.push(value.to_owned());
            }
            _ => {} // Comments have an empty field name.
        }
    }

    fn named_so(name: String) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// The last name of an event counts, unless it is that of a ping (S16).
    fn rename(&mut self) {
        if let Some(name) = self.next.take().filter(|name| name != "ping") {
            self.name = name;
        }
    }

    /// Whether a line is data of the next event, whose name has followed the data of this one (S10).
    fn is_followed_by(&self, line: &str) -> bool {
        let value = line.strip_prefix("data:").map(str::trim);
        let Some(value) = value.filter(|value| !value.is_empty() && self.next.is_some()) else {
            return false;
        };
        let lines = [&self.data[..], &[value.to_owned()]].concat();
        let (mut rest, mut last) = (&lines[..], 0);
        while !rest.is_empty() {
            last = Part::first_of(rest).1;
            rest = &rest[last..];
        }
        last == 1 || self.name == "error"
    }

    fn read(&self, strict: bool) -> Vec<Frame> {
        let data = self.data.join("\n");
        match (self.name.as_str(), strict) {
            _ if self.data.is_empty() => Vec::new(),
            ("error", _) => self.error(&data),
            (_, true) => self.named(strictly(&data)).collect(),
            (_, false) => {
                let parts = self.parts().into_iter();
                parts.flat_map(|part| self.named(part.frames)).collect()
            }
        }
    }

    /// Reads the event that the end of the stream cuts. Damaged data at its end is ignored, not lost.
    fn read_cut(&self, strict: bool, last_line_ended: bool) -> Vec<Frame> {
        let data = self.data.join("\n");
        if strict || self.name == "error" {
            let last = self
                .data
                .last()
                .is_some_and(|line| single_item(line).is_some());
            let counts = single_item(&data).is_some() || (last && !strict);
            return if counts {
                self.read(strict)
            } else {
                Vec::new()
            };
        }
        let mut parts = self.parts();
        let only = parts.len() == 1;
        if let Some(last) = parts.last_mut()
            && (only || last.is_begun || !last_line_ended)
        {
            while last.frames.last() == Some(&Frame::Lost) {
                last.frames.pop();
            }
        }
        parts
            .into_iter()
            .flat_map(|part| self.named(part.frames))
            .collect()
    }

    /// The frames of this event, with its name.
    fn named(&self, frames: Vec<Frame>) -> impl Iterator<Item = Frame> {
        frames.into_iter().map(|frame| match frame {
            Frame::Chunk(chunk, _) => Frame::Chunk(chunk, self.name.clone()),
            frame => frame,
        })
    }

    /// The values of the data lines, each of one or more lines (S10, S11), and the lines between them.
    fn parts(&self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut rest = &self.data[..];
        while !rest.is_empty() {
            let (part, taken) = Part::first_of(rest);
            parts.push(part);
            rest = &rest[taken..];
        }
        // S16: what the data of a ping says takes precedence over the name.
        let counts_tokens = |usage: &Value| {
            let mut keys = ["prompt_tokens", "completion_tokens"].iter();
            keys.any(|key| usage[*key].as_u64().is_some_and(|count| count > 0))
        };
        let is_chunk = |frame: &Frame| match frame {
            Frame::Chunk(chunk, _) => {
                chunk["choices"].is_array()
                    || counts_tokens(&chunk["usage"])
                    || fault::is_failure(&chunk["error"])
                    || chunk["object"] == "error"
                    || chunk["type"] == "error"
            }
            Frame::Done | Frame::Error(_) => true,
            Frame::Lost | Frame::Refused => false,
        };
        if self.name == "ping"
            && parts
                .first()
                .is_some_and(|part| !part.frames.iter().any(is_chunk))
        {
            parts.remove(0);
        }
        parts
    }

    /// The JSON of an error event, or its text. If several lines are not JSON together, the last one is the error and the
    /// others are the rest of an event that was cut (S32).
    fn error(&self, data: &str) -> Vec<Frame> {
        if let Some(error) = lenient::parse(data) {
            return vec![Frame::Error(error)];
        }
        let is_mark =
            |line: &String| matches!(single_item(line).as_deref(), Some([] | [Frame::Done]));
        let marks = self
            .data
            .iter()
            .rev()
            .take_while(|line| is_mark(line))
            .count();
        let data = &self.data[..self.data.len() - marks];
        let (data, marks) = if data.is_empty() {
            (&self.data[..], 0)
        } else {
            (data, marks)
        };
        if let Some(error) = lenient::parse(&data.join("\n")).filter(|_| marks > 0) {
            return vec![Frame::Error(error)];
        }
        let Some((last, before)) = data.split_last() else {
            return Vec::new();
        };
        let before = before.iter().filter(|line| !line.trim().is_empty());
        let mut frames: Vec<_> = before
            .flat_map(|line| single_item(line).unwrap_or_else(|| vec![Frame::Lost]))
            .collect();
        let error = lenient::parse(last).unwrap_or_else(|| last.as_str().into());
        frames.push(Frame::Error(error));
        frames
    }
}

/// Reads data in strict mode, which requires valid JSON.
fn strictly(data: &str) -> Vec<Frame> {
    match data.trim() {
        "[DONE]" | "\"[DONE]\"" => vec![Frame::Done],
        "" => Vec::new(),
        json if serde_json::from_str::<&RawValue>(json).is_err() => vec![Frame::Refused],
        json => lenient::parse(json).map_or_else(|| vec![Frame::Lost], chunks),
    }
}

/// Reads data that is a single item: the end, something to skip, or a JSON value.
fn single_item(data: &str) -> Option<Vec<Frame>> {
    let data = data.trim();
    let marks = ["[DONE]", "\"[DONE]\""];
    match data {
        _ if marks.contains(&data.strip_prefix("data:").map_or(data, str::trim)) => {
            Some(vec![Frame::Done])
        }
        "" | "ping" => Some(Vec::new()),
        comment if comment.starts_with(':') => Some(Vec::new()), // S5
        json => lenient::parse(json).map(chunks),
    }
}

/// Consecutive data lines of an event, and their frames.
struct Part {
    frames: Vec<Frame>,
    /// Whether more lines could complete a value.
    is_begun: bool,
}

impl Part {
    /// The lines of the first value, or the lines that begin a value which the next line does not continue.
    fn first_of(lines: &[String]) -> (Self, usize) {
        let separate = |count: usize, is_begun: bool| {
            let frames = lines[..count].iter().flat_map(|line| line_frames(line));
            let frames = frames.collect();
            (Self { frames, is_begun }, count)
        };
        for count in 1..=lines.len() {
            let joined = lines[..count].join("\n");
            let one = single_item(&joined).or_else(|| several(&joined).filter(|_| count > 1));
            if let Some(frames) = one {
                let is_begun = false;
                return (Self { frames, is_begun }, count);
            }
            if !lenient::begins(&joined) {
                return separate(usize::max(count - 1, 1), false);
            }
            if lines.get(count).is_some_and(|next| next.trim() == "[DONE]") {
                return separate(count, false);
            }
        }
        separate(lines.len(), true)
    }
}

/// Reads a single line.
fn line_frames(line: &str) -> Vec<Frame> {
    single_item(line)
        .or_else(|| several(line))
        .or_else(|| fused(line))
        .unwrap_or_else(|| vec![Frame::Lost])
}

/// Reads several objects in the same data (S28), and what follows them.
fn several(data: &str) -> Option<Vec<Frame>> {
    let mut frames = Vec::new();
    let (mut rest, mut is_first) = (data, true);
    loop {
        let mut objects = Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(object @ Value::Object(_))) = objects.next() else {
            break;
        };
        frames.extend(chunks(object));
        is_first = false;
        rest = rest[objects.byte_offset()..].trim_start();
        // S27: the next frame follows without a line end.
        rest = rest.strip_prefix("data:").map_or(rest, str::trim_start);
    }
    match rest.trim() {
        _ if is_first => return None,
        "" => {}
        "[DONE]" => frames.push(Frame::Done),
        rest => frames.extend(fused(rest).unwrap_or_else(|| vec![Frame::Lost])),
    }
    Some(frames)
}

/// Reads an event that was cut and joined to the next one: the first is lost, the second is read (S27).
fn fused(data: &str) -> Option<Vec<Frame>> {
    let (_, last) = data.rsplit_once("data: ")?;
    let mut frames = vec![Frame::Lost];
    frames.extend(single_item(last)?);
    Some(frames)
}

/// Splits an array into its values (S29, X10); null, `""` and `{}` are keep-alives (S13).
fn chunks(value: Value) -> Vec<Frame> {
    match value {
        Value::Array(values) => values.into_iter().flat_map(chunks).collect(),
        Value::Object(fields) if fields.is_empty() => Vec::new(),
        Value::Object(_) => vec![Frame::Chunk(with_lists(value), String::new())],
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) if text.trim() == "[DONE]" => vec![Frame::Done],
        _ => vec![Frame::Lost],
    }
}

/// The same chunk, with lists in place of the objects that Lua and PHP write for them, and the reverse (E22).
fn with_lists(mut chunk: Value) -> Value {
    to_list(chunk.get_mut("choices"));
    let choices = chunk.get_mut("choices").and_then(Value::as_array_mut);
    for choice in choices.into_iter().flatten() {
        let Some(delta) = choice.get_mut("delta") else {
            continue;
        };
        // The keys are those of the same calls in later chunks.
        for (key, call) in delta
            .get_mut("tool_calls")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            if let (Ok(position), Some(call)) = (key.parse::<u64>(), call.as_object_mut()) {
                call.entry("index").or_insert_with(|| position.into());
            }
        }
        to_list(delta.get_mut("tool_calls"));
        let content = delta.get_mut("content");
        to_list(
            content.filter(|content| content.as_object().is_some_and(|parts| !parts.is_empty())),
        );
        if delta.as_array().is_some_and(Vec::is_empty) {
            *delta = Value::Object(serde_json::Map::new());
        }
    }
    chunk
}

/// An object with positions as keys becomes a list of its values.
fn to_list(value: Option<&mut Value>) {
    let Some(value) = value else { return };
    let is_position = |key: &String| key.bytes().all(|byte| byte.is_ascii_digit());
    if let Value::Object(fields) = value
        && fields.keys().all(is_position)
    {
        let mut entries: Vec<_> = std::mem::take(fields).into_iter().collect();
        entries.sort_by_key(|(key, _)| key.parse::<u64>().ok());
        *value = entries.into_iter().map(|(_, entry)| entry).collect();
    }
}
