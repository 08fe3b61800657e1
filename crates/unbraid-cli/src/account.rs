//! An answer as one JSON object: the non-streaming response, and how it came to be.

use serde_json::{Value, json};
use unbraid::{Completions, tokens::Counter};
use unbraid_core::{
    ChoiceEnd, ChoiceOutcome, Demux, Prompt, StreamError, ToolCall, Transcript, Usage, UsageSource,
    Warning,
};

use crate::{
    chat::cause,
    exit::{self, is_finished},
};

/// The end of a stream that held no choice, as [`StreamError::Empty`] names it.
const EMPTY: &str = "empty";

/// An answer that is over, whoever read it.
#[derive(Debug)]
pub(crate) struct Account {
    /// JSON text, in which numbers stand as the server wrote them.
    response: String,
    pub(crate) closed: Option<Result<(), StreamError>>,
    warnings: Vec<Warning>,
    /// In order of appearance.
    pub(crate) choices: Vec<ChoiceOutcome>,
    usage: Usage,
    counter: Counter,
}

impl Account {
    pub(crate) fn of_demux(demux: &Demux, prompt: &Prompt) -> Self {
        let counter = Counter::for_response(demux.metadata(), prompt);
        Self {
            response: demux.aggregate_json(),
            closed: demux.closed().cloned(),
            warnings: demux.warnings(),
            choices: demux.choices().filter_map(Transcript::outcome).collect(),
            usage: demux.estimated_usage(prompt, &counter),
            counter,
        }
    }

    /// Waits until the stream is over.
    pub(crate) async fn of_completions(completions: &Completions, prompt: &Prompt) -> Self {
        Self {
            closed: Some(completions.closed().await),
            response: completions.aggregate_json().await,
            warnings: completions.warnings(),
            choices: ended(completions).await,
            usage: completions.usage().await,
            counter: Counter::for_response(&completions.metadata(), prompt),
        }
    }

    /// The non-streaming response as JSON text, with one key more: how it came to be.
    pub(crate) fn into_json_text(self) -> String {
        let account = self.json().to_string();
        let mut response = self.response;
        response.truncate(response.len().saturating_sub("}".len()));
        response + ",\"unbraid\":" + &account + "}"
    }

    fn json(&self) -> Value {
        let mut choices: Vec<&ChoiceOutcome> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.choice);
        json!({
            "end": self.end(),
            "error": self.error(),
            "warnings": self.warnings,
            "choices": choices.into_iter().map(choice).collect::<Vec<Value>>(),
            "usage": self.usage(),
        })
    }

    /// What ended the stream. One without any choice is no success, though nothing else was wrong with it.
    fn error(&self) -> Value {
        match &self.closed {
            Some(Err(error)) => {
                let mut object = json!(error);
                if let StreamError::Transport(failed) = error {
                    cause::add_to(failed, &mut object);
                }
                object
            }
            Some(Ok(())) if self.choices.is_empty() => {
                json!({ "type": EMPTY, "message": exit::NO_CHOICE })
            }
            Some(Ok(())) | None => Value::Null,
        }
    }

    /// How the stream ended: by its own error, or else as the choice that fared worst.
    fn end(&self) -> &'static str {
        match &self.closed {
            Some(Err(error)) => return error.as_str(),
            Some(Ok(())) if self.choices.is_empty() => return EMPTY,
            Some(Ok(())) | None => {}
        }
        let first = |wanted: fn(&ChoiceEnd) -> bool| {
            let mut ends = self.choices.iter().map(|choice| &choice.end);
            ends.find(|end| !is_finished(end) && wanted(end))
        };
        first(|end| matches!(end, ChoiceEnd::Interrupted))
            .or_else(|| first(|end| matches!(end, ChoiceEnd::DoneWithoutFinish)))
            .or_else(|| first(|_| true))
            .map_or("finished", ChoiceEnd::as_str)
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
pub(crate) async fn ended(completions: &Completions) -> Vec<ChoiceOutcome> {
    let mut choices = completions.choices();
    let mut all = Vec::new();
    while let Some(Ok(choice)) = choices.next().await {
        all.push(choice.outcome().await);
    }
    all
}

fn choice(choice: &ChoiceOutcome) -> Value {
    let calls: Vec<Value> = choice.message.tool_calls.iter().map(status).collect();
    let mut error = json!(choice.end.cause());
    if let ChoiceEnd::Transport(failed) = &choice.end {
        cause::add_to(failed, &mut error);
    }
    json!({
        "index": choice.choice.0,
        "end": choice.end.as_str(),
        "error": error,
        "tool_calls": calls,
    })
}

fn status(call: &ToolCall) -> Value {
    json!({ "status": call.status.map(|status| status.as_str()), "error": call.problem() })
}
