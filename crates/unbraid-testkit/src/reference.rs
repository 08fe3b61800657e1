//! A simple reference client. Tests compare its results with those of the library.
//!
//! It reads the whole stream at once, keeps every chunk as a `serde_json::Value`, and applies one rule after another in
//! the simplest form. It shares no code with the library. It is written to be obviously correct, not fast.
//! The ids in the comments (S10, T7, …) are those of `docs/edge-cases.md`.

mod choice;
pub(crate) mod fault;
mod frames;
mod indices;
pub(crate) mod lenient;
mod merge;
mod ready;
mod status;
mod think;
mod tools;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::fixture::{Options, SplitThink};
use frames::Frame;
use indices::Indices;
use merge::Merged;
use usage::Tally;

pub use choice::Choice;
pub use ready::Early;
pub use tools::{FunctionCall, ToolCall};

/// Reads a whole stream.
pub fn accumulate(bytes: &[u8], options: &Options) -> Outcome {
    let mut client = Client {
        expected: options.expect_choices,
        fold: options.expect_choices == Some(1),
        split_think: options.split_think,
        merged: options.strict.then(Merged::default),
        reasoning_keys: options.reasoning_keys.clone(),
        ..Client::default()
    };
    for frame in frames::split(bytes, options.strict) {
        // S26, U13: after the end only usage counts, and only where the option is set.
        if client.outcome.done {
            if let (Frame::Chunk(chunk, _), true) = (frame, options.usage_after_done) {
                client.usage_after_done(&chunk);
            }
            continue;
        }
        match frame {
            Frame::Chunk(chunk, name) => client.chunk(&chunk, &name),
            Frame::Error(body) => client.outcome.error = Some(body),
            Frame::Done => client.outcome.done = true,
            Frame::Lost => client.outcome.lost += 1,
            Frame::Refused => client.outcome.refused = true,
        }
        // Nothing after an error counts.
        if client.outcome.is_over() {
            break;
        }
    }
    client.finish()
}

/// The result of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The choices by their index.
    pub choices: BTreeMap<u32, Choice>,
    /// Their indices in order of first appearance.
    pub order: Vec<u32>,
    /// The usage that the server reported, merged field by field.
    pub usage: Option<Value>,
    /// The whole body of the error that ended the stream, or its text if the `event: error` was not JSON.
    pub error: Option<Value>,
    /// Whether `[DONE]` was received before any error.
    pub done: bool,
    /// How many events could not be read and were skipped (X13).
    pub lost: usize,
    /// Whether strict mode rejected a line or a payload, which ends the stream.
    pub refused: bool,
    /// Warnings about the choices as a whole: `E12`, `E13` (only where indices were folded) and `E30`.
    pub codes: BTreeSet<&'static str>,
}

impl Outcome {
    fn is_over(&self) -> bool {
        self.refused || self.error.is_some()
    }
}

#[derive(Debug, Default)]
struct Client {
    /// How many choices were requested.
    expected: Option<u32>,
    /// One choice was requested, so every index means 0 (E12).
    fold: bool,
    split_think: SplitThink,
    /// In strict mode, the deltas so far.
    merged: Option<Merged>,
    /// The field names of reasoning, instead of those of R5.
    reasoning_keys: Option<Vec<String>>,
    outcome: Outcome,
    tally: Tally,
    indices: Indices,
    /// Whether a chunk has shown that this is a text completion (C19).
    is_text: bool,
}

impl Client {
    fn chunk(&mut self, chunk: &Value, name: &str) {
        if is_foreign(chunk, name) {
            return;
        }
        self.is_text |= choice::is_text_chunk(chunk);
        let keys = self.reasoning_keys.as_deref();
        let with_texts = self.is_text.then(|| choice::with_texts(chunk, keys));
        let chunk = with_texts.as_ref().unwrap_or(chunk);
        if !self.merges(chunk) {
            self.outcome.refused = true;
            return;
        }
        for (index, element) in Self::own_elements(chunk) {
            self.indices.note(index, element);
        }
        let elements = self.elements(chunk);
        let finishes = self.finishes(&elements);
        let brings = elements.iter().any(|(index, element)| {
            let keys = self.reasoning_keys.as_deref();
            let known = self.outcome.choices.get(index);
            known.is_none_or(|choice| choice.gains(element, keys))
        });
        self.tally.chunk(chunk, &elements, finishes, brings);
        let error = fault::in_value(chunk, name);
        for (index, element) in elements {
            if !self.outcome.order.contains(&index) {
                self.outcome.order.push(index);
            }
            let choice = self
                .outcome
                .choices
                .entry(index)
                .or_insert_with(|| Choice::new(self.split_think));
            let had_finished = choice.finish_reason.is_some();
            choice.apply(element, self.reasoning_keys.as_deref());
            // X4: a choice that finishes in the chunk of an error fails with it.
            let finishes = !had_finished && choice.finish_reason.is_some();
            choice.failed_with_stream |= error.is_some() && finishes;
        }
        // X4: the choices of the error's chunk count before the stream ends.
        self.outcome.error = error;
    }

    /// The choices that finish with these elements, in their order.
    fn finishes(&self, elements: &[(u32, &Value)]) -> Vec<u32> {
        let mut finished = Vec::new();
        for (index, element) in elements {
            let known = self.outcome.choices.get(index);
            let has_finished = known.is_some_and(|choice| choice.finish_reason.is_some());
            let is_first = !has_finished && !finished.contains(index);
            if is_first && choice::finish_reason(element).is_some() {
                finished.push(*index);
            }
        }
        finished
    }

    /// Applies usage after the end. Elements of unknown choices are ignored.
    fn usage_after_done(&mut self, chunk: &Value) {
        let known = |(index, _): &(u32, _)| self.outcome.choices.contains_key(index);
        let elements: Vec<_> = self.elements(chunk).into_iter().filter(known).collect();
        self.tally.chunk_after_done(chunk, &elements);
    }

    /// Whether the deltas of a chunk can be merged with the earlier ones. Only strict mode requires it.
    fn merges(&mut self, chunk: &Value) -> bool {
        let deltas: Vec<(u32, Value)> = self
            .elements(chunk)
            .into_iter()
            .filter_map(|(index, element)| Some((index, element.get("delta")?.clone())))
            .collect();
        let Some(merged) = &mut self.merged else {
            return true;
        };
        deltas
            .iter()
            .all(|(index, delta)| merged.delta(*index, delta))
    }

    /// The choice elements of a chunk with their index. Elements with an invalid index are skipped.
    fn elements<'a>(&self, chunk: &'a Value) -> Vec<(u32, &'a Value)> {
        let folded = |index| if self.fold { 0 } else { index };
        let elements = Self::own_elements(chunk).into_iter();
        elements
            .map(|(index, element)| (folded(index), element))
            .collect()
    }

    /// The same with the indices as the server sent them.
    fn own_elements(chunk: &Value) -> Vec<(u32, &Value)> {
        let Some(elements) = chunk.get("choices").and_then(Value::as_array) else {
            return Vec::new();
        };
        let index = |position| if elements.len() > 1 { position } else { 0 };
        let elements = elements
            .iter()
            .zip(0u32..)
            .filter(|(element, _)| element.is_object());
        elements
            .filter_map(|(element, position)| {
                Some((Self::own_index(element, index(position))?, element))
            })
            .collect()
    }

    fn own_index(element: &Value, if_missing: u32) -> Option<u32> {
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
        self.outcome.usage = std::mem::take(&mut self.tally).finish(&self.outcome.choices);
        let Outcome { error, done, .. } = &self.outcome;
        let stream_end = match (error, done) {
            (Some(_), _) => "server_error",
            (None, true) => "done_without_finish",
            (None, false) => "interrupted",
        };
        for choice in self.outcome.choices.values_mut() {
            choice.finish(stream_end);
        }
        let too_few = self.has_too_few();
        let ended_normally = self.outcome.error.is_none() && !self.outcome.refused;
        self.outcome.codes.extend(too_few.then_some("E30"));
        if !self.fold && self.indices.count_tokens(self.expected, ended_normally) {
            self.outcome.codes.insert("E12");
        }
        if self.fold && self.indices.interleave() {
            self.outcome.codes.insert("E13");
        }
        self.outcome
    }

    /// Whether a stream that the server ended has fewer choices than requested (E30).
    fn has_too_few(&self) -> bool {
        let Outcome {
            choices,
            usage,
            error,
            refused,
            ..
        } = &self.outcome;
        let too_few = self
            .expected
            .is_some_and(|expected| choices.len() < expected as usize);
        // A stream without choices ends with an error that reports it, unless the stream reported usage.
        let is_answered = !choices.is_empty() || (usage.is_some() && error.is_none());
        too_few && is_answered && !refused
    }
}

/// Whether a value between the chunks is one of another dialect, of which nothing is kept (D06).
fn is_foreign(value: &Value, name: &str) -> bool {
    let usage = |key: &str| value["usage"].get(key).is_some_and(fault::is_present);
    let counts_tokens = usage("prompt_tokens") || usage("completion_tokens");
    let is_other = !matches!(
        crate::dialects::identify_value(value, name),
        None | Some("chat")
    );
    let no_choices = value.get("choices").is_none();
    no_choices && is_other && !counts_tokens && fault::in_value(value, name).is_none()
}

/// The string under `key`; null and `""` count as absent.
fn text<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str().filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
