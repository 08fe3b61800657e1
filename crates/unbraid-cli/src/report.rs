//! The report of a whole answer: the non-streaming response as one JSON object, and how each choice ended.

#[cfg(not(feature = "chat"))]
pub(crate) mod no_request_error;
#[cfg(feature = "chat")]
pub(crate) mod request_error;

use std::fmt::{self, Write};

use serde_json::{Value, json};
use unbraid::{Completions, internal::aggregate_json_with};
use unbraid_core::{
    ChoiceEnd, ChoiceIndex, ChoiceOutcome, Demux, Dialect, Prompt, StreamError, ToolCall,
    Transcript, Usage, UsageSource, Warning, internal::write_aggregate,
};

#[cfg(not(feature = "chat"))]
pub(crate) use self::no_request_error as request_error;
use crate::{
    args::UsageMode,
    json,
    labels::Labels,
    outcome::{EMPTY, is_finished, no_choice_error},
    usage::{self, CAN_COUNT},
};

/// An answer that is over.
#[derive(Debug)]
pub(crate) struct Report<'d> {
    response: Response<'d>,
    closed: Option<Result<(), StreamError>>,
    warnings: Vec<Warning>,
    /// In order of appearance.
    choices: Vec<ChoiceOutcome>,
    usage: Usage,
    /// In which tokens are counted, if they can be.
    encoding: Option<&'static str>,
    dialect: Option<Dialect>,
    /// Of several providers, what each choice is from, as JSON.
    origins: Vec<(ChoiceIndex, Vec<(&'static str, String)>)>,
}

/// The source of the non-streaming response, which is serialized when it is written.
#[derive(Debug)]
enum Response<'d> {
    Demux(&'d Demux),
    Completions(&'d Completions),
}

impl<'d> Report<'d> {
    pub(crate) fn from_demux(demux: &'d Demux, prompt: &Prompt, mode: UsageMode) -> Self {
        Self {
            response: Response::Demux(demux),
            closed: demux.closed().cloned(),
            warnings: demux.warnings(),
            choices: demux.choices().filter_map(Transcript::outcome).collect(),
            usage: match mode {
                UsageMode::Reported => usage::reported_by(demux),
                UsageMode::Estimate => usage::estimated(demux, prompt),
            },
            encoding: usage::encoding(demux.metadata(), prompt),
            dialect: demux.metadata().dialect(),
            origins: Vec::new(),
        }
    }

    /// Waits until the stream is over, then reports it.
    pub(crate) async fn from_completions(
        completions: &'d Completions,
        prompt: &Prompt,
        mode: UsageMode,
        labels: &Labels,
    ) -> Self {
        let closed = completions.closed().await;
        let choices = outcomes(completions).await;
        let usage = completions.usage().await;
        Self {
            closed: Some(closed),
            origins: origins(completions, &choices, labels).await,
            response: Response::Completions(completions),
            warnings: completions.warnings(),
            usage: match mode {
                UsageMode::Estimate if CAN_COUNT => usage,
                UsageMode::Reported | UsageMode::Estimate => {
                    usage::reported(usage, choices.iter().map(|choice| choice.choice))
                }
            },
            choices,
            encoding: usage::encoding(&completions.metadata(), prompt),
            dialect: completions.metadata().dialect(),
        }
    }

    /// Reports a request that brought no answer: a response without choices, and the request's error.
    #[cfg(feature = "chat")]
    pub(crate) fn failed_request(error: &unbraid_http::HttpError) -> Value {
        let mut demux = Demux::new(unbraid_core::Config::default());
        demux.abort(StreamError::Cancelled);
        let report = Report::from_demux(&demux, &Prompt::default(), UsageMode::Reported);
        let mut text = String::new();
        let _infallible = report.write(&mut text);
        let mut response: Value = serde_json::from_str(&text).unwrap_or_else(|_| json!({}));
        if let Some(Value::Object(details)) = response.get_mut("unbraid") {
            details.insert("end".into(), error.as_str().into());
            details.insert("error".into(), request_error::to_json(error));
        }
        response
    }

    /// Writes the non-streaming response as JSON text, with the additional key `unbraid`.
    ///
    /// It replaces an unknown field of that name. Parsing the response to add it would lose digits of its numbers.
    pub(crate) fn write(&self, out: &mut dyn Write) -> fmt::Result {
        let details = self.details();
        let more = &[("unbraid", &*details)];
        match &self.response {
            Response::Demux(demux) => {
                write_aggregate(demux.metadata(), &demux.usage(), demux.choices(), more, out)
            }
            Response::Completions(completions) => {
                out.write_str(&aggregate_json_with(completions, more))
            }
        }
    }

    fn details(&self) -> String {
        let mut choices: Vec<&ChoiceOutcome> = self.choices.iter().collect();
        choices.sort_by_key(|choice| choice.choice);
        let choices = choices.into_iter().map(|choice| self.choice_json(choice));
        let choices: Vec<String> = choices.collect();
        object(&[
            (
                "dialect",
                json!(self.dialect.map(Dialect::as_str)).to_string(),
            ),
            ("end", json!(self.end()).to_string()),
            ("error", self.error()),
            ("warnings", json!(self.warnings).to_string()),
            ("choices", format!("[{}]", choices.join(","))),
            ("usage", self.usage().to_string()),
        ])
    }

    fn choice_json(&self, choice: &ChoiceOutcome) -> String {
        let mut fields = choice_fields(choice);
        let mut origins = self.origins.iter();
        if let Some((_, origin)) = origins.find(|(index, _)| *index == choice.choice) {
            fields.extend_from_slice(origin);
        }
        object(&fields)
    }

    /// The error that ended the stream. A stream without a choice is an error too, even if it ended normally.
    fn error(&self) -> String {
        match &self.closed {
            Some(Err(StreamError::Transport(error))) => {
                let mut object = json!(StreamError::Transport(error.clone()));
                request_error::add_cause(error, &mut object);
                object.to_string()
            }
            Some(Err(error)) => json::text(error),
            Some(Ok(())) if self.choices.is_empty() => no_choice_error().to_string(),
            Some(Ok(())) | None => Value::Null.to_string(),
        }
    }

    /// How the stream ended: its own error, or else the worst end of a choice.
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
        // These two ends concern the stream as a whole, and so say more about it than the end of a single choice.
        first(|end| matches!(end, ChoiceEnd::Interrupted))
            .or_else(|| first(|end| matches!(end, ChoiceEnd::DoneWithoutFinish)))
            .or_else(|| first(|_| true))
            .map_or("finished", ChoiceEnd::as_str)
    }

    /// The tokens, with counted figures where the server reported none. If it reported fewer completion tokens than arrived,
    /// the count is added (U15). The response's own `usage` has only the reported figures.
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
            "encoding": self.encoding.filter(|_| counted),
        });
        let more = [
            ("cached_tokens", usage.cached_tokens),
            ("reasoning_tokens", usage.reasoning_tokens),
            ("completion_tokens_counted", usage.counted),
        ];
        if let Value::Object(fields) = &mut fields {
            let known = more.into_iter();
            fields.extend(known.filter_map(|(name, tokens)| Some((name.into(), tokens?.into()))));
        }
        fields
    }
}

/// The outcome of each choice of a completion, in order of appearance. Waits until the completion is over.
pub(crate) async fn outcomes(completions: &Completions) -> Vec<ChoiceOutcome> {
    let mut choices = completions.choices();
    let mut outcomes = Vec::new();
    while let Some(Ok(choice)) = choices.next().await {
        outcomes.push(choice.outcome().await);
    }
    outcomes
}

/// Builds an object from fields that are JSON text. A [`Value`] would not keep every digit of a server's error.
fn object(fields: &[(&str, String)]) -> String {
    let field = |(name, text): &(&str, String)| format!("\"{name}\":{text}");
    let fields: Vec<String> = fields.iter().map(field).collect();
    format!("{{{}}}", fields.join(","))
}

fn choice_fields(choice: &ChoiceOutcome) -> Vec<(&'static str, String)> {
    let calls: Vec<Value> = choice.message.tool_calls.iter().map(call_json).collect();
    let error = if let ChoiceEnd::Transport(error) = &choice.end {
        let mut object = json!(choice.end.cause());
        request_error::add_cause(error, &mut object);
        object.to_string()
    } else {
        json::text(&choice.end.cause())
    };
    vec![
        ("index", choice.choice.to_string()),
        ("end", json!(choice.end.as_str()).to_string()),
        ("error", error),
        ("tool_calls", Value::from(calls).to_string()),
    ]
}

/// What the choices of several providers are from: the provider, the dialect and the model of its answer, and the usage as it
/// reported it.
async fn origins(
    completions: &Completions,
    choices: &[ChoiceOutcome],
    labels: &Labels,
) -> Vec<(ChoiceIndex, Vec<(&'static str, String)>)> {
    let mut origins = Vec::new();
    for outcome in choices {
        let choice = outcome.choice;
        let Some(label) = labels.get(choice) else {
            continue;
        };
        let metadata = completions.choice_metadata(choice).unwrap_or_default();
        let usage = completions.choice_usage(choice).await;
        let usage = usage.and_then(|usage| usage.raw_json());
        let model = metadata.model.as_deref().unwrap_or(&label.model);
        let dialect = metadata.dialect().map(Dialect::as_str);
        let fields = vec![
            ("provider", json!(label.provider).to_string()),
            ("dialect", json!(dialect).to_string()),
            ("model", json!(model).to_string()),
            ("usage", usage.unwrap_or_else(|| "null".to_owned())),
        ];
        origins.push((choice, fields));
    }
    origins
}

fn call_json(call: &ToolCall) -> Value {
    json!({ "status": call.status.map(|status| status.as_str()), "error": call.problem() })
}
