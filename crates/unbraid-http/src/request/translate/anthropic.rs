//! The Messages API of Anthropic.

use serde_json::{Map, Value, json};

use super::{
    assistant::{Assistant, Call},
    body::Body,
    content::{Content, ImageSource, Part, PartKind},
    kind,
    messages::{self, CallResult, Turn},
    options::{self, Format},
    reader::Reader,
    tools::{self, Tool, ToolChoice},
};
use crate::{
    limits::ANTHROPIC_MAX_TOKENS,
    request::{RequestError, requested::Choices},
};

/// Fields of the API itself, beside those that chat completions have.
const OWN: [&str; 12] = [
    "thinking",
    "top_k",
    "service_tier",
    "container",
    "context_management",
    "mcp_servers",
    "cache_control",
    "inference_geo",
    "speed",
    "diagnostics",
    "user_profile_id",
    "workspace_id",
];

pub(super) fn body(
    request: &mut Reader<'_>,
    choices: Choices,
) -> Result<Map<String, Value>, RequestError> {
    options::one_choice(request, choices)?;
    let mut body = Body::default();
    body.copy(request, &["model"]);
    let max_tokens = options::max_tokens(request)?.cloned();
    body.set(
        "max_tokens",
        max_tokens.unwrap_or_else(|| ANTHROPIC_MAX_TOKENS.into()),
    );
    let (system, turns) = messages::split_system(messages::take(request)?)?;
    if let Some(system) = system_blocks(system)? {
        body.set("system", system);
    }
    body.set("messages", all_messages(turns)?);
    set_tools(request, &mut body)?;
    body.copy(request, &["temperature", "top_p"]);
    body.set_some("stop_sequences", options::stop(request));
    set_output_config(request, &mut body)?;
    set_metadata(request, &mut body)?;
    body.copy(request, &OWN);
    body.set("stream", true);
    Ok(body.into_fields())
}

/// The instructions: a text if there is one, otherwise blocks.
fn system_blocks(system: Vec<Content<'_>>) -> Result<Option<Value>, RequestError> {
    if let [one] = system.as_slice()
        && let Some(text) = one.as_text()
    {
        return Ok(Some(text.into()));
    }
    let mut blocks = Vec::new();
    for part in system.into_iter().flat_map(|content| content.parts) {
        match part.kind {
            PartKind::Text(_) => blocks.push(block(part)?),
            _ => return Err(part.refuse()),
        }
    }
    Ok((!blocks.is_empty()).then_some(blocks.into()))
}

fn all_messages(turns: Vec<Turn<'_>>) -> Result<Vec<Value>, RequestError> {
    let mut messages: Vec<Value> = Vec::new();
    let mut results: Vec<Value> = Vec::new();
    for turn in turns {
        // The results of the calls of one answer are one message.
        if let Turn::Result(result) = turn {
            results.push(tool_result(result)?);
            continue;
        }
        flush(&mut results, &mut messages);
        match turn {
            Turn::User(user) => {
                messages.push(json!({ "role": "user", "content": content(user)? }));
            }
            Turn::Assistant(answer) => {
                let content = assistant(answer)?;
                messages.extend(
                    content.map(|content| json!({ "role": "assistant", "content": content })),
                );
            }
            Turn::System(_) | Turn::Result(_) => {} // separated above
        }
    }
    flush(&mut results, &mut messages);
    Ok(messages)
}

fn flush(results: &mut Vec<Value>, messages: &mut Vec<Value>) {
    if !results.is_empty() {
        let content = std::mem::take(results);
        messages.push(json!({ "role": "user", "content": content }));
    }
}

fn content(content: Content<'_>) -> Result<Value, RequestError> {
    if let Some(text) = content.as_text() {
        return Ok(text.into());
    }
    content.parts.into_iter().map(block).collect()
}

fn block(mut part: Part<'_>) -> Result<Value, RequestError> {
    let mut block = Body::default();
    match part.kind {
        PartKind::Text(text) => {
            block.set("type", "text");
            block.set("text", text);
        }
        PartKind::Image(image) => {
            block.set("type", "image");
            block.set("source", image_source(image.without_detail(&part.rest)?));
        }
        PartKind::Reasoning(_) | PartKind::Refusal(_) | PartKind::Other(_) => {
            return Err(part.refuse());
        }
    }
    block.copy(&mut part.rest, &["cache_control"]);
    part.rest.finish()?;
    Ok(block.into())
}

fn image_source(source: ImageSource<'_>) -> Value {
    match source {
        ImageSource::Base64 { media_type, data } => {
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
        ImageSource::Url(url) => json!({ "type": "url", "url": url }),
    }
}

fn tool_result(mut result: CallResult<'_>) -> Result<Value, RequestError> {
    let id = result.required_id()?;
    let mut block = Body::default();
    block.set("type", "tool_result");
    block.set("tool_use_id", id);
    block.set("content", content(result.content)?);
    block.copy(
        &mut result.rest,
        &["is_error", "toolset_name", "cache_control"],
    );
    result.rest.finish()?;
    Ok(block.into())
}

/// The blocks of an answer: first the thinking, which must be in front of the calls that it led to.
///
/// `None` for an answer without anything else, such as one that was cut while the model was thinking. The API refuses messages
/// without text, and those that end with thinking; it joins the messages of the user that then follow each other.
fn assistant(mut answer: Assistant<'_>) -> Result<Option<Value>, RequestError> {
    answer.check_state(is_thinking, is_own_part)?;
    answer.check_refusal()?;
    let mut blocks: Vec<Value> = answer
        .details
        .iter()
        .map(|block| (*block).clone())
        .collect();
    if !answer.reasoning.is_empty() && answer.details.is_empty() {
        // Compatible servers do not sign their thinking. Anthropic itself refuses an empty signature.
        let thinking = std::mem::take(&mut answer.reasoning);
        blocks.push(json!({ "type": "thinking", "thinking": thinking, "signature": "" }));
    }
    let thinking = blocks.len();
    blocks.extend(answer.parts.iter().map(|block| (*block).clone()));
    let text = answer.text();
    let mut is_only_text = blocks.is_empty() && answer.calls.is_empty();
    for (text, rest) in &mut answer.texts {
        let mut block = Body::default();
        block.set("type", "text");
        block.set("text", *text);
        block.copy(rest, &["cache_control"]);
        is_only_text &= !block.has("cache_control");
        // Claude writes such texts between its blocks, and the API refuses them.
        if !text.trim().is_empty() {
            blocks.push(block.into());
        }
    }
    for call in std::mem::take(&mut answer.calls) {
        blocks.push(tool_use(call)?);
    }
    answer.finish()?;
    Ok(match blocks.len() > thinking {
        false => None,
        true if is_only_text => Some(text.into()),
        true => Some(blocks.into()),
    })
}

fn tool_use(mut call: Call<'_>) -> Result<Value, RequestError> {
    let mut block = Body::default();
    block.set("type", "tool_use");
    block.set("id", call.required_id()?);
    block.set("name", call.name);
    block.set("input", call.object()?);
    block.copy(&mut call.rest, &["caller", "toolset_name", "cache_control"]);
    call.finish()?;
    Ok(block.into())
}

fn is_thinking(detail: &Value) -> bool {
    matches!(kind(detail), "thinking" | "redacted_thinking")
}

/// Whether an entry of `content_parts` is a block of this API.
pub(super) fn is_own_part(part: &Value) -> bool {
    let kind = kind(part);
    const OTHERS: [&str; 5] = [
        "server_tool_use",
        "mcp_tool_use",
        "container_upload",
        "compaction",
        "mcp_tool_listing",
    ];
    OTHERS.contains(&kind) || kind.ends_with("_tool_result")
}

fn set_tools(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    let tools = tools::take(request, is_own_tool)?.into_iter();
    let tools: Vec<Value> = tools.map(tool).collect::<Result<_, _>>()?;
    body.set_list("tools", tools);
    let choice = match ToolChoice::take(request)? {
        None => None,
        Some(ToolChoice::Auto) => Some(json!({ "type": "auto" })),
        Some(ToolChoice::None) => Some(json!({ "type": "none" })),
        Some(ToolChoice::Required) => Some(json!({ "type": "any" })),
        Some(ToolChoice::Function(name)) => Some(json!({ "type": "tool", "name": name })),
        Some(ToolChoice::Custom(_)) => {
            return Err(request.refuse("tool_choice", "it has no custom tools"));
        }
    };
    // Only `false` is left; `true` is the default.
    let choice = match request.flag("parallel_tool_calls")? {
        None => choice,
        Some(_) => {
            let mut choice = choice.unwrap_or_else(|| json!({ "type": "auto" }));
            if choice.get("type") != Some(&"none".into())
                && let Value::Object(fields) = &mut choice
            {
                fields.insert("disable_parallel_tool_use".into(), true.into());
            }
            Some(choice)
        }
    };
    body.set_some("tool_choice", choice);
    Ok(())
}

/// Whether a tool has the form of this API: one that Anthropic runs, or one of the caller.
fn is_own_tool(tool: &Value) -> bool {
    // The types of most tools that Anthropic runs end in a date: `web_search_20250305`. Those that search tools may omit it.
    let is_date = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit());
    match kind(tool) {
        // The caller's own tools need no type.
        "" | "custom" => tool.get("input_schema").is_some(),
        "mcp_toolset" => true,
        kind if kind.starts_with("tool_search_tool_") => true,
        kind => kind.rsplit_once('_').is_some_and(|(_, end)| is_date(end)),
    }
}

fn tool(tool: Tool<'_>) -> Result<Value, RequestError> {
    let mut function = match tool {
        Tool::Own(tool) => return Ok(tool.clone()),
        Tool::Custom(tool) => return Err(tools::refuse_custom(&tool)),
        Tool::Function(function) => function,
    };
    let mut tool = Body::default();
    tool.set("name", function.name);
    tool.set_some("description", function.description);
    tool.set("input_schema", function.schema());
    tool.set_some("strict", function.is_strict.filter(|strict| *strict));
    let own = [
        "cache_control",
        "defer_loading",
        "allowed_callers",
        "input_examples",
        "eager_input_streaming",
    ];
    tool.copy(&mut function.rest, &own);
    function.rest.finish()?;
    Ok(tool.into())
}

/// The format of the answer, and how much the model reasons.
fn set_output_config(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    let mut config = Body::own(request, "output_config")?;
    match Format::take(request)? {
        Format::Text => {}
        Format::Json => {
            const WHY: &str = "it has no JSON without a schema; use the type json_schema";
            return Err(request.refuse("response_format", WHY));
        }
        Format::Schema(schema) => {
            let format = json!({ "type": "json_schema", "schema": schema.into_value()? });
            config.add(request, "response_format", "format", format)?;
        }
    }
    match request.text("reasoning_effort")? {
        None => {}
        Some("none" | "minimal") => {
            return Err(request.refuse("reasoning_effort", "it has no such effort"));
        }
        Some(effort) => config.add(request, "reasoning_effort", "effort", effort)?,
    }
    body.set_object("output_config", config);
    Ok(())
}

/// The user's id, the only metadata.
fn set_metadata(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    let mut metadata = Body::default();
    if let Some(mut given) = request.object("metadata")? {
        metadata.copy(&mut given, &["user_id"]);
        given.finish()?;
    }
    for name in ["user", "safety_identifier"] {
        metadata.rename(request, name, "user_id")?;
    }
    body.set_object("metadata", metadata);
    Ok(())
}
