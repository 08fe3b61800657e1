//! The items of a request's input.

use serde_json::{Value, json};

use crate::request::{
    RequestError,
    translate::{
        assistant::{Assistant, Call, CallKind},
        body::Body,
        content::{Content, Part, PartKind},
        kind,
        messages::{CallResult, SystemTurn, Turn},
    },
};

pub(super) fn all(turns: Vec<Turn<'_>>) -> Result<Vec<Value>, RequestError> {
    let mut items = Vec::new();
    for turn in turns {
        match turn {
            Turn::System(turn) => items.push(system(turn)?),
            Turn::User(user) => items.push(json!({ "role": "user", "content": content(user)? })),
            Turn::Assistant(answer) => assistant(answer, &mut items)?,
            Turn::Result(result) => items.push(output(result)?),
        }
    }
    Ok(items)
}

fn system(turn: SystemTurn<'_>) -> Result<Value, RequestError> {
    turn.rest.finish()?;
    Ok(json!({ "role": turn.role, "content": content(turn.content)? }))
}

fn content(content: Content<'_>) -> Result<Value, RequestError> {
    if let Some(text) = content.as_text() {
        return Ok(text.into());
    }
    content.parts.into_iter().map(part).collect()
}

fn part(mut part: Part<'_>) -> Result<Value, RequestError> {
    let mut sent = Body::default();
    match &part.kind {
        PartKind::Text(text) => {
            sent.set("type", "input_text");
            sent.set("text", *text);
        }
        PartKind::Image(image) => {
            sent.set("type", "input_image");
            sent.set("image_url", image.source.url());
            sent.set("detail", image.detail.unwrap_or("auto"));
        }
        PartKind::Other("file") => {
            let mut file = part.rest.required_object("file")?;
            sent.set("type", "input_file");
            sent.copy(&mut file, &["filename", "file_data", "file_id"]);
            file.finish()?;
        }
        PartKind::Other("input_audio") => {
            let audio = part.rest.take("input_audio");
            sent.set("type", "input_audio");
            sent.set_some("input_audio", audio.cloned());
        }
        PartKind::Reasoning(_) | PartKind::Refusal(_) | PartKind::Other(_) => {
            return Err(part.refuse());
        }
    }
    part.rest.finish()?;
    Ok(sent.into())
}

/// The items of an answer: first the reasoning, which has to be in front of what it led to.
///
/// There are none if it led to nothing, as in an answer that was cut. The API refuses reasoning without a following item.
fn assistant(mut answer: Assistant<'_>, input: &mut Vec<Value>) -> Result<(), RequestError> {
    answer.check_state(is_reasoning, is_own_part)?;
    let mut items: Vec<Value> = answer.details.iter().map(|item| (*item).clone()).collect();
    if !answer.reasoning.is_empty() && answer.details.is_empty() {
        let text = json!({ "type": "reasoning_text", "text": answer.reasoning });
        items.push(json!({ "type": "reasoning", "summary": [], "content": [text] }));
    }
    let reasoning = items.len();
    let (phases, others): (Vec<&Value>, Vec<&Value>) = answer
        .parts
        .iter()
        .copied()
        .partition(|part| kind(part) == "message");
    items.extend(others.into_iter().cloned());
    // The texts of several messages arrive as one, which is that of the last of them.
    let phase = phases.last().and_then(|part| part.get("phase"));
    let content = message_content(&answer);
    if !content.is_empty() {
        let mut message = Body::default();
        message.set("type", "message");
        message.set("role", "assistant");
        message.set("content", content);
        message.set_some("phase", phase.cloned());
        items.push(message.into());
    }
    for call in std::mem::take(&mut answer.calls) {
        items.push(call_item(call)?);
    }
    if items.len() > reasoning {
        input.append(&mut items);
    }
    answer.finish()
}

/// The text and the refusal. It is a list also of one text, because llama.cpp reads nothing else from an assistant.
fn message_content(answer: &Assistant<'_>) -> Vec<Value> {
    let text = answer.text();
    let text = (!text.is_empty()).then(|| json!({ "type": "output_text", "text": text }));
    let refusal = answer.refusal;
    let refusal = refusal.map(|refusal| json!({ "type": "refusal", "refusal": refusal }));
    text.into_iter().chain(refusal).collect()
}

fn call_item(mut call: Call<'_>) -> Result<Value, RequestError> {
    let mut item = Body::default();
    let (kind, arguments) = match call.kind {
        CallKind::Function => ("function_call", "arguments"),
        CallKind::Custom => ("custom_tool_call", "input"),
    };
    item.set("type", kind);
    // Not the item's own id: it would have to be stored at the provider, together with its reasoning.
    item.set("call_id", call.required_id()?);
    item.set("name", call.name);
    item.set(arguments, call.text());
    item.copy(&mut call.rest, &["namespace", "caller"]);
    call.finish()?;
    Ok(item.into())
}

fn output(result: CallResult<'_>) -> Result<Value, RequestError> {
    let id = result.required_id()?;
    let kind = if result.is_custom {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    };
    let item = json!({ "type": kind, "call_id": id, "output": content(result.content)? });
    result.rest.finish()?;
    Ok(item)
}

/// Whether an entry of `reasoning_details` is an item of this API.
fn is_reasoning(detail: &Value) -> bool {
    kind(detail) == "reasoning"
}

/// Whether an entry of `content_parts` is an item of this API, or the phase of a message.
pub(in super::super) fn is_own_part(part: &Value) -> bool {
    const OTHERS: [&str; 7] = [
        "mcp_list_tools",
        "mcp_approval_request",
        "compaction",
        "program",
        "program_output",
        "item_reference",
        "additional_tools",
    ];
    let kind = kind(part);
    let is_message = kind == "message" && part.get("phase").is_some();
    is_message
        || kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || kind.ends_with("_search_output")
        || OTHERS.contains(&kind)
}
