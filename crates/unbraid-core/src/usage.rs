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
    /// A bare usage chunk came elsewhere too, so it is not llama.cpp's way.
    elsewhere: bool,
}

/// Where a usage object of the envelope stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Beside choices.
    WithChoices,
    /// In a chunk without choices, right behind the finish of this choice alone.
    AfterFinish(ChoiceIndex),
    /// In a chunk without choices, anywhere else.
    Bare,
}

impl Reported {
    /// A usage object of the envelope.
    pub(crate) fn envelope(&mut self, raw: &str, source: Source) {
        let Some(fields) = parse(raw).filter(|fields| !fields.is_empty()) else {
            return;
        };
        match source {
            Source::WithChoices => {}
            Source::AfterFinish(choice) => merge_choice(&mut self.after_finish, choice, &fields),
            Source::Bare => self.elsewhere = true,
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
        let summed = told_apart.len() > 1 && (self.envelope.is_empty() || !self.elsewhere);
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

/// The last value per field; null never overwrites, nested details likewise (U2, U4, U5).
fn merge(into: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (key, value) in fields {
        match value {
            Value::Null => {}
            Value::Object(details) => match into.entry(key).or_insert_with(|| Map::new().into()) {
                Value::Object(known) => merge(known, details),
                known => *known = value.clone(),
            },
            _ if key.ends_with("_tokens") => {
                if let Some(count) = count(value) {
                    into.insert(key.clone(), count.into());
                }
            }
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A number of tokens, also as a float or a string; a negative one is none (U9).
fn count(value: &Value) -> Option<u64> {
    let whole = |n: f64| (n >= 0.0 && n.fract() == 0.0 && n < 9e15).then_some(n as u64);
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => {
            let text = text.trim();
            text.parse()
                .ok()
                .or_else(|| text.parse().ok().and_then(whole))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number(fields: &Map<String, Value>, key: &str) -> Option<u64> {
    count(fields.get(key)?)
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
