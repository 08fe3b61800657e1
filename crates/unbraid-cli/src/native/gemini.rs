//! A `GenerateContentResponse`: the only form with several choices.

use unbraid_core::{Demux, Transcript, internal::rfc3339};

use super::{
    NativeError,
    blocks::{Block, BlockRules, List, arguments, blocks},
    json::{self, Object, array, text_field},
    reason,
};

pub(super) fn response(demux: &Demux, choices: &[&Transcript]) -> Result<String, NativeError> {
    let metadata = demux.metadata();
    let candidates = choices.iter().map(|choice| candidate(choice));
    let candidates = candidates.collect::<Result<Vec<_>, _>>()?;
    let mut response = Object::default().raw("candidates", &array(&candidates));
    if let Some(usage) = demux.usage().raw_json() {
        response = response.raw("usageMetadata", &usage);
    }
    let created = metadata.created.map(rfc3339);
    Ok(response
        .optional("modelVersion", metadata.model.as_deref())
        .optional("responseId", metadata.id.as_deref())
        .optional("createTime", created.as_deref())
        .fields(&metadata.extra)
        .finish())
}

/// Whether a part is a thought.
fn is_thought(part: &str) -> bool {
    json::fields(part)
        .iter()
        .any(|(name, value)| name == "thought" && value == "true")
}

fn candidate(choice: &Transcript) -> Result<String, NativeError> {
    let rules = BlockRules {
        text_of: |json| text_field(json, "text"),
        is_reasoning: is_thought,
        cites_text: false,
    };
    let calls = choice.message().tool_calls;
    let (mut parts, mut sources) = (Vec::new(), Vec::new());
    for block in blocks(choice, &rules) {
        parts.push(match block {
            Block::Text { text, .. } => Object::default().text("text", &text).finish(),
            Block::Reasoning { text, .. } => {
                let part = Object::default().text("text", &text);
                part.raw("thought", "true").finish()
            }
            Block::Object {
                list: List::Annotations,
                json,
            } => {
                sources.push((metadata_name(&json).to_owned(), json));
                continue;
            }
            Block::Object { json, .. } => json,
            Block::Call(position) => {
                let Some(call) = calls.get(position) else {
                    continue;
                };
                let function = Object::default()
                    .optional("id", call.id.as_deref())
                    .text("name", &call.name)
                    .raw("args", &arguments(choice, position, call)?);
                let part = Object::default().raw("functionCall", &function.finish());
                part.fields(&call.extra).finish()
            }
        });
    }
    let content = Object::default().raw("parts", &array(&parts));
    let candidate = Object::default()
        .raw("content", &content.text("role", "model").finish())
        .raw("finishReason", &reason(choice))
        .raw("index", &choice.index().to_string());
    Ok(candidate.fields(&sources).fields(choice.extra()).finish())
}

/// The field of a candidate that holds this object.
fn metadata_name(json: &str) -> &'static str {
    let is_citations = |(name, _): &(String, String)| name.starts_with("citation");
    if json::fields(json).iter().any(is_citations) {
        "citationMetadata"
    } else {
        "groundingMetadata"
    }
}
