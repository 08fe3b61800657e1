//! A `Message` of the Messages API.

use super::{
    Answer, NativeError,
    blocks::{Block, BlockRules, arguments, blocks},
    json::{Object, array, text_field},
};

pub(super) fn response(answer: Answer<'_>) -> Result<String, NativeError> {
    let (choice, metadata) = (answer.choice, answer.demux.metadata());
    let rules = BlockRules {
        text_of: |json| text_field(json, "thinking"),
        is_reasoning: |_| true,
        cites_text: true,
    };
    let calls = choice.message().tool_calls;
    let mut content = Vec::new();
    for block in blocks(choice, &rules) {
        content.push(match block {
            Block::Text { text, citations } => {
                let block = Object::default().text("type", "text").text("text", &text);
                block.list("citations", &citations).finish()
            }
            Block::Reasoning { text, .. } => {
                let block = Object::default().text("type", "thinking");
                block.text("thinking", &text).finish()
            }
            Block::Object { json, .. } => json,
            Block::Call(position) => {
                let Some(call) = calls.get(position) else {
                    continue;
                };
                Object::default()
                    .text("type", "tool_use")
                    .optional("id", call.id.as_deref())
                    .text("name", &call.name)
                    .raw("input", &arguments(choice, position, call)?)
                    .fields(&call.extra)
                    .finish()
            }
        });
    }
    let message = Object::default()
        .optional("id", metadata.id.as_deref())
        .text("type", "message")
        .text("role", answer.role())
        .optional("model", metadata.model.as_deref())
        .raw("content", &array(&content))
        .raw("stop_reason", &answer.reason())
        .fields(choice.extra())
        .raw("stop_sequence", "null");
    let usage = answer.usage().unwrap_or_else(|| "null".to_owned());
    Ok(message.raw("usage", &usage).finish())
}
