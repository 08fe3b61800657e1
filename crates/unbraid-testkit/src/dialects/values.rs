//! Splits a whole stream into values, however they are framed.

use serde_json::{Deserializer, Value, json};

use super::messages::{self, Message};
use crate::reference::lenient;

/// One value of a stream.
#[derive(Debug, Clone, PartialEq)]
pub struct WireValue {
    /// The name of its event; empty if it has none.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// A whole stream.
#[derive(Debug, Default)]
pub struct Stream {
    /// The values before the end mark.
    pub values: Vec<WireValue>,
    /// Whether `[DONE]` ended it.
    pub done: bool,
    /// How many values were not JSON.
    pub lost: usize,
    /// Whether the end of the stream cut the last value (S21).
    pub is_cut: bool,
    /// Whether it consists of binary messages.
    pub is_binary: bool,
    /// Whether a binary message was damaged.
    pub is_broken: bool,
}

pub(super) fn read(bytes: &[u8]) -> Stream {
    if bytes.first() == Some(&0) {
        return binary(bytes);
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes)
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    if text.trim_start().starts_with(['{', '[']) {
        body(&text)
    } else {
        events(&text)
    }
}

/// JSON lines, an array, or one object.
fn body(text: &str) -> Stream {
    let mut stream = Stream::default();
    let values: Result<Vec<Value>, _> = Deserializer::from_str(text).into_iter().collect();
    let values = values.unwrap_or_else(|_| by_line(text, &mut stream));
    for value in values.into_iter().flat_map(|value| match value {
        Value::Array(items) => items,
        value => vec![value],
    }) {
        stream.push("", value);
    }
    stream
}

/// The lines that are values. An array that is cut has one of its elements in each line, or none.
fn by_line(text: &str, stream: &mut Stream) -> Vec<Value> {
    if text.trim_start().starts_with('[') {
        return elements(text.trim_start().trim_start_matches('['), stream);
    }
    let mut values = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (position, line) in lines.iter().enumerate() {
        match serde_json::from_str(line) {
            Ok(value) => values.push(value),
            Err(_) if line.trim().is_empty() => {}
            // The end of the stream cut the last line (S22).
            Err(_) if position + 1 == lines.len() && line.starts_with('{') => stream.is_cut = true,
            Err(_) => stream.lost += 1,
        }
    }
    values
}

/// The complete elements of an array without its bracket.
fn elements(text: &str, stream: &mut Stream) -> Vec<Value> {
    let mut values = Vec::new();
    let mut rest = text.trim_start_matches([',', ' ', '\n']);
    let mut is_after_comma = false;
    loop {
        let mut reader = Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = reader.next() else {
            stream.is_cut = rest.starts_with('{') || (rest.is_empty() && is_after_comma);
            return values;
        };
        let end = reader.byte_offset();
        values.push(value);
        is_after_comma = rest[end..].trim_ascii().ends_with(',');
        rest = rest[end..].trim_start_matches([',', ' ', '\n']);
    }
}

/// Whether a line continues the JSON before it.
fn continues(before: &str, line: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text);
    let is_open = |text: &str| read(text).is_err_and(|error| error.is_eof());
    let joined = format!("{before}\n{line}");
    is_open(before) && (is_open(&joined) || read(&joined).is_ok())
}

fn events(text: &str) -> Stream {
    let mut stream = Stream::default();
    let (mut name, mut data, mut bare) = (String::new(), Vec::new(), String::new());
    let mut second: Option<String> = None;
    let last = text.lines().count();
    let is_unfinished = !text.ends_with(['\n', '\r'])
        && text
            .lines()
            .last()
            .is_some_and(|line| !line.starts_with(':'));
    for (position, line) in text.lines().chain([""]).enumerate() {
        if stream.done {
            break;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if let Some(next) = second.take_if(|_| !value.trim().is_empty()) {
                    // S10: it is that of the next event, if this is not more of the same value.
                    if name == "error" || !continues(&data.join("\n"), value) {
                        stream.event(&name, &data.join("\n"));
                        data.clear();
                        name = next;
                    } else if next != "ping" {
                        name = next;
                    }
                }
                data.push(value.to_owned());
            }
            "event" if !data.is_empty() && !name.is_empty() => second = Some(value.to_owned()),
            "event" => value.clone_into(&mut name),
            // S15: an error as a field of its own.
            "error" if value.starts_with('{') && data.is_empty() => {
                field.clone_into(&mut name);
                data.push(value.to_owned());
            }
            "" if line.is_empty() => {
                name = second.take().filter(|next| next != "ping").unwrap_or(name);
                let lost = stream.lost;
                // The end of the stream cut an event before its data.
                if position == last && is_unfinished && data.iter().all(String::is_empty) {
                    stream.is_cut = true;
                }
                stream.event(&name, &data.join("\n"));
                if position == last && stream.lost > lost {
                    let line = data.last().map_or("", |line| line.trim());
                    stream.is_cut = line.is_empty() || !"[DONE]".starts_with(line);
                    stream.lost = lost;
                }
                name.clear();
                data.clear();
            }
            "id" | "retry" | "" => {}
            // G16: JSON without a field name.
            _ if !bare.is_empty() || line.trim_start().starts_with(['{', '[']) => {
                bare += line;
                bare += "\n";
            }
            _ => {}
        }
    }
    let error = serde_json::from_str(&bare)
        .ok()
        .filter(|value: &Value| value.get("error").is_some());
    if let (Some(value), false) = (error, stream.done) {
        stream.push("", value);
    }
    stream
}

fn binary(bytes: &[u8]) -> Stream {
    let mut stream = Stream {
        is_binary: true,
        ..Stream::default()
    };
    let (messages, is_broken) = messages::split(bytes);
    stream.is_broken = is_broken;
    for Message {
        kind,
        name,
        payload,
    } in messages
    {
        if kind == "event" {
            stream.event(&name, &String::from_utf8_lossy(&payload));
        } else {
            let error = json!({ "error": { "type": name } });
            stream.push("error", error);
        }
    }
    stream
}

impl Stream {
    fn event(&mut self, name: &str, data: &str) {
        match data.trim() {
            "[DONE]" => self.done = true,
            "" => {}
            text => match serde_json::from_str(text)
                .or_else(|error| lenient::parse(text).ok_or(error))
            {
                Ok(Value::Array(items)) => {
                    items.into_iter().for_each(|item| self.push(name, item));
                }
                Ok(value) => self.push(name, value),
                Err(_) => self.lost += 1,
            },
        }
    }

    fn push(&mut self, name: &str, value: Value) {
        // D09: the name says what an object is, and nothing of any other value.
        let name = if value.is_object() { name } else { "" };
        self.values.push(WireValue {
            name: name.to_owned(),
            value,
        });
    }
}
