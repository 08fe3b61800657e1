//! The fields of a request that are not part of its conversation.

use serde_json::{Value, json};

use super::{reader::Reader, tools::ToolChoice};
use crate::request::{RequestError, requested::Choices};

/// The format of the answer.
pub(super) enum Format<'r> {
    Text,
    Json,
    Schema(Schema<'r>),
}

pub(super) struct Schema<'r> {
    /// The name, the description and whether the schema is strict, which not every provider has.
    pub(super) rest: Reader<'r>,
    pub(super) schema: &'r Value,
}

/// Takes what asks for nothing, and what every translated request has.
pub(super) fn skip_defaults(request: &mut Reader<'_>) {
    request.take("stream");
    for name in ["frequency_penalty", "presence_penalty"] {
        request.skip_if(name, |penalty| penalty.as_f64() == Some(0.0));
    }
    for name in ["logprobs", "store"] {
        request.skip_if(name, |flag| flag == &Value::Bool(false));
    }
    request.skip_if("top_logprobs", |number| number.as_u64() == Some(0));
    request.skip_if("parallel_tool_calls", |flag| flag == &Value::Bool(true));
    request.skip_if("logit_bias", |bias| bias == &json!({}));
    request.skip_if("stop", |stop| stop == &json!([]));
    request.skip_if("modalities", |modalities| modalities == &json!(["text"]));
    // Every provider reports its usage in the stream.
    let reports_usage = |options: &Value| {
        let names = options.as_object().map(|options| options.keys());
        names.is_some_and(|mut names| names.all(|name| name == "include_usage"))
    };
    request.skip_if("stream_options", reports_usage);
}

/// Takes `n`, if it is more than 1 and has to be sent.
pub(super) fn choices(request: &mut Reader<'_>, choices: Choices) -> Option<Value> {
    let n = request.take("n")?;
    let is_sent = choices == Choices::AsRequested && n.as_u64() != Some(1);
    is_sent.then(|| n.clone())
}

/// Refuses several choices, for a provider with one for each request.
pub(super) fn one_choice(request: &mut Reader<'_>, how: Choices) -> Result<(), RequestError> {
    const WHY: &str =
        "it gives one choice for each request; use ChoiceStrategy::FanOut or ChoiceStrategy::Auto";
    match choices(request, how) {
        None => Ok(()),
        Some(_) => Err(request.refuse("n", WHY)),
    }
}

/// Takes the maximum number of tokens, which has two names.
pub(super) fn max_tokens<'r>(request: &mut Reader<'r>) -> Result<Option<&'r Value>, RequestError> {
    let old = request.take("max_tokens");
    let new = request.take("max_completion_tokens");
    match (old, new) {
        (Some(old), Some(new)) if old != new => {
            Err(request.refuse("max_tokens", "max_completion_tokens has another value"))
        }
        (old, new) => Ok(old.or(new)),
    }
}

/// Takes the texts that end the answer, as a list.
pub(super) fn stop(request: &mut Reader<'_>) -> Option<Value> {
    match request.take("stop")? {
        Value::String(text) => Some(json!([text])),
        other => Some(other.clone()),
    }
}

/// Takes the choice of a tool, for a provider that always leaves it to the model.
pub(super) fn only_auto(request: &mut Reader<'_>) -> Result<(), RequestError> {
    match ToolChoice::take(request)? {
        None | Some(ToolChoice::Auto) => Ok(()),
        Some(_) => Err(request.refuse_field("tool_choice")),
    }
}

impl<'r> Format<'r> {
    /// Takes the format of the answer; that of text if there is none.
    pub(super) fn take(request: &mut Reader<'r>) -> Result<Self, RequestError> {
        let Some(mut format) = request.object("response_format")? else {
            return Ok(Self::Text);
        };
        let read = match format.required_text("type")? {
            "text" => Self::Text,
            "json_object" => Self::Json,
            "json_schema" => {
                let mut rest = format.required_object("json_schema")?;
                let schema = rest.take("schema");
                let schema = schema.ok_or_else(|| rest.refuse("schema", "it is missing"))?;
                Self::Schema(Schema { rest, schema })
            }
            _ => return Err(format.refuse("type", "it has no such format")),
        };
        format.finish()?;
        Ok(read)
    }
}

impl<'r> Schema<'r> {
    /// The schema alone. Its name only labels it, and providers without `strict` always enforce it.
    pub(super) fn into_value(mut self) -> Result<Value, RequestError> {
        self.rest.take("name");
        self.rest.take("strict");
        self.rest.finish()?;
        Ok(self.schema.clone())
    }
}
