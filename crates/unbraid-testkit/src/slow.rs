//! What an honest but slow client gets from a stream: the oracle that the library is compared with.
//!
//! It reads the whole stream at once, keeps every chunk as a `serde_json::Value`, and applies one rule after another
//! in the plainest way. It shares no code with the library. Speed does not matter here; being obviously right does.
//! The ids in the comments (S10, T07, …) name the rows of the catalogue of edge cases.

mod choice;
mod fault;
mod frames;
mod lenient;
mod tools;
mod usage;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::fixture::Options;
use frames::Frame;
use usage::Tally;

pub use choice::Choice;
pub use tools::{FunctionCall, ToolCall};

/// Reads a whole stream.
pub fn accumulate(bytes: &[u8], options: &Options) -> Outcome {
    let mut client = Client {
        fold: options.expect_choices == Some(1),
        ..Client::default()
    };
    for frame in frames::split(bytes, options.strict) {
        match frame {
            Frame::Chunk(chunk) => client.chunk(&chunk),
            Frame::Error(body) => client.outcome.error = Some(body),
            Frame::Done => client.outcome.done = true,
            Frame::Lost => client.outcome.lost += 1,
            Frame::Refused => client.outcome.refused = true,
        }
        // Nothing after the end counts, whatever came first: S26, X12.
        if client.outcome.is_over() {
            break;
        }
    }
    client.finish()
}

/// What came out of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The choices by their index.
    pub choices: BTreeMap<u32, Choice>,
    /// The same indices in order of first appearance.
    pub order: Vec<u32>,
    /// The usage that the server reported, merged field by field.
    pub usage: Option<Value>,
    /// The whole body of the error that ended the stream; the text when an `event: error` held no JSON.
    pub error: Option<Value>,
    /// Whether `[DONE]` came before any error.
    pub done: bool,
    /// How many events could not be read and were skipped (X13).
    pub lost: usize,
    /// Whether strict mode refused a line or a payload and stopped there.
    pub refused: bool,
}

impl Outcome {
    fn is_over(&self) -> bool {
        self.done || self.refused || self.error.is_some()
    }
}

#[derive(Debug, Default)]
struct Client {
    /// One choice was asked for, so that every index means 0 (E12).
    fold: bool,
    outcome: Outcome,
    tally: Tally,
}

impl Client {
    fn chunk(&mut self, chunk: &Value) {
        let elements = self.elements(chunk);
        self.tally.chunk(chunk, &elements);
        for (index, element) in elements {
            if !self.outcome.order.contains(&index) {
                self.outcome.order.push(index);
            }
            self.outcome
                .choices
                .entry(index)
                .or_default()
                .apply(element);
        }
        // The choices of an error chunk count, and then it is the end: X4.
        self.outcome.error = fault::in_chunk(chunk);
    }

    /// The choice elements of a chunk with the index each one belongs to; elements with an impossible index are left out.
    fn elements<'a>(&self, chunk: &'a Value) -> Vec<(u32, &'a Value)> {
        let Some(elements) = chunk.get("choices").and_then(Value::as_array) else {
            return Vec::new();
        };
        let index = |position| if elements.len() > 1 { position } else { 0 };
        let elements = elements
            .iter()
            .zip(0u32..)
            .filter(|(element, _)| element.is_object());
        elements
            .filter_map(|(element, at)| Some((self.index(element, index(at))?, element)))
            .collect()
    }

    fn index(&self, element: &Value, if_missing: u32) -> Option<u32> {
        if self.fold {
            return Some(0);
        }
        match element.get("index") {
            None | Some(Value::Null) => Some(if_missing),
            Some(Value::String(digits)) if digits.is_empty() => Some(if_missing),
            Some(Value::String(digits)) => digits.parse().ok(),
            Some(number) => number
                .as_u64()
                .and_then(|number| u32::try_from(number).ok()),
        }
    }

    fn finish(mut self) -> Outcome {
        self.outcome.usage = self.tally.finish(&self.outcome.choices);
        for choice in self.outcome.choices.values_mut() {
            choice.finish();
        }
        self.outcome
    }
}

/// The string under `key`, if it says anything: null and `""` are absent.
fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
