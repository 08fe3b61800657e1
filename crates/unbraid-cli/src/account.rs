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
    json_text,
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
        let account = self.json();
        let mut response = self.response;
        response.truncate(response.len().saturating_sub("}".len()));
        response + ",\"unbraid\":" + &account + "}"
    }

    fn json(&self) -> String {
        let mut choices: Vec<&ChoiceOutcome> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.choice);
        let choices: Vec<String> = choices.into_iter().map(choice).collect();
        object(&[
            ("end", json!(self.end()).to_string()),
            ("error", self.error()),
            ("warnings", json!(self.warnings).to_string()),
            ("choices", format!("[{}]", choices.join(","))),
            ("usage", self.usage().to_string()),
        ])
    }

    /// What ended the stream. One without any choice is no success, though nothing else was wrong with it.
    fn error(&self) -> String {
        match &self.closed {
            Some(Err(StreamError::Transport(failed))) => {
                let mut object = json!(StreamError::Transport(failed.clone()));
                cause::add_to(failed, &mut object);
                object.to_string()
            }
            Some(Err(error)) => json_text::of(error),
            Some(Ok(())) if self.choices.is_empty() => {
                json!({ "type": EMPTY, "message": exit::NO_CHOICE }).to_string()
            }
            Some(Ok(())) | None => Value::Null.to_string(),
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

/// An object whose fields are JSON text already: a [`Value`] would not keep every digit of a server's error.
fn object(fields: &[(&str, String)]) -> String {
    let field = |(name, text): &(&str, String)| format!("\"{name}\":{text}");
    let fields: Vec<String> = fields.iter().map(field).collect();
    format!("{{{}}}", fields.join(","))
}

fn choice(choice: &ChoiceOutcome) -> String {
    let calls: Vec<Value> = choice.message.tool_calls.iter().map(status).collect();
    let error = if let ChoiceEnd::Transport(failed) = &choice.end {
        let mut error = json!(choice.end.cause());
        cause::add_to(failed, &mut error);
        error.to_string()
    } else {
        json_text::of(&choice.end.cause())
    };
    object(&[
        ("index", choice.choice.to_string()),
        ("end", json!(choice.end.as_str()).to_string()),
        ("error", error),
        ("tool_calls", Value::from(calls).to_string()),
    ])
}

fn status(call: &ToolCall) -> Value {
    json!({ "status": call.status.map(|status| status.as_str()), "error": call.problem() })
}
