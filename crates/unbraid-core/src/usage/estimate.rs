//! Estimates usage that was not reported, or only in part.

use super::{
    Estimated, Prompt, Usage, UsageSource,
    prompt::named_calls,
    tokenizer::{Tokenizer, sum, texts_of},
};
use crate::{ChoiceIndex, Demux, Message, Transcript};

/// The bytes that count as one token if the text itself was discarded: usual for English, too many for most other
/// languages.
pub const BYTES_PER_TOKEN: u64 = 4;

/// Adds the numbers that were not reported: `prompt` is the number of tokens of the prompt, if it is known, and
/// `choices` those of each choice.
///
/// - A reported number is kept, even if it differs from the counted one. The reported sum of a single choice is that
///   choice's number.
/// - The sum of the completion is the sum over the choices. The total is the sum of prompt and completion, if both are
///   known.
/// - If a server reports choice by choice ([`Usage::by_choice`]) and the stream is cut, the counted tokens of the
///   choices without a report are added to its sums.
/// - If a number is [below what was received](Usage::below_received), the [counted](Usage::counted) number is added
///   beside it.
///
/// The resulting `source` is
///
/// - `Absent`: nothing was reported, and nothing is known;
/// - `Reported`: something was reported, and nothing had to be estimated;
/// - `Estimated`: nothing was reported, and something was estimated;
/// - `Mixed`: both.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Usage, UsageSource, estimate};
///
/// let usage = estimate(&Usage::default(), Some(10), &[(ChoiceIndex(0), 3), (ChoiceIndex(1), 4)]);
/// assert_eq!((usage.completion_tokens, usage.total_tokens), (Some(7), Some(17)));
/// assert_eq!(usage.source, UsageSource::Estimated);
/// ```
#[must_use]
pub fn estimate(reported: &Usage, prompt: Option<u64>, choices: &[(ChoiceIndex, u64)]) -> Usage {
    let counts = choices.iter().map(|(index, tokens)| (*index, || *tokens));
    estimate_with(reported, || prompt, counts)
}

/// Does what [`estimate`] does, but calls the counting functions only for what is missing.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Usage, estimate_with};
///
/// let mut reported = Usage::default();
/// (reported.prompt_tokens, reported.completion_tokens) = (Some(5), Some(2));
/// let usage = estimate_with(&reported, || unreachable!(), [(ChoiceIndex(0), || unreachable!())]);
/// assert_eq!(usage.per_choice, [(ChoiceIndex(0), 2)]);
/// ```
#[must_use]
pub fn estimate_with<C: FnOnce() -> u64>(
    reported: &Usage,
    prompt: impl FnOnce() -> Option<u64>,
    choices: impl IntoIterator<Item = (ChoiceIndex, C)>,
) -> Usage {
    let mut usage = reported.clone();
    let mut estimated = Estimated::default();
    if usage.prompt_tokens.is_none() {
        usage.prompt_tokens = prompt();
        estimated.prompt = usage.prompt_tokens.is_some();
    }
    let missing = fill_choices(&mut usage, &mut estimated, choices);
    if usage.by_choice && !estimated.choices.is_empty() {
        let more = |known: u64| known.saturating_add(missing);
        usage.completion_tokens = usage.completion_tokens.map(more);
        usage.total_tokens = usage.total_tokens.map(more);
        estimated.completion = usage.completion_tokens.is_some();
        estimated.total = usage.total_tokens.is_some();
    }
    add_up(&mut usage, &mut estimated);
    if estimated.any() || usage.counted.is_some() {
        usage.mark();
    }
    usage.estimated = estimated;
    usage
}

/// Does what [`estimate_with`] does, with the prompt of a request. If the request has a list of prompts and the server
/// reports them one by one, the prompts without a report are counted.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::{ChoiceIndex, Prompt, Usage, estimate_for};
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// let mut reported = Usage::default();
/// (reported.prompt_tokens, reported.prompts) = (Some(4), vec![(0, 4)]);
/// let prompt = Prompt::from_request(&json!({ "prompt": ["Once upon a time", "Twice"] }));
/// let usage = estimate_for(&reported, &prompt, &words, [(ChoiceIndex(0), || 2)]);
/// assert_eq!((usage.prompt_tokens, usage.estimated.prompt), (Some(5), true));
/// ```
#[must_use]
pub fn estimate_for<C: FnOnce() -> u64>(
    reported: &Usage,
    prompt: &Prompt,
    counter: &dyn Tokenizer,
    choices: impl IntoIterator<Item = (ChoiceIndex, C)>,
) -> Usage {
    let mut usage = estimate_with(reported, || prompt.tokens(counter), choices);
    let others = prompt.tokens_of_others(reported, counter);
    if others > 0 {
        let more = |known: u64| known.saturating_add(others);
        usage.prompt_tokens = usage.prompt_tokens.map(more);
        usage.total_tokens = usage.total_tokens.map(more);
        usage.estimated.prompt = true;
        usage.estimated.total = usage.total_tokens.is_some();
        usage.mark();
    }
    usage
}

impl Usage {
    /// Marks that some number was counted.
    fn mark(&mut self) {
        self.source = match self.source {
            UsageSource::Absent | UsageSource::Estimated => UsageSource::Estimated,
            UsageSource::Reported | UsageSource::Mixed => UsageSource::Mixed,
        };
    }
}

/// Counts the choices without a report of their own; returns the sum of their tokens.
fn fill_choices<C: FnOnce() -> u64>(
    usage: &mut Usage,
    estimated: &mut Estimated,
    choices: impl IntoIterator<Item = (ChoiceIndex, C)>,
) -> u64 {
    let mut choices: Vec<_> = choices.into_iter().collect();
    choices.sort_by_key(|(index, _)| *index);
    let only_choice = usage.completion_tokens.filter(|_| choices.len() == 1);
    let (mut missing, mut all) = (0_u64, 0_u64);
    let counts_all = usage.below_received && !choices.is_empty();
    for (index, count) in choices {
        let has_report = usage.per_choice.iter().any(|(other, _)| *other == index);
        let reported = has_report || only_choice.is_some();
        let counted = (!reported || counts_all).then(count);
        all = all.saturating_add(counted.unwrap_or(0));
        if has_report {
            continue;
        }
        let tokens = only_choice.or(counted).unwrap_or(0);
        if !reported {
            estimated.choices.push(index);
            missing = missing.saturating_add(tokens);
        }
        usage.per_choice.push((index, tokens));
    }
    usage.per_choice.sort_by_key(|(index, _)| *index);
    usage.counted = counts_all.then_some(all);
    missing
}

/// Sets the sums that were not reported.
fn add_up(usage: &mut Usage, estimated: &mut Estimated) {
    if usage.completion_tokens.is_none() && !usage.per_choice.is_empty() {
        usage.completion_tokens = Some(tokens_of(&usage.per_choice));
        estimated.completion = !estimated.choices.is_empty();
    }
    if usage.total_tokens.is_none() {
        let both = Option::zip(usage.prompt_tokens, usage.completion_tokens);
        usage.total_tokens = both.map(|(prompt, completion)| prompt.saturating_add(completion));
        estimated.total =
            usage.total_tokens.is_some() && (estimated.prompt || estimated.completion);
    }
}

fn tokens_of(choices: &[(ChoiceIndex, u64)]) -> u64 {
    sum(choices.iter().map(|(_, tokens)| *tokens))
}

/// Counts the tokens of a prompt by the rules of [`Prompt`]; `None` if the request has neither messages nor a prompt.
///
/// # Examples
///
/// ```
/// use serde_json::json;
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// let request = json!({ "messages": [{ "role": "user", "content": "Who is there?" }] });
/// // Three for the message, one for its role, three words, three that begin the reply.
/// assert_eq!(unbraid_core::prompt_tokens(&request, &words), Some(10));
/// ```
#[must_use]
pub fn prompt_tokens(request: &serde_json::Value, counter: &dyn Tokenizer) -> Option<u64> {
    Prompt::from_request(request).tokens(counter)
}

/// Counts the tokens of an answer (U12): its text, its visible reasoning and refusal, the transcript of its audio, and
/// its calls with the tokens that [frame](crate::Framing) them.
///
/// Servers also count what is not visible here: hidden reasoning, sound and images.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Message, completion_tokens};
///
/// let mut message = Message::default();
/// message.content = "two words".into();
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// assert_eq!(completion_tokens(&message, &words), 2);
/// ```
#[must_use]
pub fn completion_tokens(message: &Message, counter: &dyn Tokenizer) -> u64 {
    let calls = counter.framing().calls(&named_calls(message), counter);
    texts_of(message, counter).saturating_add(calls)
}

impl Transcript {
    /// Counts the tokens received for this choice. Discarded text counts one token per [`BYTES_PER_TOKEN`] bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"two words\"}}]}\n\n");
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().tokens(&words), 2);
    /// ```
    #[must_use]
    pub fn tokens(&self, counter: &dyn Tokenizer) -> u64 {
        completion_tokens(&self.message(), counter).saturating_add(self.discarded_tokens())
    }

    /// Estimates the tokens that were discarded. The estimate is coarse, since the text is gone.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Config, Demux};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"kept\"}}]}\n\n");
    /// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().discarded_tokens(), 0);
    /// ```
    #[must_use]
    pub fn discarded_tokens(&self) -> u64 {
        self.discarded_bytes().div_ceil(BYTES_PER_TOKEN)
    }
}

impl Demux {
    /// Returns the reported usage, and counts what is missing (see [`estimate`]).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Config, Prompt, UsageSource};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"cut in the\"}}]}\n\n");
    /// demux.finish();
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let usage = demux.estimated_usage(&Prompt::default(), &words);
    /// assert_eq!((usage.prompt_tokens, usage.completion_tokens), (None, Some(3)));
    /// assert_eq!(usage.source, UsageSource::Estimated);
    /// ```
    #[must_use]
    pub fn estimated_usage(&self, prompt: &Prompt, counter: &dyn Tokenizer) -> Usage {
        let choices = self.choices().map(|choice| {
            let tokens = || {
                let answer = prompt.completion_tokens(&choice.message(), counter);
                answer.saturating_add(choice.discarded_tokens())
            };
            (choice.index(), tokens)
        });
        estimate_for(&self.usage(), prompt, counter, choices)
    }
}

#[cfg(test)]
mod tests;
