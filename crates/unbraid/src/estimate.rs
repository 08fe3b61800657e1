//! Counts the tokens that a server did not report, with the tokenizer of the completion.

use std::sync::Arc;

use tokio::runtime::Handle;
use unbraid_core::{ChoiceIndex, Metadata, Tokenizer, Usage, estimate_for, estimate_with};

use crate::{
    blocking::run_blocking,
    state::{
        choice_log::ChoiceLog,
        completion::{CompletionState, Estimate},
        merged::sum_usage,
    },
    sync::shared::Shared,
};

/// The usage of a completion that has closed, with what was not reported counted on a blocking thread.
///
/// It never fails: without a tokenizer or a runtime it is what was reported. If no thread starts in time, because all of
/// them are taken or the runtime is shutting down, it is counted on the task: those threads may wait for this very count.
pub(crate) async fn estimated(completion: &Shared<CompletionState>, reported: Usage) -> Usage {
    let Some(estimate) = completion.read(|state| state.estimate.clone()) else {
        return reported;
    };
    let counted = estimate.counted.get_or_try_init(|| async {
        Handle::try_current().map_err(|_| NotCounted)?;
        let count = Count::new(completion, Arc::clone(&estimate));
        let counted = run_blocking(count, |count| count.run()).await;
        counted.result.map_err(|_panic| NotCounted)
    });
    counted.await.cloned().unwrap_or(reported)
}

/// Nothing could count.
struct NotCounted;

/// A source that answered.
struct Answered {
    reported: Usage,
    choices: Vec<ChoiceLog>,
    metadata: Metadata,
}

/// What counting needs.
struct Count {
    sources: Vec<Answered>,
    dialects_differ: bool,
    estimate: Arc<Estimate>,
}

impl Count {
    fn new(completion: &Shared<CompletionState>, estimate: Arc<Estimate>) -> Self {
        completion.read(|state| Self {
            sources: state
                .sources
                .answered()
                .map(|source| Answered {
                    reported: state.usage_of(source),
                    choices: source.logs.to_vec(),
                    metadata: source.metadata.clone(),
                })
                .collect(),
            dialects_differ: state.sources.dialects_differ(),
            estimate,
        })
    }

    fn run(&self) -> Usage {
        let usages = self.sources.iter().map(|source| self.estimate(source));
        sum_usage(self.dialects_differ, usages)
    }

    /// Each source has its own tokenizer, because each may be another model.
    fn estimate(&self, source: &Answered) -> Usage {
        let prompt = &self.estimate.prompt;
        let tokenizer = self.estimate.tokenizer.select(&source.metadata, prompt);
        let tokenizer = &*tokenizer;
        let indices: Vec<ChoiceIndex> = source.choices.iter().map(ChoiceLog::index).collect();
        let choices = source.choices.iter().zip(&indices);
        let choices = choices.map(|(log, index)| (*index, || self.tokens(log, tokenizer)));
        let reported = &source.reported;
        if self.sources.len() > 1 {
            estimate_with(reported, || self.prompt_of(&indices, tokenizer), choices)
        } else {
            estimate_for(reported, prompt, tokenizer, choices)
        }
    }

    /// The tokens of the prompt that one of several sources was sent. If the request holds a list of prompts, as a fan-out
    /// sends it, these are the prompts that the source's choices answer.
    fn prompt_of(&self, choices: &[ChoiceIndex], tokenizer: &dyn Tokenizer) -> Option<u64> {
        let prompt = &self.estimate.prompt;
        let Some(n) = prompt.choices_per_prompt() else {
            return prompt.tokens(tokenizer);
        };
        let is_answered = |position| {
            choices
                .iter()
                .any(|choice| choice.split_by_prompt(n).0 == position)
        };
        let tokens = prompt.tokens_of(is_answered, tokenizer);
        // Choices beyond the list show that the source numbers its choices differently.
        tokens
            .filter(|tokens| *tokens > 0)
            .or_else(|| prompt.tokens(tokenizer))
    }

    /// Copies the text, so that no reader of the log waits while it is counted.
    fn tokens(&self, log: &ChoiceLog, tokenizer: &dyn Tokenizer) -> u64 {
        let (message, discarded) = log.read(|state| {
            let transcript = &state.transcript;
            (transcript.message(), transcript.discarded_tokens())
        });
        let answer = self.estimate.prompt.completion_tokens(&message, tokenizer);
        answer.saturating_add(discarded)
    }
}
