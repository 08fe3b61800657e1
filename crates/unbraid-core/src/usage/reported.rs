//! Collects the usage that a stream reports, which is in one of three places: in the envelope, in the chunk of a
//! choice's finish or after it, or inside a choice.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::{
    Estimated, Exact, Usage, UsageSource,
    by_finish::{ByFinish, ChoiceFields, merge_choice},
    fields::{Fields, has_odd_counts, max_completion, merge, number, parse},
    names::Counts,
    reports::Reports,
    search::completion_tokens,
    sum::add_value,
};
use crate::{ChoiceIndex, limits::MAX_USAGE_BYTES};

/// Collects the usage that a stream reports in any of the three places.
#[derive(Default)]
pub(crate) struct Reported {
    envelope: Reports,
    /// Usage inside a choice (U7).
    choices: ChoiceFields,
    /// A chunk with only usage after each choice's finish, for that choice alone (llama.cpp, chats).
    after_finish: ByFinish,
    /// The same in the chunk of the finish itself (llama.cpp text completions, and mistral.rs).
    at_finish: ByFinish,
    done: bool,
    /// Whether a count was none (U9).
    has_odd_counts: bool,
    /// The text of the merged numbers of the choices.
    exact_of_choices: Exact,
}

/// The position of a usage object of the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Beside choices, none of which finished.
    WithChoices,
    /// In the chunk of the finish of this choice. `shared` if other choices finished before it in the same chunk,
    /// `last` if all others have finished.
    AtFinish {
        choice: ChoiceIndex,
        shared: bool,
        last: bool,
    },
    /// In a chunk without choices, directly after the finish of this choice alone. `last` if all others have finished.
    AfterFinish { choice: ChoiceIndex, last: bool },
    /// In a chunk without choices, at any other position.
    Bare,
}

/// What the router knows of the stream when the numbers are combined.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    /// The deltas with text that were received for each choice. No server counts one as less than a token.
    pub(crate) received: &'a [(ChoiceIndex, u64)],
    /// Whether every choice has a finish reason.
    pub(crate) finished: bool,
    /// The number of choices of each prompt, if the request has a list of prompts (E15).
    pub(crate) choices_per_prompt: Option<u32>,
}

impl Known<'_> {
    fn all_received(&self) -> u64 {
        self.received
            .iter()
            .fold(0, |sum, (_, deltas)| sum.saturating_add(*deltas))
    }

    fn received(&self, choice: ChoiceIndex) -> u64 {
        let own = |(index, deltas): &(ChoiceIndex, u64)| (*index == choice).then_some(*deltas);
        self.received.iter().find_map(own).unwrap_or(0)
    }
}

impl Reported {
    /// Adds a usage object of the envelope; false if it reports nothing. Reports beside choices that have the same `form`
    /// differ in integers only.
    pub(crate) fn envelope(&mut self, raw: &str, source: Source, form: Option<u64>) -> bool {
        if raw.len() > MAX_USAGE_BYTES {
            return false;
        }
        self.at_finish.has_other |= source == Source::WithChoices;
        let form = form.filter(|_| source == Source::WithChoices);
        if source == Source::WithChoices && self.envelope.replace(raw, form) {
            return true;
        }
        // The first report, which nearly always is the only one, is read when someone asks for it.
        if self.is_empty()
            && let Some(tokens) = completion_tokens(raw)
        {
            self.note(raw, source, None);
            self.envelope.add_first(raw, form, tokens);
            return true;
        }
        if self.repeats_unread(raw, source) {
            self.note(raw, source, None);
            return true;
        }
        let Some(fields) = parse(raw).filter(|fields| !fields.is_empty()) else {
            return false;
        };
        self.has_odd_counts |= has_odd_counts(&fields);
        let fields = Arc::new(fields);
        self.note(raw, source, Some(&fields));
        self.envelope.add(raw, form, fields);
        true
    }

    /// Whether a report is the only one so far once more, and need not be read either. Groq sends it in up to three places.
    fn repeats_unread(&self, raw: &str, source: Source) -> bool {
        // A report without choices is compared with those of the choices, field by field.
        let is_compared = source == Source::Bare && !self.after_finish.is_empty();
        !is_compared && self.envelope.unread() == Some(raw)
    }

    /// Notes whose report it may be. One that stays unread has no fields yet.
    fn note(&mut self, raw: &str, source: Source, fields: Option<&Arc<Fields>>) {
        match source {
            Source::WithChoices => {}
            Source::AtFinish {
                choice,
                shared,
                last,
            } => {
                self.at_finish.shared |= shared;
                self.at_finish.add(choice, last, raw, fields);
            }
            Source::AfterFinish { choice, last } => {
                self.at_finish.has_other = true;
                self.after_finish.add(choice, last, raw, fields);
            }
            Source::Bare => {
                self.at_finish.has_other = true;
                // The report of a choice that comes again is not one of all choices.
                let is_known = |fields| self.after_finish.has(fields);
                let is_again = !self.after_finish.has_other && fields.is_some_and(is_known);
                self.after_finish.has_other = !is_again;
            }
        }
    }

    pub(crate) fn choice(&mut self, choice: ChoiceIndex, raw: &str) {
        if raw.len() > MAX_USAGE_BYTES {
            return;
        }
        if let Some(fields) = parse(raw) {
            self.has_odd_counts |= has_odd_counts(&fields);
            merge_choice(&mut self.choices, choice, &Arc::new(fields));
            self.exact_of_choices.note(raw);
        }
    }

    /// Whether nothing was reported.
    pub(crate) fn is_empty(&self) -> bool {
        self.envelope.is_empty() && self.choices.is_empty()
    }

    /// Whether a value in place of a count was none, and was kept as it is (U9). Usage that stays unread has none.
    pub(crate) fn has_odd_counts(&self) -> bool {
        self.has_odd_counts
    }

    /// Notes that the stream is done, so that its reports cover all choices.
    pub(crate) fn done(&mut self) {
        self.done = true;
    }

    /// Whether the usage need not be read when no more reports follow: it has numbers, and they are not too few.
    pub(crate) fn may_stay_unread(&self, known: &Known<'_>) -> bool {
        let tokens = self.envelope.tokens_of_unread();
        // With fewer tokens, it depends on the other numbers whether they are too few (U11, U15).
        self.choices.is_empty() && tokens.is_some_and(|tokens| tokens >= known.all_received())
    }

    /// Returns the combined numbers.
    pub(crate) fn usage(&self, known: &Known<'_>) -> Usage {
        self.usage_beside(self.envelope.merged(), known)
    }

    /// The same when no more reports follow. The fields of the only report are not copied, but a later call reads it again.
    pub(crate) fn take_usage(&mut self, known: &Known<'_>) -> Usage {
        let envelope = self.envelope.take_merged();
        self.usage_beside(envelope, known)
    }

    /// The usage if these are the merged fields of the envelope.
    fn usage_beside(&self, envelope: Fields, known: &Known<'_>) -> Usage {
        let combined = if self.choices.is_empty() {
            self.combine_envelope(envelope, known)
        } else {
            self.combine_choices(&envelope, known)
        };
        if combined.fields.is_empty() {
            return Usage {
                raw: Value::Null,
                ..Usage::default()
            };
        }
        Usage {
            exact: self.exact(),
            ..combined.usage(known)
        }
    }

    /// The text of the numbers. Those of the envelope take precedence.
    fn exact(&self) -> Exact {
        self.envelope.exact().merged_over(&self.exact_of_choices)
    }

    /// Combines the usage of the choices (U7, U8). The envelope takes precedence for numbers that both have.
    fn combine_choices(&self, envelope: &Fields, known: &Known<'_>) -> CombinedUsage<'_> {
        let mut fields = Fields::new();
        for (_, own) in &self.choices {
            merge(&mut fields, own);
        }
        let mut prompts = add_up(&mut fields, &self.choices, known);
        if number(envelope, "prompt_tokens").is_some() {
            prompts.clear();
        }
        merge(&mut fields, envelope);
        if self.choices.len() > 1 && number(envelope, "total_tokens").is_none() {
            add_total(&mut fields);
        }
        CombinedUsage {
            fields,
            per_choice: self.choices.as_slice().into(),
            prompts,
            by_choice: number(envelope, "completion_tokens").is_none(),
        }
    }

    fn combine_envelope(&self, mut fields: Fields, known: &Known<'_>) -> CombinedUsage<'_> {
        let Some(by_finish) = self.by_finish(&fields, known) else {
            return CombinedUsage {
                fields,
                per_choice: Cow::default(),
                prompts: Vec::new(),
                by_choice: false,
            };
        };
        let is_cut = by_finish.early && !self.done && !known.finished;
        let has_several = by_finish.choices.len() > 1;
        let is_per_choice = has_several || is_cut || by_finish.shared;
        let per_choice = if is_per_choice {
            by_finish.choices()
        } else {
            Cow::default()
        };
        let prompts = if has_several {
            add_up(&mut fields, &per_choice, known)
        } else {
            Vec::new()
        };
        CombinedUsage {
            fields,
            per_choice,
            prompts,
            by_choice: is_cut || (has_several && !by_finish.shared),
        }
    }

    /// The reports that are for one choice each; `None` if the envelope is for all.
    fn by_finish(&self, envelope: &Fields, known: &Known<'_>) -> Option<&ByFinish> {
        let by_finish = if self.at_finish.has_other {
            &self.after_finish
        } else {
            &self.at_finish
        };
        // mistral.rs sends the finishes of several choices in one chunk, with the usage of the last one. Other servers
        // send the sum there. Only a number that is too small for a sum distinguishes the two.
        let total = max_completion(envelope);
        let sum = by_finish.shared && total.is_none_or(|total| total >= known.all_received());
        (!by_finish.has_other && !sum).then_some(by_finish)
    }
}

/// The combined numbers, and the choices that have their own.
struct CombinedUsage<'a> {
    fields: Fields,
    per_choice: Cow<'a, [(ChoiceIndex, Arc<Fields>)]>,
    prompts: Vec<(u32, u64)>,
    by_choice: bool,
}

impl CombinedUsage<'_> {
    fn usage(self, known: &Known<'_>) -> Usage {
        let below_received = self.is_below_received(known);
        let own = |(choice, fields): &(ChoiceIndex, Arc<Fields>)| {
            Some((*choice, number(fields, "completion_tokens")?))
        };
        let counts = Counts::of(&self.fields);
        Usage {
            prompt_tokens: counts.prompt,
            completion_tokens: counts.completion,
            total_tokens: counts.total,
            cached_tokens: counts.cached,
            reasoning_tokens: counts.reasoning,
            per_choice: self.per_choice.iter().filter_map(own).collect(),
            prompts: self.prompts,
            by_choice: self.by_choice,
            below_received,
            counted: None,
            source: UsageSource::Reported,
            estimated: Estimated::default(),
            raw: Value::Object(self.fields),
            exact: Exact::default(),
        }
    }

    /// Whether there are fewer tokens than deltas of a choice, or of all choices if the sum covers them (U15).
    fn is_below_received(&self, known: &Known<'_>) -> bool {
        let own = |(choice, fields): &(ChoiceIndex, Arc<Fields>)| {
            is_below(fields, known.received(*choice))
        };
        self.per_choice.iter().any(own)
            || (!self.by_choice && is_below(&self.fields, known.all_received()))
    }
}

fn is_below(fields: &Fields, received: u64) -> bool {
    max_completion(fields).is_some_and(|max| max < received)
}

/// Adds up the completions of the choices, and each prompt of a list once. Returns the tokens of each prompt.
fn add_up(
    fields: &mut Fields,
    per_choice: &[(ChoiceIndex, Arc<Fields>)],
    known: &Known<'_>,
) -> Vec<(u32, u64)> {
    let completions = field_of_each(per_choice, "completion_tokens");
    if per_choice.len() < 2 || completions.is_empty() {
        return Vec::new();
    }
    let prompts = split_by_prompt(per_choice, known.choices_per_prompt);
    if !prompts.is_empty() {
        let tokens = sum(prompts.iter().map(|(_, _, tokens)| *tokens));
        fields.insert("prompt_tokens".into(), tokens.into());
        let choices = prompts.iter().map(|(_, report, _)| *report);
        add_details(fields, "prompt_tokens_details", choices);
    }
    let completion = sum(completions.iter().map(|(_, tokens)| *tokens));
    fields.insert("completion_tokens".into(), completion.into());
    let choices = per_choice.iter().map(|(_, fields)| &**fields);
    add_details(fields, "completion_tokens_details", choices);
    add_total(fields);
    prompts
        .iter()
        .map(|(position, _, tokens)| (*position, *tokens))
        .collect()
}

/// Sets the total of numbers that were added up here.
fn add_total(fields: &mut Fields) {
    let prompt = number(fields, "prompt_tokens");
    if let Some((prompt, completion)) = prompt.zip(number(fields, "completion_tokens")) {
        let total = prompt.saturating_add(completion);
        fields.insert("total_tokens".into(), total.into());
    }
}

fn add_details<'a>(fields: &mut Fields, key: &str, reports: impl Iterator<Item = &'a Fields>) {
    let mut details = Value::Null;
    for value in reports.filter_map(|fields| fields.get(key)) {
        match &mut details {
            Value::Null => details = value.clone(),
            known => add_value(known, value.clone()),
        }
    }
    if !details.is_null() {
        fields.insert(key.into(), details);
    }
}

fn field_of_each(per_choice: &[(ChoiceIndex, Arc<Fields>)], key: &str) -> Vec<(ChoiceIndex, u64)> {
    let one = |(choice, fields): &(ChoiceIndex, Arc<Fields>)| Some((*choice, number(fields, key)?));
    per_choice.iter().filter_map(one).collect()
}

/// The prompts of a list (E15), each with its position, the last report about it, and its tokens. Empty if all choices
/// answer one prompt. Without the request, only prompts of different length show that there was a list.
fn split_by_prompt(
    per_choice: &[(ChoiceIndex, Arc<Fields>)],
    choices_per_prompt: Option<u32>,
) -> Vec<(u32, &Fields, u64)> {
    let tokens = field_of_each(per_choice, "prompt_tokens");
    let differ = tokens
        .windows(2)
        .any(|pair| matches!(pair, [(_, a), (_, b)] if a != b));
    let Some(n) = choices_per_prompt.or_else(|| differ.then_some(1)) else {
        return Vec::new();
    };
    let mut prompts: Vec<(u32, &Fields, u64)> = Vec::new();
    for (choice, fields) in per_choice {
        let (Some(tokens), (position, _)) =
            (number(fields, "prompt_tokens"), choice.split_by_prompt(n))
        else {
            continue;
        };
        match prompts.iter_mut().find(|(known, ..)| *known == position) {
            Some(known) => *known = (position, fields, tokens),
            None => prompts.push((position, fields, tokens)),
        }
    }
    prompts
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
