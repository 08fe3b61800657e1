//! Reported usage: merged field by field, the last value of each, never summed (U1 to U11).

use serde_json::{Map, Value};

use crate::ChoiceIndex;

/// Where the figures come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UsageSource {
    /// The server reported none, and none was estimated.
    #[default]
    Absent,
    /// The server reported it.
    Reported,
    /// It was counted here.
    Estimated,
    /// Some figures were reported and others counted.
    Mixed,
}

/// Tokens of a completion. What is not known is `None`, never 0.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Options, UsageSource};
///
/// let mut demux = Demux::new(Options::default());
/// demux.feed(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2,\"total_tokens\":7}}\n\n");
/// demux.feed(b"data: [DONE]\n\n");
/// let usage = demux.usage();
/// assert_eq!((usage.prompt_tokens, usage.completion_tokens), (Some(5), Some(2)));
/// assert_eq!(usage.source, UsageSource::Reported);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of all choices.
    pub completion_tokens: Option<u64>,
    /// The total as the server gave it; it need not be the sum (U11).
    pub total_tokens: Option<u64>,
    /// Completion tokens of single choices, where the server told them apart.
    pub per_choice: Vec<(ChoiceIndex, u64)>,
    /// Reported, estimated, or neither.
    pub source: UsageSource,
    /// All fields as they were merged, unknown ones included; `null` if none came.
    pub raw: Value,
}

/// Collects what a stream reports in its three places.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    envelope: Map<String, Value>,
    /// U7: inside the choice.
    choices: Vec<(ChoiceIndex, Map<String, Value>)>,
    /// llama.cpp: a bare usage chunk after each choice's finish, of that choice only.
    after_finish: Vec<(ChoiceIndex, Map<String, Value>)>,
}

impl Reported {
    /// A usage object of the envelope; `finished` is the choice whose finish came just before, if the chunk was bare.
    pub(crate) fn envelope(&mut self, raw: &str, finished: Option<ChoiceIndex>) {
        let Some(fields) = parse(raw) else { return };
        if let Some(choice) = finished {
            merge_choice(&mut self.after_finish, choice, &fields);
        }
        merge(&mut self.envelope, &fields);
    }

    pub(crate) fn choice(&mut self, choice: ChoiceIndex, raw: &str) {
        if let Some(fields) = parse(raw) {
            merge_choice(&mut self.choices, choice, &fields);
        }
    }

    /// The figures as they stand.
    pub(crate) fn usage(&self) -> Usage {
        let (mut fields, told_apart) = if self.envelope.is_empty() {
            (sum_of(&self.choices), &self.choices)
        } else {
            (self.envelope.clone(), &self.after_finish)
        };
        if fields.is_empty() {
            return Usage {
                raw: Value::Null,
                ..Usage::default()
            };
        }
        let per_choice: Vec<_> = told_apart
            .iter()
            .filter_map(|(choice, fields)| Some((*choice, number(fields, "completion_tokens")?)))
            .collect();
        let summed = told_apart.len() > 1;
        if summed && !self.envelope.is_empty() {
            add_up(&mut fields, &per_choice);
        }
        Usage {
            prompt_tokens: number(&fields, "prompt_tokens"),
            completion_tokens: number(&fields, "completion_tokens"),
            total_tokens: number(&fields, "total_tokens"),
            per_choice: if summed || self.envelope.is_empty() {
                per_choice
            } else {
                Vec::new()
            },
            source: UsageSource::Reported,
            raw: Value::Object(fields),
        }
    }
}

/// Merges into the choice's own fields.
fn merge_choice(
    slots: &mut Vec<(ChoiceIndex, Map<String, Value>)>,
    choice: ChoiceIndex,
    fields: &Map<String, Value>,
) {
    match slots.iter_mut().find(|(known, _)| *known == choice) {
        Some((_, known)) => merge(known, fields),
        None => {
            let mut known = Map::new();
            merge(&mut known, fields);
            slots.push((choice, known));
        }
    }
}

fn parse(raw: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(raw) {
        Ok(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// Last value per field; null, and a negative number (U9), never overwrite; nested details likewise.
fn merge(into: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (key, value) in fields {
        match (into.get_mut(key), value) {
            (_, Value::Null) => {}
            (_, Value::Number(n)) if n.as_f64().is_some_and(|n| n < 0.0) => {}
            (Some(Value::Object(known)), Value::Object(fields)) => merge(known, fields),
            (_, Value::String(text)) if text.trim().parse::<u64>().is_ok() => {
                into.insert(key.clone(), text.trim().parse::<u64>().unwrap_or(0).into());
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn number(fields: &Map<String, Value>, key: &str) -> Option<u64> {
    let value = fields.get(key)?;
    let whole = |n: f64| (n >= 0.0 && n.fract() == 0.0 && n < 9e15).then_some(n as u64);
    value.as_u64().or_else(|| value.as_f64().and_then(whole))
}

/// U7: values of single choices are summed, the prompt's counted once.
fn sum_of(choices: &[(ChoiceIndex, Map<String, Value>)]) -> Map<String, Value> {
    let mut sum = Map::new();
    for (_, fields) in choices {
        merge(&mut sum, fields);
    }
    let completions: Vec<_> = choices
        .iter()
        .filter_map(|(c, f)| Some((*c, number(f, "completion_tokens")?)))
        .collect();
    if choices.len() > 1 {
        add_up(&mut sum, &completions);
    }
    sum
}

fn add_up(fields: &mut Map<String, Value>, per_choice: &[(ChoiceIndex, u64)]) {
    if per_choice.is_empty() {
        return;
    }
    let completion = per_choice
        .iter()
        .fold(0_u64, |sum, (_, tokens)| sum.saturating_add(*tokens));
    fields.insert("completion_tokens".into(), completion.into());
    if let Some(prompt) = number(fields, "prompt_tokens") {
        fields.insert(
            "total_tokens".into(),
            prompt.saturating_add(completion).into(),
        );
    }
}
