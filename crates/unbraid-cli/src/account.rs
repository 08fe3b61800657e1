//! An answer as one JSON object: the non-streaming response, and how it came to be.

use serde_json::{Value, json};
use unbraid::{Completions, tokens::Counter};
use unbraid_core::{
    Call, Demux, End, Finished, Prompt, StreamError, Transcript, Usage, UsageSource, Warning,
};

use crate::exit::is_finished;

/// An answer that is over, whoever read it.
#[derive(Debug)]
pub(crate) struct Account {
    response: Value,
    pub(crate) closed: Option<Result<(), StreamError>>,
    warnings: Vec<Warning>,
    /// In order of appearance.
    pub(crate) choices: Vec<Finished>,
    usage: Usage,
    counter: Counter,
}

impl Account {
    pub(crate) fn of_demux(demux: &Demux, prompt: &Prompt) -> Self {
        let counter = Counter::of_answer(demux.metadata(), prompt);
        Self {
            response: demux.aggregate(),
            closed: demux.closed().cloned(),
            warnings: demux.warnings(),
            choices: demux.choices().filter_map(Transcript::finished).collect(),
            usage: demux.estimated_usage(prompt, &counter),
            counter,
        }
    }

    /// Waits until the stream is over.
    pub(crate) async fn of_completions(completions: &Completions, prompt: &Prompt) -> Self {
        Self {
            closed: Some(completions.closed().await),
            response: completions.aggregate().await,
            warnings: completions.warnings(),
            choices: ended(completions).await,
            usage: completions.usage().await,
            counter: Counter::of_answer(&completions.metadata(), prompt),
        }
    }

    /// The non-streaming response, with one key more: how it came to be.
    pub(crate) fn into_json(self) -> Value {
        let account = self.json();
        let mut response = self.response;
        if let Value::Object(fields) = &mut response {
            fields.insert("unbraid".into(), account);
        }
        response
    }

    fn json(&self) -> Value {
        let mut choices: Vec<&Finished> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.index);
        let error = self
            .closed
            .as_ref()
            .and_then(|closed| closed.as_ref().err());
        let warnings: Vec<Value> = self.warnings.iter().map(Warning::to_json).collect();
        json!({
            "end": self.end(),
            "error": error.map(StreamError::to_json),
            "warnings": warnings,
            "choices": choices.into_iter().map(choice).collect::<Vec<Value>>(),
            "usage": self.usage(),
        })
    }

    /// How the stream ended: by its own error, or else as the choice that fared worst.
    fn end(&self) -> &'static str {
        if let Some(Err(error)) = &self.closed {
            return error.name();
        }
        let first = |wanted: fn(&End) -> bool| {
            let mut ends = self.choices.iter().map(|choice| &choice.end);
            ends.find(|end| !is_finished(end) && wanted(end))
        };
        first(|end| matches!(end, End::Interrupted))
            .or_else(|| first(|end| matches!(end, End::DoneWithoutFinish)))
            .or_else(|| first(|_| true))
            .map_or("finished", End::name)
    }

    /// The tokens, what was not reported counted; beside a completion that is below what was received stands the count
    /// (U15). The response's own `usage` holds what was reported.
    fn usage(&self) -> Value {
        let usage = &self.usage;
        let estimated = &usage.estimated;
        let sums = [
            ("prompt_tokens", estimated.prompt),
            ("completion_tokens", estimated.completion),
            ("total_tokens", estimated.total),
        ];
        let sums = sums.into_iter().filter(|(_, estimated)| *estimated);
        let choices = usage.per_choice.iter().map(|(index, tokens)| {
            let estimated = estimated.choices.contains(index);
            json!({ "index": index.0, "completion_tokens": tokens, "estimated": estimated })
        });
        let counted = matches!(usage.source, UsageSource::Estimated | UsageSource::Mixed);
        let mut fields = json!({
            "source": usage.source.as_str(),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
            "estimated": sums.map(|(name, _)| name).collect::<Vec<&str>>(),
            "choices": choices.collect::<Vec<Value>>(),
            "encoding": counted.then(|| self.counter.encoding().name()),
        });
        if let (Some(counted), Value::Object(fields)) = (usage.counted, &mut fields) {
            fields.insert("completion_tokens_counted".into(), counted.into());
        }
        fields
    }
}

/// What became of each choice of a completion that is over, in order of appearance.
pub(crate) async fn ended(completions: &Completions) -> Vec<Finished> {
    let mut choices = completions.choices();
    let mut all = Vec::new();
    while let Some(Ok(choice)) = choices.next().await {
        all.push(choice.ended().await);
    }
    all
}

fn choice(choice: &Finished) -> Value {
    let calls: Vec<Value> = choice.message.tool_calls.iter().map(status).collect();
    json!({
        "index": choice.index.0,
        "end": choice.end.name(),
        "error": choice.end.error_json(),
        "tool_calls": calls,
    })
}

fn status(call: &Call) -> Value {
    json!({ "status": call.status.map(|status| status.as_str()), "error": call.error_json() })
}
