//! What to make of a usage that is missing, or missing in part. The tokenizer sits behind a trait.

use super::{Prompt, Usage, UsageSource};
use crate::{ChoiceIndex, Demux, Message, Transcript};

/// Counts the tokens of a text: the tokenizer, whichever it is.
///
/// Every `Fn(&str) -> u64` is one.
///
/// # Examples
///
/// ```
/// use unbraid_core::CountTokens;
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// assert_eq!(words.count("tiktoken is great!"), 3);
/// ```
pub trait CountTokens: Send + Sync {
    /// The tokens of this text alone.
    fn count(&self, text: &str) -> u64;
}

impl<F: Fn(&str) -> u64 + Send + Sync> CountTokens for F {
    fn count(&self, text: &str) -> u64 {
        self(text)
    }
}

/// Bytes that stand for one token where the text itself is gone: usual for English, too many for most other languages.
pub const BYTES_PER_TOKEN: u64 = 4;

/// Which figures of a [`Usage`] were counted here.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Usage, estimate};
///
/// let usage = estimate(&Usage::default(), None, &[(ChoiceIndex(0), 7)]);
/// assert!(usage.estimated.completion && !usage.estimated.prompt);
/// assert_eq!(usage.estimated.choices, [ChoiceIndex(0)]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Estimated {
    /// The prompt's.
    pub prompt: bool,
    /// The completion's.
    pub completion: bool,
    /// The total, since one of the two was.
    pub total: bool,
    /// Those of these choices.
    pub choices: Vec<ChoiceIndex>,
}

impl Estimated {
    fn any(&self) -> bool {
        self.prompt || self.completion || self.total || !self.choices.is_empty()
    }
}

/// Fills in what was not reported: `prompt` are the prompt's tokens if they are known, `choices` those of each choice.
///
/// What was reported stays, whatever the counts say. A reported sum of a single choice is that choice's. The completion's
/// sum is the sum over the choices, the total is prompt and completion if both are known. A server that reports choice by
/// choice may not have reported all of them when the stream is cut: the counts of the others are added to its sums. Then
/// `source` is
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

/// As [`estimate`], but counts only what is missing.
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
    let counted = fill_choices(&mut usage, &mut estimated, choices);
    let by_choice = !reported.per_choice.is_empty()
        && usage.completion_tokens == Some(tokens_of(&reported.per_choice));
    if by_choice && !estimated.choices.is_empty() {
        let more = |known: u64| known.saturating_add(counted);
        usage.completion_tokens = usage.completion_tokens.map(more);
        usage.total_tokens = usage.total_tokens.map(more);
        (estimated.completion, estimated.total) = (true, usage.total_tokens.is_some());
    }
    add_up(&mut usage, &mut estimated);
    usage.source = match (reported.source, estimated.any()) {
        (UsageSource::Absent, true) => UsageSource::Estimated,
        (UsageSource::Reported, true) => UsageSource::Mixed,
        (source, _) => source,
    };
    usage.estimated = estimated;
    usage
}

/// Counts the choices that were not told apart; how many tokens these have.
fn fill_choices<C: FnOnce() -> u64>(
    usage: &mut Usage,
    estimated: &mut Estimated,
    choices: impl IntoIterator<Item = (ChoiceIndex, C)>,
) -> u64 {
    let mut choices: Vec<_> = choices.into_iter().collect();
    choices.sort_by_key(|(index, _)| *index);
    let alone = usage.completion_tokens.filter(|_| choices.len() == 1);
    let mut counted: u64 = 0;
    for (index, count) in choices {
        if usage.per_choice.iter().any(|(known, _)| *known == index) {
            continue;
        }
        let tokens = alone.unwrap_or_else(|| {
            estimated.choices.push(index);
            let tokens = count();
            counted = counted.saturating_add(tokens);
            tokens
        });
        usage.per_choice.push((index, tokens));
    }
    usage.per_choice.sort_by_key(|(index, _)| *index);
    counted
}

/// The sums that were not reported.
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

/// The tokens of a prompt, by the rules of [`Prompt`]; `None` if the request has neither messages nor a prompt.
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
pub fn prompt_tokens(request: &serde_json::Value, counter: &dyn CountTokens) -> Option<u64> {
    Prompt::of(request).tokens(counter)
}

/// The tokens of an answer (U12): its text, its reasoning and refusal as far as they can be seen, what was spoken, as
/// text, and the names and arguments of its calls.
///
/// What else a server counts is not known here: hidden reasoning, sound, images, the frame around a call.
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
pub fn completion_tokens(message: &Message, counter: &dyn CountTokens) -> u64 {
    let texts = [&*message.content, &*message.reasoning, &*message.refusal];
    let spoken = message.audio.iter().map(|audio| &*audio.transcript);
    let calls = message.tool_calls.iter();
    let calls = calls.flat_map(|call| [&*call.name, call.arguments.as_str()]);
    let all = texts.into_iter().chain(spoken).chain(calls);
    sum(all
        .filter(|text| !text.is_empty())
        .map(|text| counter.count(text)))
}

impl Transcript {
    /// The tokens of what came of this choice; what was discarded counts as a token per [`BYTES_PER_TOKEN`] bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, Options};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"two words\"}}]}\n\n");
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().tokens(&words), 2);
    /// ```
    #[must_use]
    pub fn tokens(&self, counter: &dyn CountTokens) -> u64 {
        completion_tokens(&self.message(), counter).saturating_add(self.discarded_tokens())
    }

    /// The tokens of what was discarded: coarse, since the text is gone.
    #[must_use]
    pub fn discarded_tokens(&self) -> u64 {
        self.discarded_bytes().div_ceil(BYTES_PER_TOKEN)
    }
}

impl Demux {
    /// The tokens as far as they were reported; what is missing is counted now (see [`estimate`]).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Options, Prompt, UsageSource};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"cut in the\"}}]}\n\n");
    /// demux.finish();
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let usage = demux.estimated_usage(&Prompt::default(), &words);
    /// assert_eq!((usage.prompt_tokens, usage.completion_tokens), (None, Some(3)));
    /// assert_eq!(usage.source, UsageSource::Estimated);
    /// ```
    #[must_use]
    pub fn estimated_usage(&self, prompt: &Prompt, counter: &dyn CountTokens) -> Usage {
        let choices = self
            .choices()
            .map(|choice| (choice.index(), || choice.tokens(counter)));
        estimate_with(&self.usage(), || prompt.tokens(counter), choices)
    }
}

pub(super) fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const P: Option<u64> = Some(10);

    /// `prompt completion total [choices] source`, where `~` marks what was estimated.
    fn told(usage: &Usage) -> String {
        let mark = |estimated| if estimated { "~" } else { "" };
        let show = |figure: Option<u64>, estimated| {
            figure.map_or_else(
                || "-".to_owned(),
                |figure| format!("{}{figure}", mark(estimated)),
            )
        };
        let estimated = &usage.estimated;
        let choices: Vec<String> = usage
            .per_choice
            .iter()
            .map(|(index, tokens)| {
                let estimated = mark(estimated.choices.contains(index));
                format!("{index}:{estimated}{tokens}")
            })
            .collect();
        format!(
            "{} {} {} {choices:?} {:?}",
            show(usage.prompt_tokens, estimated.prompt),
            show(usage.completion_tokens, estimated.completion),
            show(usage.total_tokens, estimated.total),
            usage.source
        )
        .replace('"', "")
    }

    fn reported(prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) -> Usage {
        Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            total_tokens: total,
            source: UsageSource::Reported,
            raw: json!({}),
            ..Usage::default()
        }
    }

    #[track_caller]
    fn check(reported: &Usage, prompt: Option<u64>, choices: &[u64], expected: &str) {
        let choices: Vec<_> = choices
            .iter()
            .zip(0..)
            .map(|(tokens, index)| (ChoiceIndex(index), *tokens))
            .collect();
        assert_eq!(told(&estimate(reported, prompt, &choices)), expected);
    }

    #[test]
    fn u12_what_is_not_reported_is_estimated() {
        let none = Usage::default();
        check(&none, P, &[3, 4], "~10 ~7 ~17 [0:~3, 1:~4] Estimated");
        check(&none, None, &[3, 4], "- ~7 - [0:~3, 1:~4] Estimated");
        check(&none, P, &[], "~10 - - [] Estimated");
        check(&none, None, &[], "- - - [] Absent");
        check(&none, None, &[0], "- ~0 - [0:~0] Estimated");
    }

    #[test]
    fn what_is_reported_stays() {
        let all = reported(Some(5), Some(6), Some(11));
        check(&all, P, &[3], "5 6 11 [0:6] Reported");
        check(&all, P, &[3, 4], "5 6 11 [0:~3, 1:~4] Mixed");
        check(&all, P, &[], "5 6 11 [] Reported");
        let odd = reported(Some(5), Some(6), Some(99));
        check(&odd, P, &[3], "5 6 99 [0:6] Reported");
    }

    #[test]
    fn u05_a_part_is_filled_up() {
        check(
            &reported(None, None, Some(5)),
            P,
            &[3],
            "~10 ~3 5 [0:~3] Mixed",
        );
        check(
            &reported(None, None, Some(5)),
            None,
            &[],
            "- - 5 [] Reported",
        );
        check(
            &reported(Some(5), Some(6), None),
            P,
            &[3],
            "5 6 11 [0:6] Reported",
        );
        check(
            &reported(Some(5), None, None),
            None,
            &[3],
            "5 ~3 ~8 [0:~3] Mixed",
        );
        check(
            &reported(None, Some(6), None),
            P,
            &[3],
            "~10 6 ~16 [0:6] Mixed",
        );
        check(
            &reported(None, Some(6), None),
            None,
            &[3],
            "- 6 - [0:6] Reported",
        );
    }

    #[test]
    fn u07_a_choice_that_was_told_apart_keeps_its_figure() {
        let mut apart = reported(Some(5), None, None);
        apart.per_choice = vec![(ChoiceIndex(1), 8)];
        check(&apart, None, &[3, 4], "5 ~11 ~16 [0:~3, 1:8] Mixed");
        apart.per_choice = vec![(ChoiceIndex(1), 8), (ChoiceIndex(0), 2)];
        apart.completion_tokens = Some(10);
        check(&apart, None, &[3, 4], "5 10 15 [0:2, 1:8] Reported");
    }

    #[test]
    fn u12_the_counts_of_choices_that_were_not_reported_are_added() {
        let mut apart = reported(Some(5), Some(8), Some(13));
        apart.per_choice = vec![(ChoiceIndex(1), 8)];
        check(
            &apart,
            None,
            &[3, 4, 2],
            "5 ~13 ~18 [0:~3, 1:8, 2:~2] Mixed",
        );
        apart.completion_tokens = Some(20);
        check(&apart, None, &[3, 4], "5 20 13 [0:~3, 1:8] Mixed");
        apart.completion_tokens = Some(8);
        apart.total_tokens = None;
        check(&apart, None, &[3, 4], "5 ~11 ~16 [0:~3, 1:8] Mixed");
    }

    #[test]
    fn a_discarded_choice_counts_by_its_bytes() {
        let mut log = Transcript::new(ChoiceIndex(0), crate::Shape::Chat);
        let mut machine = crate::choice::Machine::new(&crate::Options::default());
        let mut say = |text: &'static str, log: &mut Transcript| {
            let update = crate::Update {
                content_update: Some(text.into()),
                ..crate::Update::default()
            };
            machine.apply(&update, crate::Place::default(), log);
        };
        let never = |_: &str| -> u64 { panic!("no text is left") };
        say("12345", &mut log);
        log.discard();
        assert_eq!(log.tokens(&never), 2);
        say("6789", &mut log);
        assert_eq!(log.tokens(&never), 3, "nine bytes");
        log.discard();
        assert_eq!(log.tokens(&never), 3, "once is enough");
    }
}
