//! `/api/chat` of Ollama.

use serde_json::{Map, Value, json};

use super::{
    assistant::{Assistant, Call},
    body::Body,
    content::{Content, ImageSource, PartKind},
    messages::{self, Turn},
    options::{self, Format},
    reader::Reader,
    tools::{self, Tool},
};
use crate::request::{RequestError, requested::Choices};

/// Fields of the API itself, and those that chat completions have under the same name.
const OWN: [&str; 6] = [
    "logprobs",
    "top_logprobs",
    "keep_alive",
    "truncate",
    "shift",
    "think",
];

/// Fields that are options of the model.
const OPTIONS: [&str; 7] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "frequency_penalty",
    "presence_penalty",
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
    let tools = tools::take(request, |_| false)?.into_iter().map(tool);
    let tools: Vec<Value> = tools.collect::<Result<_, _>>()?;
    body.set_list("tools", tools);
    options::only_auto(request)?;
    match Format::take(request)? {
        Format::Text => {}
        Format::Json => body.set("format", "json"),
        Format::Schema(schema) => body.set("format", schema.into_value()?),
    }
    set_options(request, &mut body)?;
    body.copy(request, &OWN);
    match request.text("reasoning_effort")? {
        None => {}
        Some("none") => body.add(request, "reasoning_effort", "think", false)?,
        Some(effort @ ("low" | "medium" | "high")) => {
            body.add(request, "reasoning_effort", "think", effort)?;
        }
        Some(_) => return Err(request.refuse("reasoning_effort", "it has no such level")),
    }
    body.set("stream", true);
    Ok(body.into_fields())
}

fn set_options(request: &mut Reader<'_>, body: &mut Body) -> Result<(), RequestError> {
    let mut options = Body::own(request, "options")?;
    for name in OPTIONS {
        options.rename(request, name, name)?;
    }
    if let Some(tokens) = options::max_tokens(request)? {
        options.add(request, "max_tokens", "num_predict", tokens.clone())?;
    }
    if let Some(stop) = options::stop(request) {
        options.add(request, "stop", "stop", stop)?;
    }
    body.set_object("options", options);
    Ok(())
}

fn message(turn: Turn<'_>) -> Result<Value, RequestError> {
    let mut message = Body::default();
    match turn {
        Turn::System(turn) => {
            turn.rest.finish()?;
            message.set("role", "system");
            set_content(turn.content, &mut message)?;
        }
        Turn::User(content) => {
            message.set("role", "user");
            set_content(content, &mut message)?;
        }
        Turn::Assistant(answer) => return assistant(answer),
        Turn::Result(result) => {
            message.set("role", "tool");
            set_content(result.content, &mut message)?;
            message.set_some("tool_name", result.name);
            message.set_some("tool_call_id", result.id);
            result.rest.finish()?;
        }
    }
    Ok(message.into())
}

/// The text, and the images beside it.
fn set_content(content: Content<'_>, message: &mut Body) -> Result<(), RequestError> {
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for part in content.parts {
        match part.kind {
            PartKind::Text(text) => texts.push(text),
            PartKind::Image(image) => match image.without_detail(&part.rest)? {
                ImageSource::Base64 { data, .. } => images.push(data),
                ImageSource::Url(_) => {
                    const WHY: &str = "it accepts images only as data in base64";
                    return Err(part.rest.refuse("image_url.url", WHY));
                }
            },
            PartKind::Reasoning(_) | PartKind::Refusal(_) | PartKind::Other(_) => {
                return Err(part.refuse());
            }
        }
        part.rest.finish()?;
    }
    message.set("content", texts.join("\n"));
    message.set_list("images", images);
    Ok(())
}

fn assistant(mut answer: Assistant<'_>) -> Result<Value, RequestError> {
    answer.check_state(|_| false, |_| false)?;
    answer.check_refusal()?;
    let mut message = Body::default();
    message.set("role", "assistant");
    message.set("content", answer.text());
    if !answer.reasoning.is_empty() {
        message.set("thinking", std::mem::take(&mut answer.reasoning));
    }
    let calls = std::mem::take(&mut answer.calls).into_iter().map(tool_call);
    let calls: Vec<Value> = calls.collect::<Result<_, _>>()?;
    message.set_list("tool_calls", calls);
    answer.finish()?;
    Ok(message.into())
}

fn tool_call(call: Call<'_>) -> Result<Value, RequestError> {
    let mut sent = Body::default();
    sent.set_some("id", call.id);
    sent.set(
        "function",
        json!({ "name": call.name, "arguments": call.object()? }),
    );
    call.finish()?;
    Ok(sent.into())
}

fn tool(tool: Tool<'_>) -> Result<Value, RequestError> {
    let function = match tool {
        Tool::Function(function) => function,
        Tool::Custom(tool) => return Err(tools::refuse_custom(&tool)),
        Tool::Own(tool) => return Ok(tool.clone()),
    };
    if function.is_strict == Some(true) {
        return Err(function.rest.refuse_field("function.strict"));
    }
    let mut sent = Body::default();
    sent.set("name", function.name);
    sent.set_some("description", function.description);
    sent.set("parameters", function.schema());
    function.rest.finish()?;
    Ok(json!({ "type": "function", "function": Value::from(sent) }))
}
