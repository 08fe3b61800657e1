//! Translates a chat completion to the form of another provider.
//!
//! Every field of the request is taken by a translation, or refused by its name: none is left out. Fields that the provider
//! itself has, and chat completions do not, are sent as they are.

mod anthropic;
mod assistant;
mod body;
mod cohere;
mod content;
mod gemini;
mod json_object;
mod messages;
mod ollama;
mod options;
mod reader;
mod responses;
mod tools;

use serde_json::{Map, Value};

use self::reader::Reader;
use super::{Kind, Request, RequestError, requested::Choices};
use crate::provider::Provider;

/// The fields that a provider receives.
pub(super) fn fields(
    request: &Request,
    provider: Provider,
    choices: Choices,
) -> Result<Map<String, Value>, RequestError> {
    let mut reader = Reader::new(provider, String::new(), &request.fields);
    if request.kind == Kind::Text {
        return Err(reader.refuse("prompt", "it has no text completions"));
    }
    options::skip_defaults(&mut reader);
    let body = match provider {
        Provider::OpenAi => return Ok(request.fields.clone()),
        Provider::Responses => responses::body(&mut reader, choices)?,
        Provider::Anthropic => anthropic::body(&mut reader, choices)?,
        Provider::Gemini => gemini::body(&mut reader, choices)?,
        Provider::Ollama => ollama::body(&mut reader, choices)?,
        Provider::Cohere => cohere::body(&mut reader, choices)?,
    };
    reader.finish()?;
    Ok(body)
}

/// Whether an entry of an answer's `content_parts` belongs into the next request to the provider that sent it.
pub(super) fn is_state(part: &Value) -> bool {
    anthropic::is_own_part(part) || gemini::is_own_part(part) || responses::is_own_part(part)
}

/// The type of a part or an item.
fn kind(value: &Value) -> &str {
    value
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
