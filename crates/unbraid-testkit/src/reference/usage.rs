//! The usage that a server reports, at every place where servers report it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::choice::Choice;

/// The usage reported at each of the three places.
#[derive(Debug, Default)]
pub(super) struct Tally {
    envelope: Fields,
    groq: Fields,
    choices: BTreeMap<u32, Fields>,
    /// Usage in the chunk of the finish of a choice, as llama.cpp sends it in text completions, and mistral.rs (U16).
    at_finish: BTreeMap<u32, Fields>,
    /// Whether several choices finished in a chunk with usage.
    shared: bool,
    /// Whether usage was also sent without a finish, so that it does not belong to a choice.
    not_at_finish: bool,
    /// Usage with `choices: []` directly after the finish of one choice, as llama.cpp sends it.
    after_finish: BTreeMap<u32, Fields>,
    /// Whether usage with `choices: []` was also sent elsewhere, which llama.cpp does not do.
    elsewhere: bool,
    /// The choices that finished in the last chunk that brought anything.
    finished: Vec<u32>,
}

type Fields = Map<String, Value>;

impl Tally {
    /// Applies a chunk. `finishes` are the choices whose first finish reasons it has, and `brings` says whether it brings
    /// anything else of a choice.
    pub(super) fn chunk(
        &mut self,
        chunk: &Value,
        elements: &[(u32, &Value)],
        finishes: Vec<u32>,
        brings: bool,
    ) {
        let mut brings = brings || !finishes.is_empty();
        let usage = chunk.get("usage").and_then(Value::as_object);
        if let Some(usage) = usage.filter(|usage| has_values(usage)) {
            merge(&mut self.envelope, usage);
            self.record_place(elements.is_empty(), usage, &finishes);
            brings = true;
        }
        let groq = chunk.pointer("/x_groq/usage").and_then(Value::as_object);
        if let Some(usage) = groq.filter(|usage| has_values(usage)) {
            merge(&mut self.groq, usage);
        }
        for (index, element) in elements {
            let usage = element.get("usage").and_then(Value::as_object);
            if let Some(usage) = usage.filter(|usage| has_values(usage)) {
                merge(self.choices.entry(*index).or_default(), usage);
            }
        }
        // A chunk that brings nothing does not come between a finish reason and its usage.
        if brings {
            self.finished = finishes;
        }
    }

    /// A chunk after `[DONE]`. Its usage belongs to the whole stream, not to a choice.
    pub(super) fn chunk_after_done(&mut self, chunk: &Value, elements: &[(u32, &Value)]) {
        self.finished.clear();
        self.chunk(chunk, elements, Vec::new(), true);
        if chunk
            .get("usage")
            .and_then(Value::as_object)
            .is_some_and(has_values)
        {
            (self.not_at_finish, self.elsewhere) = (true, true);
        }
    }

    fn record_place(&mut self, is_alone: bool, usage: &Fields, finishes: &[u32]) {
        match finishes.last() {
            Some(index) => merge(self.at_finish.entry(*index).or_default(), usage),
            None => self.not_at_finish = true,
        }
        self.shared |= finishes.len() > 1;
        match self.finished.as_slice() {
            _ if !is_alone => {}
            [index] => merge(self.after_finish.entry(*index).or_default(), usage),
            _ => {
                let mut report = Fields::new();
                merge(&mut report, usage);
                self.elsewhere |= !self.after_finish.values().any(|known| *known == report);
            }
        }
    }

    /// Merges the places field by field. The envelope has priority over `x_groq`, and that over the choices (U6 to U8).
    /// Returns `None` if no usage was reported.
    pub(super) fn finish(self, answers: &BTreeMap<u32, Choice>) -> Option<Value> {
        let text_deltas: u64 = answers.values().map(|choice| choice.text_deltas).sum();
        // U16: at the finish of several choices, a sum below the received deltas belongs to the last choice only.
        let each_at_finish = !self.not_at_finish
            && (!self.shared || most(&self.envelope).is_some_and(|most| most < text_deltas));
        let fields = if each_at_finish && self.at_finish.len() > 1 && self.choices.is_empty() {
            add_up(self.envelope, &self.at_finish)
        } else if !self.elsewhere && self.after_finish.len() > 1 && self.choices.is_empty() {
            add_up(self.envelope, &self.after_finish)
        } else {
            self.by_places()
        };
        Some(Value::Object(fields)).filter(|usage| usage != &Value::Object(Fields::new()))
    }

    fn by_places(self) -> Fields {
        let mut fields = Fields::new();
        let has = |fields: &Fields, key| fields.get(key).is_some();
        let total = has(&self.envelope, "total_tokens") || has(&self.groq, "total_tokens");
        for usage in self.choices.values() {
            merge(&mut fields, usage);
        }
        if self.choices.len() > 1 {
            fields = add_up(fields, &self.choices);
        }
        merge(&mut fields, &self.groq);
        merge(&mut fields, &self.envelope);
        // A total that was computed here is recomputed from the merged fields.
        let sum = number(&fields, "prompt_tokens").zip(number(&fields, "completion_tokens"));
        if let (true, false, Some((prompt, completion))) = (self.choices.len() > 1, total, sum) {
            fields.insert("total_tokens".to_owned(), (prompt + completion).into());
        }
        fields
    }
}

/// Whether a usage has a value other than null; an object without any is absent, too (U2, U5).
fn has_values(usage: &Fields) -> bool {
    usage.values().any(|value| match value {
        Value::Object(details) => has_values(details),
        value => !value.is_null(),
    })
}

fn number(fields: &Fields, key: &str) -> Option<u64> {
    fields.get(key).and_then(Value::as_u64)
}

/// The largest number of completion tokens that a usage implies. Some servers count reasoning only in the details or
/// in the total.
fn most(usage: &Fields) -> Option<u64> {
    let completion = number(usage, "completion_tokens")?;
    let details = usage.get("completion_tokens_details");
    let reasoning = details.and_then(|details| details.get("reasoning_tokens")?.as_u64());
    let total = number(usage, "total_tokens").zip(number(usage, "prompt_tokens"));
    let rest = total.map_or(0, |(total, prompt)| total.saturating_sub(prompt));
    Some(rest.max(completion + reasoning.unwrap_or(0)))
}

/// Adds up the usage that each choice reports separately. The prompt is counted once, or each prompt of a list. Prompts of
/// different lengths show that it is a list (E15).
fn add_up(mut merged: Fields, each: &BTreeMap<u32, Fields>) -> Fields {
    if !each
        .values()
        .any(|usage| usage.contains_key("completion_tokens"))
    {
        return merged;
    }
    let sum = |key| -> u64 { each.values().filter_map(|usage| number(usage, key)).sum() };
    let prompts: BTreeSet<u64> = each
        .values()
        .filter_map(|usage| number(usage, "prompt_tokens"))
        .collect();
    if prompts.len() > 1 {
        merged.insert("prompt_tokens".to_owned(), sum("prompt_tokens").into());
        add_details(&mut merged, "prompt_tokens_details", each);
    }
    let completion = sum("completion_tokens");
    merged.insert("completion_tokens".to_owned(), completion.into());
    add_details(&mut merged, "completion_tokens_details", each);
    if let Some(prompt) = number(&merged, "prompt_tokens") {
        merged.insert("total_tokens".to_owned(), (prompt + completion).into());
    }
    merged
}

fn add_details(merged: &mut Fields, key: &str, each: &BTreeMap<u32, Fields>) {
    let mut sums = Fields::new();
    for details in each
        .values()
        .filter_map(|usage| usage.get(key)?.as_object())
    {
        for (name, value) in details {
            let known = sums.get(name).and_then(Value::as_u64);
            let value = match (known, value.as_u64()) {
                (Some(known), Some(more)) => (known + more).into(),
                _ => value.clone(),
            };
            sums.insert(name.clone(), value);
        }
    }
    if !sums.is_empty() {
        merged.insert(key.to_owned(), Value::Object(sums));
    }
}

/// Keeps the last value of each field. Null is ignored, and details are merged by the same rule (U2, U4, U5).
fn merge(target: &mut Fields, source: &Fields) {
    for (key, value) in source {
        match value {
            Value::Null => {}
            Value::Object(details) if !key.ends_with("_tokens") => {
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
                } else if number(target, key).is_none() && !is_dropped(value) {
                    target.insert(key.clone(), value.clone());
                }
            }
            // E24
            _ if (value == "" || value == &Value::Array(Vec::new()))
                && target.contains_key(key) => {}
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Whether a value in place of a count says nothing, or is negative.
fn is_dropped(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_f64().is_some_and(|number| number < 0.0),
        Value::String(text) => {
            text.trim().is_empty() || text.trim().parse().is_ok_and(|number: f64| number < 0.0)
        }
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// A number of tokens, which may be a float or a string. A negative one is dropped (U9).
fn count(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(digits) => serde_json::from_str(digits.trim()).ok()?,
        _ => value.clone(),
    };
    let integer = number
        .as_f64()
        .filter(|float| (0.0..9e15).contains(float) && float.fract() == 0.0);
    number
        .as_u64()
        .or_else(|| integer.map(|float| float as u64))
}
