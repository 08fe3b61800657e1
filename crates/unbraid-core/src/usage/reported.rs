//! What a stream reports of its tokens, in three places: the envelope, beside the finish of a choice, inside a choice.

use serde_json::Value;

use super::{
    Estimated, Exact, Usage, UsageSource,
    fields::{Fields, differ_in_numbers_only, merge, most_completion, number, parse},
    sum::add_value,
};
use crate::{ChoiceIndex, limits::MAX_USAGE_BYTES};

type Slots = Vec<(ChoiceIndex, Fields)>;

/// Collects what a stream reports in its three places.
#[derive(Default)]
pub(crate) struct Reported {
    envelope: Fields,
    /// The last usage of the envelope, not yet merged: some servers send one with every chunk (U4).
    pending: String,
    /// Its fields, unless it came in place of another that differs in numbers only.
    parsed: Option<Fields>,
    /// U7: inside the choice.
    choices: Slots,
    /// llama.cpp, chats: a bare usage chunk after each choice's finish, of that choice only.
    after_finish: ByFinish,
    /// llama.cpp, text completions, and mistral.rs: the same in the chunk of the finish itself.
    at_finish: ByFinish,
    done: bool,
    /// The numbers of what was merged, as they were written: of the envelope, and of the choices.
    exact: Exact,
    exact_of_choices: Exact,
}

/// Usage that came with the finish of one choice.
#[derive(Default)]
struct ByFinish {
    choices: Slots,
    /// Some came in another place of its kind too, so no choice has its own.
    elsewhere: bool,
    /// One came while other choices were open: unless the stream is done, it speaks of its own choice only.
    early: bool,
    /// One came with the finish of several choices: it may speak of all of them, or of the last only.
    shared: bool,
}

impl ByFinish {
    fn add(&mut self, choice: ChoiceIndex, last: bool, fields: &Fields) {
        self.early |= !last;
        merge_choice(&mut self.choices, choice, fields);
    }
}

/// Where a usage object of the envelope stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// Beside choices of which none finished.
    WithChoices,
    /// In the chunk of the finish of this choice; `shared` with others that finished before it in the same chunk. The rest
    /// may have finished before: then it is the `last`.
    AtFinish {
        choice: ChoiceIndex,
        shared: bool,
        last: bool,
    },
    /// In a chunk without choices, right behind the finish of this choice alone; the others may have finished before.
    AfterFinish { choice: ChoiceIndex, last: bool },
    /// In a chunk without choices, anywhere else.
    Bare,
}

/// What the router knows besides, when the figures are put together.
#[derive(Debug)]
pub(crate) struct Known<'a> {
    /// Deltas with text that came of each choice: no server writes one for less than a token.
    pub(crate) received: &'a [(ChoiceIndex, u64)],
    /// Whether a finish reason has come for every choice.
    pub(crate) finished: bool,
    /// How many choices each prompt has, if the request has a list of prompts (E15).
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
    /// A usage object of the envelope.
    pub(crate) fn envelope(&mut self, raw: &str, source: Source) {
        if raw.len() > MAX_USAGE_BYTES {
            return;
        }
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
            Source::AtFinish {
                choice,
                shared,
                last,
            } => {
                self.at_finish.shared |= shared;
                self.at_finish.add(choice, last, &fields);
            }
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
    fn settled(&self) -> Fields {
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
        if raw.len() > MAX_USAGE_BYTES {
            return;
        }
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
    pub(crate) fn usage(&self, known: &Known<'_>) -> Usage {
        let figures = if self.choices.is_empty() {
            self.of_envelope(known)
        } else {
            self.of_choices(known)
        };
        if figures.fields.is_empty() {
            return Usage {
                raw: Value::Null,
                ..Usage::default()
            };
        }
        Usage {
            exact: self.exact(),
            ..figures.usage(known)
        }
    }

    /// The numbers as they were written; those of the envelope count where both have one.
    fn exact(&self) -> Exact {
        let mut exact = self.exact.clone();
        exact.note(&self.pending);
        exact.over(&self.exact_of_choices)
    }

    /// U7, U8: the choices have usage of their own, and the envelope is trusted where it has the same figure.
    fn of_choices(&self, known: &Known<'_>) -> Figures<'_> {
        let envelope = self.settled();
        let mut fields = Fields::new();
        for (_, own) in &self.choices {
            merge(&mut fields, own);
        }
        let mut prompts = add_up(&mut fields, &self.choices, known);
        if number(&envelope, "prompt_tokens").is_some() {
            prompts.clear();
        }
        merge(&mut fields, &envelope);
        if self.choices.len() > 1 && number(&envelope, "total_tokens").is_none() {
            add_total(&mut fields);
        }
        Figures {
            fields,
            apart: &self.choices,
            prompts,
            by_choice: number(&envelope, "completion_tokens").is_none(),
        }
    }

    fn of_envelope(&self, known: &Known<'_>) -> Figures<'_> {
        let mut fields = self.settled();
        let Some(by_finish) = self.by_finish(&fields, known) else {
            return Figures {
                fields,
                apart: &[],
                prompts: Vec::new(),
                by_choice: false,
            };
        };
        let cut = by_finish.early && !self.done && !known.finished;
        let apart = &by_finish.choices;
        let several = apart.len() > 1;
        let prompts = if several {
            add_up(&mut fields, apart, known)
        } else {
            Vec::new()
        };
        let told_apart = several || cut || by_finish.shared;
        Figures {
            fields,
            apart: if told_apart { apart } else { &[] },
            prompts,
            by_choice: cut || (several && !by_finish.shared),
        }
    }

    /// The reports that speak of one choice each; `None` if the envelope speaks of all.
    fn by_finish(&self, envelope: &Fields, known: &Known<'_>) -> Option<&ByFinish> {
        let by_finish = if self.at_finish.elsewhere {
            &self.after_finish
        } else {
            &self.at_finish
        };
        // mistral.rs packs the finishes of several choices into one chunk, with the usage of the last of them. Other
        // servers give the sum there. Only a figure too small for a sum distinguishes the two.
        let total = most_completion(envelope);
        let sum = by_finish.shared && total.is_none_or(|total| total >= known.all_received());
        (!by_finish.elsewhere && !sum).then_some(by_finish)
    }
}

/// The combined figures, and the choices that have figures of their own.
struct Figures<'a> {
    fields: Fields,
    apart: &'a [(ChoiceIndex, Fields)],
    prompts: Vec<(u32, u64)>,
    by_choice: bool,
}

impl Figures<'_> {
    fn usage(self, known: &Known<'_>) -> Usage {
        let below_received = self.is_below(known);
        let own = |(choice, fields): &(ChoiceIndex, Fields)| {
            Some((*choice, number(fields, "completion_tokens")?))
        };
        Usage {
            prompt_tokens: number(&self.fields, "prompt_tokens"),
            completion_tokens: number(&self.fields, "completion_tokens"),
            total_tokens: number(&self.fields, "total_tokens"),
            per_choice: self.apart.iter().filter_map(own).collect(),
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

    /// U15: fewer tokens than deltas of a choice, or of all choices where the sum is said to cover them.
    fn is_below(&self, known: &Known<'_>) -> bool {
        let own = |(choice, fields): &(ChoiceIndex, Fields)| below(fields, known.received(*choice));
        self.apart.iter().any(own) || (!self.by_choice && below(&self.fields, known.all_received()))
    }
}

fn below(fields: &Fields, received: u64) -> bool {
    most_completion(fields).is_some_and(|most| most < received)
}

/// Merges into the choice's own fields.
fn merge_choice(slots: &mut Slots, choice: ChoiceIndex, fields: &Fields) {
    match slots.iter_mut().find(|(known, _)| *known == choice) {
        Some((_, known)) => merge(known, fields),
        None => {
            let mut known = Fields::new();
            merge(&mut known, fields);
            slots.push((choice, known));
        }
    }
}

/// Sums over choices: completions, and of a list of prompts each once. Gives the tokens of each prompt.
fn add_up(
    fields: &mut Fields,
    apart: &[(ChoiceIndex, Fields)],
    known: &Known<'_>,
) -> Vec<(u32, u64)> {
    let completions = of_each(apart, "completion_tokens");
    if apart.len() < 2 || completions.is_empty() {
        return Vec::new();
    }
    let prompts = split_by_prompt(apart, known.choices_per_prompt);
    if !prompts.is_empty() {
        let tokens = sum(prompts.iter().map(|(_, _, tokens)| *tokens));
        fields.insert("prompt_tokens".into(), tokens.into());
        let slots = prompts.iter().map(|(_, slot, _)| *slot);
        add_details(fields, "prompt_tokens_details", slots);
    }
    let completion = sum(completions.iter().map(|(_, tokens)| *tokens));
    fields.insert("completion_tokens".into(), completion.into());
    let slots = apart.iter().map(|(_, fields)| fields);
    add_details(fields, "completion_tokens_details", slots);
    add_total(fields);
    prompts
        .iter()
        .map(|(at, _, tokens)| (*at, *tokens))
        .collect()
}

/// The total of sums that were made here.
fn add_total(fields: &mut Fields) {
    let prompt = number(fields, "prompt_tokens");
    if let Some((prompt, completion)) = prompt.zip(number(fields, "completion_tokens")) {
        let total = prompt.saturating_add(completion);
        fields.insert("total_tokens".into(), total.into());
    }
}

fn add_details<'a>(fields: &mut Fields, key: &str, of: impl Iterator<Item = &'a Fields>) {
    let mut details = Value::Null;
    for value in of.filter_map(|fields| fields.get(key)) {
        match &mut details {
            Value::Null => details = value.clone(),
            known => add_value(known, value.clone()),
        }
    }
    if !details.is_null() {
        fields.insert(key.into(), details);
    }
}

fn of_each(apart: &[(ChoiceIndex, Fields)], key: &str) -> Vec<(ChoiceIndex, u64)> {
    let one = |(choice, fields): &(ChoiceIndex, Fields)| Some((*choice, number(fields, key)?));
    apart.iter().filter_map(one).collect()
}

/// E15: the prompts of a list, each with its position, the last report that has it, and its tokens. Empty if all choices
/// answer one prompt. Without the request only prompts of different length show that there was a list.
fn split_by_prompt(
    apart: &[(ChoiceIndex, Fields)],
    choices_per_prompt: Option<u32>,
) -> Vec<(u32, &Fields, u64)> {
    let tokens = of_each(apart, "prompt_tokens");
    let differ = tokens
        .windows(2)
        .any(|pair| matches!(pair, [(_, a), (_, b)] if a != b));
    let Some(n) = choices_per_prompt.or_else(|| differ.then_some(1)) else {
        return Vec::new();
    };
    let mut prompts: Vec<(u32, &Fields, u64)> = Vec::new();
    for (choice, fields) in apart {
        let (Some(tokens), (at, _)) = (number(fields, "prompt_tokens"), choice.split_by_prompt(n))
        else {
            continue;
        };
        match prompts.iter_mut().find(|(known, ..)| *known == at) {
            Some(known) => *known = (at, fields, tokens),
            None => prompts.push((at, fields, tokens)),
        }
    }
    prompts
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}
