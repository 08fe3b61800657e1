//! The usage that a server reports, wherever it does.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::choice::finish_reason;

/// What was reported at each of the three places.
#[derive(Debug, Default)]
pub(super) struct Tally {
    envelope: Fields,
    groq: Fields,
    choices: BTreeMap<u32, Fields>,
    /// Usage beside the finish of this one choice, as llama.cpp sends it in text completions.
    at_finish: BTreeMap<u32, Fields>,
    /// Usage with choices came at other times too, or without: no choice has its own.
    not_at_finish: bool,
    /// Usage with `choices: []` right after the finish of this one choice, as llama.cpp sends it.
    after_finish: BTreeMap<u32, Fields>,
    /// Usage with `choices: []` came elsewhere too, so that it is not llama.cpp's way.
    elsewhere: bool,
    /// The choice that finished in the chunk before, if exactly one did.
    finished: Option<u32>,
}

type Fields = Map<String, Value>;

impl Tally {
    pub(super) fn chunk(&mut self, chunk: &Value, elements: &[(u32, &Value)]) {
        if let Some(usage) = chunk.get("usage").and_then(Value::as_object) {
            merge(&mut self.envelope, usage);
            self.note_place(chunk, usage, only_finish(elements));
        }
        if let Some(usage) = chunk.pointer("/x_groq/usage").and_then(Value::as_object) {
            merge(&mut self.groq, usage);
        }
        for (index, element) in elements {
            if let Some(usage) = element.get("usage").and_then(Value::as_object) {
                merge(self.choices.entry(*index).or_default(), usage);
            }
        }
        self.finished = only_finish(elements);
    }

    /// A chunk that came after `[DONE]`: what it says of the whole stream is no choice's own.
    pub(super) fn chunk_after_done(&mut self, chunk: &Value, elements: &[(u32, &Value)]) {
        self.finished = None;
        self.chunk(chunk, elements);
        if chunk
            .get("usage")
            .and_then(Value::as_object)
            .is_some_and(|usage| !usage.is_empty())
        {
            (self.not_at_finish, self.elsewhere) = (true, true);
        }
    }

    fn note_place(&mut self, chunk: &Value, usage: &Fields, finishes: Option<u32>) {
        let is_alone = chunk
            .get("choices")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty);
        if usage.is_empty() {
            return;
        }
        match finishes {
            Some(index) => merge(self.at_finish.entry(index).or_default(), usage),
            None => self.not_at_finish = true,
        }
        match self.finished {
            _ if !is_alone => {}
            Some(index) => merge(self.after_finish.entry(index).or_default(), usage),
            None => self.elsewhere = true,
        }
    }

    /// The envelope is trusted first, then `x_groq`, then the choices (U6 to U8); none reported is none.
    pub(super) fn finish(mut self) -> Option<Value> {
        let fields = if !self.not_at_finish && self.at_finish.len() > 1 {
            add_up(self.envelope, &self.at_finish)
        } else if !self.elsewhere && self.after_finish.len() > 1 {
            add_up(self.envelope, &self.after_finish)
        } else if !self.envelope.is_empty() {
            self.envelope
        } else if !self.groq.is_empty() {
            self.groq
        } else if self.choices.len() > 1 {
            let mut all = Fields::new();
            self.choices
                .values()
                .for_each(|usage| merge(&mut all, usage));
            add_up(all, &self.choices)
        } else {
            self.choices
                .pop_first()
                .map(|(_, usage)| usage)
                .unwrap_or_default()
        };
        Some(Value::Object(fields)).filter(|usage| usage != &Value::Object(Fields::new()))
    }
}

fn only_finish(elements: &[(u32, &Value)]) -> Option<u32> {
    let finished = elements
        .iter()
        .filter(|(_, element)| finish_reason(element).is_some());
    let finished: BTreeSet<u32> = finished.map(|(index, _)| *index).collect();
    finished.first().copied().filter(|_| finished.len() == 1)
}

/// Usage that each choice reports for itself: the completions are added up, the prompt is counted once.
fn add_up(mut merged: Fields, each: &BTreeMap<u32, Fields>) -> Fields {
    let number = |fields: &Fields, key| fields.get(key).and_then(Value::as_u64);
    let completion: u64 = each
        .values()
        .filter_map(|usage| number(usage, "completion_tokens"))
        .sum();
    merged.insert("completion_tokens".to_owned(), completion.into());
    if let Some(prompt) = number(&merged, "prompt_tokens") {
        merged.insert("total_tokens".to_owned(), (prompt + completion).into());
    }
    merged
}

/// The last value of each field wins; null never does, and details are merged alike (U2, U4, U5).
fn merge(target: &mut Fields, source: &Fields) {
    for (key, value) in source {
        match value {
            Value::Null => {}
            Value::Object(details) => {
                let kept = target
                    .entry(key)
                    .or_insert_with(|| Value::Object(Fields::new()));
                match kept {
                    Value::Object(kept) => merge(kept, details),
                    other => *other = value.clone(),
                }
            }
            _ if key.ends_with("_tokens") => {
                if let Some(count) = count(value) {
                    target.insert(key.clone(), count.into());
                }
            }
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A number of tokens, also as a float or a string; a negative one is dropped (U9).
fn count(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(digits) => serde_json::from_str(digits.trim()).ok()?,
        _ => value.clone(),
    };
    let whole = number
        .as_f64()
        .filter(|float| *float >= 0.0 && float.fract() == 0.0);
    number.as_u64().or_else(|| whole.map(|float| float as u64))
}
