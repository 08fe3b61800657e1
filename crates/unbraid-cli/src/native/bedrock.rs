//! The output of Converse. The answer of a model that `invoke` passed on has the same form.

use super::{
    Answer, NativeError,
    blocks::{Block, BlockRules, arguments, blocks},
    json::{self, Object, array, text_field},
};

pub(super) fn response(answer: Answer<'_>) -> Result<String, NativeError> {
    let choice = answer.choice;
    let rules = BlockRules {
        text_of: reasoning_text,
        is_reasoning: |_| true,
        cites_text: true,
    };
    let calls = choice.message().tool_calls;
    let mut content = Vec::new();
    for block in blocks(choice, &rules) {
        content.push(match block {
            Block::Text { text, citations } => text_block(&text, &citations),
            Block::Reasoning { text, .. } => {
                let text = Object::default().text("text", &text).finish();
                let text = Object::default().raw("reasoningText", &text).finish();
                Object::default().raw("reasoningContent", &text).finish()
            }
            // Each block of Converse has one key, which is its type.
            Block::Object { json, .. } if json::fields(&json).len() == 1 => json,
            Block::Object { .. } => return Err(NativeError::Invoked),
            Block::Call(position) => {
                let Some(call) = calls.get(position) else {
                    continue;
                };
                let call = Object::default()
                    .optional("toolUseId", call.id.as_deref())
                    .text("name", &call.name)
                    .raw("input", &arguments(choice, position, call)?)
                    .fields(&call.extra);
                Object::default().raw("toolUse", &call.finish()).finish()
            }
        });
    }
    let message = Object::default().text("role", answer.role());
    let message = message.raw("content", &array(&content)).finish();
    let output = Object::default().raw("message", &message).finish();
    let usage = answer.usage().unwrap_or_else(|| "null".to_owned());
    let response = Object::default()
        .raw("output", &output)
        .raw("stopReason", &answer.reason())
        .raw("usage", &usage)
        .fields(&answer.demux.metadata().extra);
    Ok(response.fields(choice.extra()).finish())
}

fn text_block(text: &str, citations: &[String]) -> String {
    let content = Object::default().text("text", text).finish();
    if citations.is_empty() {
        return content;
    }
    let cited = Object::default()
        .raw("content", &array(&[content]))
        .list("citations", citations);
    Object::default()
        .raw("citationsContent", &cited.finish())
        .finish()
}

/// The text of signed reasoning.
fn reasoning_text(json: &str) -> Option<String> {
    let inner = |json: &str, name: &str| {
        let fields = json::fields(json).into_iter();
        fields.last().filter(|(key, _)| key == name)
    };
    let (_, content) = inner(json, "reasoningContent")?;
    let (_, text) = inner(&content, "reasoningText")?;
    text_field(&text, "text")
}
