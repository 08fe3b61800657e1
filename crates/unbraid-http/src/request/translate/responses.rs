//! The Responses API of OpenAI.

mod items;

use serde_json::{Map, Value, json};

use super::{
    body::Body,
    messages,
    options::{self, Format},
    reader::Reader,
    tools::{self, Tool, ToolChoice},
};
use crate::request::{RequestError, requested::Choices};

pub(super) use self::items::is_own_part;

/// Fields of the API itself, and those that chat completions have under the same name.
const OWN: [&str; 24] = [
    "temperature",
    "top_p",
    "top_logprobs",
    "parallel_tool_calls",
    "metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier",
    "instructions",
    "previous_response_id",
    "conversation",
    "prompt",
    "truncation",
    "context_management",
    "max_tool_calls",
    "background",
    "background_options",
    "access_programs",
    "image",
    "moderation",
    "include",
];

const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

pub(super) fn body(
    request: &mut Reader<'_>,
    choices: Choices,
) -> Result<Map<String, Value>, RequestError> {
    options::one_choice(request, choices)?;
    let mut body = Body::default();
    body.copy(request, &["model"]);
    body.set("input", items::all(messages::take(request)?)?);
    set_tools(request, &mut body)?;
    let max_tokens = options::max_tokens(request)?;
    body.set_some("max_output_tokens", max_tokens.cloned());
    let reasons = set_reasoning(request, &mut body)?;
    set_text(request, &mut body)?;
    // A chat completion is not stored unless it asks for it; a response is.
    let store = request.take("store").cloned();
    body.set("store", store.unwrap_or_else(|| false.into()));
    let has_logprobs = request.take("logprobs").is_some();
    body.copy(request, &OWN);
    let mut stream_options = Body::own(request, "stream_options")?;
    stream_options.remove("include_usage"); // usage is always reported here
    body.set_object("stream_options", stream_options);
    // What is not stored has to come back with the next request.
    body.include(ENCRYPTED_REASONING, reasons);
    body.include("message.output_text.logprobs", has_logprobs);
    body.set("stream", true);
    Ok(body.into_fields())
}

impl Body {
    /// Adds an entry to the list of what the answer includes.
    fn include(&mut self, entry: &str, is_wanted: bool) {
        let mut list = match self.get("include") {
            None => Vec::new(),
            Some(Value::Array(list)) => list.clone(),
            Some(_) => return,
        };
        if is_wanted && !list.contains(&entry.into()) {
            list.push(entry.into());
            self.set("include", list);
        }
    }
}

/// How much the model reasons. Returns whether the request says it.
fn set_reasoning(request: &mut Reader<'_>, body: &mut Body) -> Result<bool, RequestError> {
    let mut reasoning = Body::own(request, "reasoning")?;
    if let Some(effort) = request.text("reasoning_effort")? {
        reasoning.add(request, "reasoning_effort", "effort", effort)?;
    }
    let is_given = !reasoning.is_empty();
    body.set_object("reasoning", reasoning);
    Ok(is_given)
}

/// The format of the answer.
fn set_text(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    let mut text = Body::own(request, "text")?;
    let format = match Format::take(request)? {
        Format::Text => None,
        Format::Json => Some(json!({ "type": "json_object" })),
        Format::Schema(mut schema) => {
            let mut format = Body::default();
            format.set("type", "json_schema");
            format.copy(&mut schema.rest, &["name", "description", "strict"]);
            format.set("schema", schema.schema.clone());
            schema.rest.finish()?;
            Some(format.into())
        }
    };
    if let Some(format) = format {
        text.add(request, "response_format", "format", format)?;
    }
    text.rename(request, "verbosity", "verbosity")?;
    body.set_object("text", text);
    Ok(())
}

fn set_tools(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    // The tools that OpenAI runs are named by their type.
    let is_own = |tool: &Value| {
        let kind = tool.get("type").and_then(Value::as_str);
        kind.is_some_and(|kind| tool.get(kind).is_none_or(|inner| !inner.is_object()))
    };
    let tools = tools::take(request, is_own)?.into_iter();
    let tools: Vec<Value> = tools.map(tool).collect::<Result<_, _>>()?;
    body.set_list("tools", tools);
    let choice = ToolChoice::take(request)?.map(|choice| match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Function(name) => json!({ "type": "function", "name": name }),
        ToolChoice::Custom(name) => json!({ "type": "custom", "name": name }),
    });
    body.set_some("tool_choice", choice);
    Ok(())
}

fn tool(tool: Tool<'_>) -> Result<Value, RequestError> {
    let mut sent = Body::default();
    match tool {
        Tool::Own(tool) => return Ok(tool.clone()),
        Tool::Function(function) => {
            sent.set("type", "function");
            sent.set("name", function.name);
            sent.set_some("description", function.description);
            sent.set("parameters", function.schema());
            // The default is true here, and false in chat completions.
            sent.set("strict", function.is_strict.unwrap_or(false));
            function.rest.finish()?;
        }
        Tool::Custom(mut custom) => {
            sent.set("type", "custom");
            sent.copy(&mut custom, &["name", "description"]);
            if let Some(mut format) = custom.object("format")? {
                sent.set("format", custom_format(&mut format)?);
                format.finish()?;
            }
            custom.finish()?;
        }
    }
    Ok(sent.into())
}

/// The format of a custom tool's input. A grammar has its fields in an object of its own in chat completions.
fn custom_format(format: &mut Reader<'_>) -> Result<Value, RequestError> {
    let mut sent = Body::default();
    sent.copy(format, &["type"]);
    if let Some(mut grammar) = format.object("grammar")? {
        sent.copy(&mut grammar, &["syntax", "definition"]);
        grammar.finish()?;
    }
    Ok(sent.into())
}
