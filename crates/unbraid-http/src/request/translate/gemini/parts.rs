//! The parts of Gemini's contents.

use serde_json::{Value, json};

use crate::request::{
    RequestError,
    translate::{
        assistant::{Assistant, Call},
        body::Body,
        content::{ImageSource, Part, PartKind},
        json_object,
        messages::CallResult,
    },
};

const SIGNATURE: &str = "thoughtSignature";

/// A part of a user's message, or of the instructions.
pub(super) fn part(part: Part<'_>) -> Result<Value, RequestError> {
    let translated = match part.kind {
        PartKind::Text(text) => json!({ "text": text }),
        PartKind::Image(image) => image_part(&image.without_detail(&part.rest)?),
        PartKind::Reasoning(_) | PartKind::Refusal(_) | PartKind::Other(_) => {
            return Err(part.refuse());
        }
    };
    part.rest.finish()?;
    Ok(translated)
}

fn image_part(source: &ImageSource<'_>) -> Value {
    match source {
        ImageSource::Base64 { media_type, data } => {
            json!({ "inlineData": { "mimeType": media_type, "data": data } })
        }
        ImageSource::Url(url) => {
            let mut file = Body::default();
            file.set_some("mimeType", media_type(url));
            file.set("fileUri", *url);
            json!({ "fileData": Value::from(file) })
        }
    }
}

/// The type of an image by the extension of its address. Vertex AI requires one.
fn media_type(url: &str) -> Option<&'static str> {
    let path = url.split(['?', '#']).next()?;
    let (_, extension) = path.rsplit_once('.')?;
    match extension.to_ascii_lowercase().as_str() {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "heic" => Some("image/heic"),
        "heif" => Some("image/heif"),
        _ => None,
    }
}

/// The result of a call. Calls without an id are matched by their order.
pub(super) fn function_response(result: CallResult<'_>) -> Result<Value, RequestError> {
    let Some(name) = result.name else {
        const WHY: &str = "no call of an earlier message has this id, and a result needs its name";
        return Err(result.rest.refuse("tool_call_id", WHY));
    };
    let text = result.content.into_text()?;
    // Only an object can be a result.
    let response = json_object::as_object(&text).unwrap_or_else(|| json!({ "result": text }));
    let mut function = Body::default();
    function.set_some("id", result.id);
    function.set("name", name);
    function.set("response", response);
    result.rest.finish()?;
    Ok(json!({ "functionResponse": Value::from(function) }))
}

/// The parts of an answer.
pub(super) fn answer(mut answer: Assistant<'_>) -> Result<Vec<Value>, RequestError> {
    answer.check_state(is_signed, is_own_part)?;
    answer.check_refusal()?;
    let mut parts: Vec<Value> = Vec::new();
    if !answer.reasoning.is_empty() && answer.details.is_empty() {
        parts.push(json!({ "text": answer.reasoning, "thought": true }));
    }
    let is_thought = |part: &&Value| part.get("thought") == Some(&Value::Bool(true));
    let (thoughts, signed): (Vec<&Value>, Vec<&Value>) =
        answer.details.iter().copied().partition(is_thought);
    parts.extend(thoughts.into_iter().cloned());
    parts.extend(answer.parts.iter().map(|part| (*part).clone()));
    parts.extend(signed_text(&answer.text(), &signed));
    for image in answer.rest.values("images")? {
        if !is_own_part(image) {
            return Err(answer.rest.refuse_field("images"));
        }
        parts.push(image.clone());
    }
    for call in std::mem::take(&mut answer.calls) {
        parts.push(function_call(call)?);
    }
    answer.finish()?;
    if parts.is_empty() {
        parts.push(json!({ "text": "" })); // a content without parts is refused
    }
    Ok(parts)
}

/// The text with its signed parts where they were: the list of an answer repeats each of them with its text.
fn signed_text(text: &str, signed: &[&Value]) -> Vec<Value> {
    let text_part = |text: &str| (!text.is_empty()).then(|| json!({ "text": text }));
    let mut parts = Vec::new();
    let mut rest = text;
    let mut is_found = true;
    for (position, part) in signed.iter().enumerate() {
        let own = part.get("text").and_then(Value::as_str).unwrap_or_default();
        let is_last = position + 1 == signed.len();
        let at = match own {
            // A signature without a text usually follows the last one.
            _ if is_last && rest.ends_with(own) => Some(rest.len() - own.len()),
            "" => Some(0),
            // After one that the text does not have, the others are not searched for: each search may read the whole text.
            own if is_found => rest.find(own),
            _ => None,
        };
        let split = at.and_then(|at| Some((rest.get(..at)?, rest.get(at + own.len()..)?)));
        is_found &= split.is_some();
        let (before, after) = split.unwrap_or(("", rest));
        parts.extend(text_part(before));
        parts.push((*part).clone());
        rest = after;
    }
    parts.extend(text_part(rest));
    parts
}

fn function_call(mut call: Call<'_>) -> Result<Value, RequestError> {
    let mut function = Body::default();
    function.set_some("id", call.id);
    function.set("name", call.name);
    function.set("args", call.object()?);
    let mut part = Body::default();
    part.set("functionCall", function);
    part.copy(&mut call.rest, &[SIGNATURE]);
    // Where the compatible interface has it.
    let compatible = call.rest.take("extra_content");
    let compatible = compatible.and_then(|extra| extra.pointer("/google/thought_signature"));
    if !part.has(SIGNATURE) {
        part.set_some(SIGNATURE, compatible.cloned());
    }
    call.finish()?;
    Ok(part.into())
}

/// Whether an entry of `reasoning_details` is a part with a signature.
fn is_signed(detail: &Value) -> bool {
    detail.get(SIGNATURE).is_some()
}

/// Whether an entry of `content_parts` is a part of this API.
pub(in super::super) fn is_own_part(part: &Value) -> bool {
    const NAMES: [&str; 7] = [
        "executableCode",
        "codeExecutionResult",
        "inlineData",
        "fileData",
        "toolCall",
        "toolResponse",
        "functionResponse",
    ];
    NAMES.iter().any(|name| part.get(name).is_some())
}
