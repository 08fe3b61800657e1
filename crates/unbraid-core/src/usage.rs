//! Reported usage: merged field by field, the last value of each, never summed (U1 to U11). What is missing can be
//! estimated.

mod estimate;
mod exact;
mod prompt;
mod sum;

use exact::Exact;
use serde_json::{Map, Value};

pub use estimate::{
    BYTES_PER_TOKEN, CountTokens, Estimated, completion_tokens, estimate, estimate_with,
    prompt_tokens,
};
pub use prompt::Prompt;

use crate::{ChoiceIndex, decode::node::to_value, limits::MAX_FIELDS};

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
    /// Some figures were reported and others counted; [`Usage::estimated`] tells which.
    Mixed,
}

impl UsageSource {
    /// The name that the command prints: `absent`, `reported`, `estimated` or `mixed`.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::UsageSource::Estimated.as_str(), "estimated");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Reported => "reported",
            Self::Estimated => "estimated",
            Self::Mixed => "mixed",
        }
    }
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
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens of all choices.
    pub completion_tokens: Option<u64>,
    /// The total as the server gave it; it need not be the sum (U11).
    pub total_tokens: Option<u64>,
    /// Completion tokens of single choices, where the server told them apart or they were estimated.
    pub per_choice: Vec<(ChoiceIndex, u64)>,
    /// Reported, estimated, or neither.
    pub source: UsageSource,
    /// Which figures were estimated; the others were reported.
    pub estimated: Estimated,
    /// All fields that were reported, merged, unknown ones included; `null` if none came. Nothing estimated is in it.
    /// A number that a `Value` has no room for is the nearest `f64`; [`raw_json`](Self::raw_json) has it as it came.
    pub raw: Value,
    exact: Exact,
}

/// Collects what a stream reports in its three places.
#[derive(Default)]
pub(crate) struct Reported {
    envelope: Map<String, Value>,
    /// The last usage of the envelope, not yet merged: some servers send one with every chunk (U4).
    pending: String,
    /// Its fields, unless it came in place of another that differs in numbers only.
    parsed: Option<Map<String, Value>>,
    /// U7: inside the choice.
    choices: Vec<(ChoiceIndex, Map<String, Value>)>,
    /// llama.cpp, chats: a bare usage chunk after each choice's finish, of that choice only.
    after_finish: ByFinish,
    /// llama.cpp, text completions: the same in the chunk of the finish itself.
    at_finish: ByFinish,
    done: bool,
    /// The numbers of what was merged, as they were written: of the envelope, and of the choices.
    exact: Exact,
    exact_of_choices: Exact,
}

/// Usage that came with the finish of one choice.
#[derive(Default)]
struct ByFinish {
    choices: Vec<(ChoiceIndex, Map<String, Value>)>,
    /// Some came in another place of its kind too, so no choice has its own.
    elsewhere: bool,
    /// One came while other choices were open: unless the stream is done, it speaks of its own choice only.
    early: bool,
}

impl ByFinish {
    fn add(&mut self, choice: ChoiceIndex, last: bool, fields: &Map<String, Value>) {
        self.early |= !last;
        merge_choice(&mut self.choices, choice, fields);
    }
}

/// Where a usage object of the envelope stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Beside choices.
    WithChoices,
    /// In the chunk of the finish of this choice alone; the others may have finished before.
    AtFinish { choice: ChoiceIndex, last: bool },
    /// In a chunk without choices, right behind the finish of this choice alone; the others may have finished before.
    AfterFinish { choice: ChoiceIndex, last: bool },
    /// In a chunk without choices, anywhere else.
    Bare,
}

impl Reported {
    /// A usage object of the envelope.
    pub(crate) fn envelope(&mut self, raw: &str, source: Source) {
        self.at_finish.elsewhere |= source == Source::WithChoices;
        if source == Source::WithChoices && differ_in_numbers_only(&self.pending, raw) {
            raw.clone_into(&mut self.pending);
            self.parsed = None;
            return;
        }
        let Some(fields) = parse(raw).filter(|fields| !fields.is_empty()) else {
            return;
        };
        match source {
            Source::WithChoices => {}
            Source::AtFinish { choice, last } => self.at_finish.add(choice, last, &fields),
            Source::AfterFinish { choice, last } => {
                self.at_finish.elsewhere = true;
                self.after_finish.add(choice, last, &fields);
            }
            Source::Bare => {
                self.at_finish.elsewhere = true;
                self.after_finish.elsewhere = true;
            }
        }
        let earlier = self.parsed.replace(fields);
        if let Some(earlier) = earlier.or_else(|| parse(&self.pending)) {
            merge(&mut self.envelope, &earlier);
            self.exact.note(&self.pending);
        }
        raw.clone_into(&mut self.pending);
    }

    /// The envelope's usage, all of it merged.
    fn settled(&self) -> Map<String, Value> {
        let mut settled = self.envelope.clone();
        match &self.parsed {
            Some(fields) => merge(&mut settled, fields),
            None => parse(&self.pending)
                .iter()
                .for_each(|fields| merge(&mut settled, fields)),
        }
        settled
    }

    pub(crate) fn choice(&mut self, choice: ChoiceIndex, raw: &str) {
        if let Some(fields) = parse(raw) {
            merge_choice(&mut self.choices, choice, &fields);
            self.exact_of_choices.note(raw);
        }
    }

    /// The stream said that it is done: a report that came is of all choices, or of each.
    pub(crate) fn done(&mut self) {
        self.done = true;
    }

    /// The figures as they stand.
    pub(crate) fn usage(&self) -> Usage {
        let envelope = self.settled();
        let of_choices = envelope.is_empty();
        let by_finish = if self.at_finish.elsewhere {
            &self.after_finish
        } else {
            &self.at_finish
        };
        let (mut fields, told_apart) = if of_choices {
            (sum_of(&self.choices), &self.choices)
        } else {
            (envelope, &by_finish.choices)
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
        let summed = told_apart.len() > 1 && (of_choices || !by_finish.elsewhere);
        if summed && !of_choices {
            add_up(&mut fields, &per_choice);
        }
        let cut = by_finish.early && !by_finish.elsewhere && !self.done;
        Usage {
            prompt_tokens: number(&fields, "prompt_tokens"),
            completion_tokens: number(&fields, "completion_tokens"),
            total_tokens: number(&fields, "total_tokens"),
            per_choice: if summed || of_choices || cut {
                per_choice
            } else {
                Vec::new()
            },
            source: UsageSource::Reported,
            estimated: Estimated::default(),
            raw: Value::Object(fields),
            exact: self.exact(of_choices),
        }
    }

    fn exact(&self, of_choices: bool) -> Exact {
        if of_choices {
            return self.exact_of_choices.clone();
        }
        let mut exact = self.exact.clone();
        exact.note(&self.pending);
        exact
    }
}

/// Whether two JSON texts differ at most in whole numbers that are values: then the later one says all that the
/// earlier one says, and anew.
fn differ_in_numbers_only(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    let (mut key_ended, mut value) = (false, false);
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if value && a.is_ascii_digit() && b.is_ascii_digit() {
            (one, other) = (behind_digits(one), behind_digits(other));
            continue;
        }
        // Without escapes, a quote before a colon ends a key.
        if a != b || *a == b'\\' {
            return false;
        }
        value = (key_ended && *a == b':') || (value && *a == b' ');
        key_ended = *a == b'"';
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

fn behind_digits(text: &[u8]) -> &[u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    text.get(digits..).unwrap_or_default()
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
    if raw.is_empty() {
        return None;
    }
    match to_value(raw) {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// The last value per field; null never overwrites, nested details likewise (U2, U4, U5).
fn merge(into: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (key, value) in fields {
        if into.len() >= MAX_FIELDS && !into.contains_key(key) {
            continue;
        }
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

#[cfg(test)]
mod tests {
    use super::differ_in_numbers_only;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        assert_eq!(
            differ_in_numbers_only(one, other),
            expected,
            "{one} {other}"
        );
        assert_eq!(
            differ_in_numbers_only(other, one),
            expected,
            "{other} {one}"
        );
    }

    #[test]
    fn u04_only_whole_numbers_may_differ() {
        check(
            "{\"a\":1,\"b\":{\"c\": 22}}",
            "{\"a\":999,\"b\":{\"c\": 3}}",
            true,
        );
        check("{\"a1\":1}", "{\"a2\":1}", false);
        check("{\"a\":\"1\"}", "{\"a\":\"2\"}", false);
        check("{\"a\":1}", "{\"a\":-1}", false);
        check("{\"a\":1}", "{\"a\":1.5}", false);
        check("{\"a\":1.5}", "{\"a\":2.5}", true);
        check("{\"a\":1.5}", "{\"a\":1.7}", false);
        check("{\"a\":1}", "{\"a\":null}", false);
        check("{\"a\":1}", "{\"a\":1,\"b\":2}", false);
        check("{\"a\":[1,2]}", "{\"a\":[1,3]}", false);
        check("", "{}", false);
        check("{\"a:1\":1}", "{\"a:2\":1}", false);
        check("{\"\\\":1\":1}", "{\"\\\":2\":1}", false);
    }
}
