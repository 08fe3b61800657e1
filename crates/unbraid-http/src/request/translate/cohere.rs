//! The second version of Cohere's API.

use serde_json::{Map, Value, json};

use super::{
    assistant::{Assistant, Call},
    body::Body,
    content::{Content, Part, PartKind},
    messages::{self, Turn},
    options::{self, Format},
    reader::Reader,
    tools::{self, Tool, ToolChoice},
};
use crate::request::{RequestError, requested::Choices};

/// Fields of the API itself, and those that chat completions have under the same name.
const OWN: [&str; 12] = [
    "temperature",
    "seed",
    "frequency_penalty",
    "presence_penalty",
    "logprobs",
    "documents",
    "citation_options",
    "safety_mode",
    "thinking",
    "priority",
    "k",
    "p",
];

pub(super) fn body(
    request: &mut Reader<'_>,
    choices: Choices,
) -> Result<Map<String, Value>, RequestError> {
    options::one_choice(request, choices)?;
    let mut body = Body::default();
    body.copy(request, &["model"]);
    let messages = messages::take(request)?.into_iter().map(message);
    body.set("messages", messages.collect::<Result<Vec<_>, _>>()?);
    set_tools(request, &mut body)?;
    body.set_some("max_tokens", options::max_tokens(request)?.cloned());
    body.set_some("stop_sequences", options::stop(request));
    body.copy(request, &OWN);
    body.rename(request, "top_p", "p")?;
    body.rename(request, "top_k", "k")?;
    match Format::take(request)? {
        Format::Text => {}
        Format::Json => body.set("response_format", json!({ "type": "json_object" })),
        Format::Schema(schema) => {
            let format = json!({ "type": "json_object", "json_schema": schema.into_value()? });
            body.set("response_format", format);
        }
    }
    match request.text("reasoning_effort")? {
        None => {}
        Some("none") => {
            let thinking = json!({ "type": "disabled" });
            body.add(request, "reasoning_effort", "thinking", thinking)?;
        }
        Some(_) => return Err(request.refuse("reasoning_effort", "it has no such level")),
    }
    body.set("stream", true);
    Ok(body.into_fields())
}

fn message(turn: Turn<'_>) -> Result<Value, RequestError> {
    let mut message = Body::default();
    match turn {
        Turn::System(turn) => {
            turn.rest.finish()?;
            message.set("role", "system");
            message.set("content", content(turn.content)?);
        }
        Turn::User(user) => {
            message.set("role", "user");
            message.set("content", content(user)?);
        }
        Turn::Assistant(answer) => return assistant(answer),
        Turn::Result(result) => {
            let id = result.required_id()?;
            message.set("role", "tool");
            message.set("tool_call_id", id);
            message.set("content", content(result.content)?);
            result.rest.finish()?;
        }
    }
    Ok(message.into())
}

fn content(content: Content<'_>) -> Result<Value, RequestError> {
    if let Some(text) = content.as_text() {
        return Ok(text.into());
    }
    content.parts.into_iter().map(part).collect()
}

fn part(part: Part<'_>) -> Result<Value, RequestError> {
    let sent = match &part.kind {
        PartKind::Text(text) => json!({ "type": "text", "text": text }),
        PartKind::Image(image) => {
            let mut inner = Body::default();
            inner.set("url", image.source.url());
            inner.set_some("detail", image.detail);
            json!({ "type": "image_url", "image_url": Value::from(inner) })
        }
        PartKind::Reasoning(_) | PartKind::Refusal(_) | PartKind::Other(_) => {
            return Err(part.refuse());
        }
    };
    part.rest.finish()?;
    Ok(sent)
}

/// An answer. The plan of its calls stands in place of the text (H04), and is a part of the reasoning, too.
fn assistant(mut answer: Assistant<'_>) -> Result<Value, RequestError> {
    answer.check_state(|_| false, |_| false)?;
    answer.check_refusal()?;
    let mut message = Body::default();
    message.set("role", "assistant");
    let plan = answer.rest.text("tool_plan")?;
    let reasoning = std::mem::take(&mut answer.reasoning);
    let plan_text = plan.unwrap_or_default();
    let thinking = reasoning
        .strip_suffix(plan_text)
        .or_else(|| reasoning.strip_prefix(plan_text))
        .unwrap_or(&reasoning);
    let text = answer.text();
    if !thinking.is_empty() {
        let thinking = json!({ "type": "thinking", "thinking": thinking });
        let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
        let parts: Vec<Value> = [thinking].into_iter().chain(text).collect();
        message.set("content", parts);
    } else if !text.is_empty() || answer.calls.is_empty() {
        message.set("content", text);
    }
    message.set_some("tool_plan", plan);
    let calls = std::mem::take(&mut answer.calls).into_iter().map(tool_call);
    let calls: Vec<Value> = calls.collect::<Result<_, _>>()?;
    message.set_list("tool_calls", calls);
    answer.finish()?;
    Ok(message.into())
}

fn tool_call(call: Call<'_>) -> Result<Value, RequestError> {
    call.check_function()?;
    let function = json!({ "name": call.name, "arguments": call.text() });
    let sent = json!({ "id": call.required_id()?, "type": "function", "function": function });
    call.finish()?;
    Ok(sent)
}

fn set_tools(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    let tools = tools::take(request, |_| false)?;
    let is_strict = tools::has_strict(&tools);
    let tools: Vec<Value> = tools.into_iter().map(tool).collect::<Result<_, _>>()?;
    body.set_list("tools", tools);
    body.copy(request, &["strict_tools"]);
    if is_strict && !body.has("strict_tools") {
        body.set("strict_tools", true);
    }
    match ToolChoice::take(request)? {
        None | Some(ToolChoice::Auto) => {}
        Some(ToolChoice::Required) => body.set("tool_choice", "REQUIRED"),
        Some(ToolChoice::None) => body.set("tool_choice", "NONE"),
        Some(ToolChoice::Function(_) | ToolChoice::Custom(_)) => {
            return Err(request.refuse("tool_choice", "it cannot be made to call one tool"));
        }
    }
    Ok(())
}

fn tool(tool: Tool<'_>) -> Result<Value, RequestError> {
    let function = match tool {
        Tool::Function(function) => function,
        Tool::Custom(tool) => return Err(tools::refuse_custom(&tool)),
        Tool::Own(tool) => return Ok(tool.clone()),
    };
    let mut sent = Body::default();
    sent.set("name", function.name);
    sent.set_some("description", function.description);
    sent.set("parameters", function.schema());
    function.rest.finish()?;
    Ok(json!({ "type": "function", "function": Value::from(sent) }))
}
