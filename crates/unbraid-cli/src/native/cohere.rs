//! A response of `/v2/chat`.

use unbraid_core::{Event, Transcript};

use super::{
    Answer,
    blocks::{Block, BlockRules, List, blocks, remove_reasoning},
    json::{self, Object},
    server_error,
};

pub(super) fn response(answer: Answer<'_>) -> String {
    let (choice, metadata) = (answer.choice, answer.demux.metadata());
    let message = choice.message();
    let plan = message
        .extra
        .iter()
        .find(|(name, _)| &**name == "tool_plan");
    let plan_text = plan.and_then(|(_, json)| serde_json::from_str::<String>(json).ok());
    let calls = message.tool_calls.iter().map(|call| {
        let function = Object::default()
            .text("name", &call.name)
            .text("arguments", &call.arguments);
        Object::default()
            .optional("id", call.id.as_deref())
            .text("type", "function")
            .raw("function", &function.finish())
            .fields(&call.extra)
            .finish()
    });
    let calls: Vec<String> = calls.collect();
    let citations = message
        .extra
        .iter()
        .find(|(name, _)| &**name == "annotations");
    let citations = citations.map_or_else(Vec::new, |(_, list)| json::entries(list));
    let more: Vec<_> = message
        .extra
        .iter()
        .filter(|(name, _)| !matches!(&**name, "annotations" | "content_parts"))
        .cloned()
        .collect();
    let message = Object::default()
        .text("role", answer.role())
        .list(
            "content",
            &contents(choice, plan_text.as_deref().unwrap_or("")),
        )
        .list("tool_calls", &calls)
        .list("citations", &citations)
        .fields(&more);
    let mut response = Object::default()
        .optional("id", metadata.id.as_deref())
        .raw("finish_reason", &answer.reason())
        .raw("message", &message.finish())
        .list("logprobs", &logprobs(choice));
    if let Some(error) = server_error(choice) {
        response = response.raw("error", &error);
    }
    if let Some(usage) = answer.usage() {
        response = response.raw("usage", &usage);
    }
    let response = response.fields(choice.extra());
    response.fields(&metadata.extra).finish()
}

/// The contents. The plan is reasoning, too, but has a field of its own.
fn contents(choice: &Transcript, plan: &str) -> Vec<String> {
    let rules = BlockRules {
        text_of: |_| None,
        is_reasoning: |_| true,
        cites_text: false,
    };
    let mut blocks = blocks(choice, &rules);
    let mut left = plan;
    for block in &blocks {
        if let Block::Reasoning { text, .. } = block {
            without_plan(text, &mut left);
        }
    }
    // Its deltas may alternate with those of the thinking.
    let is_removed = !left.is_empty() && remove_reasoning(&mut blocks, plan);
    let mut plan = if is_removed { "" } else { plan };
    let mut contents = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text, .. } => {
                let content = Object::default().text("type", "text");
                contents.push(content.text("text", &text).finish());
            }
            Block::Reasoning { text, .. } => {
                let thinking = without_plan(&text, &mut plan);
                if !thinking.is_empty() {
                    let content = Object::default().text("type", "thinking");
                    contents.push(content.text("thinking", &thinking).finish());
                }
            }
            Block::Object {
                json,
                list: List::Parts,
            } => contents.push(json),
            Block::Object { .. } | Block::Call(_) => {}
        }
    }
    contents
}

/// Reasoning without the part of the plan that it holds, which is removed from the plan.
fn without_plan(text: &str, plan: &mut &str) -> String {
    if let Some(thinking) = text
        .strip_prefix(*plan)
        .or_else(|| text.strip_suffix(*plan))
    {
        *plan = "";
        return thinking.to_owned();
    }
    match plan.strip_prefix(text) {
        Some(rest) => {
            *plan = rest;
            String::new()
        }
        None => text.to_owned(),
    }
}

fn logprobs(choice: &Transcript) -> Vec<String> {
    let events = (0..choice.event_count()).filter_map(|seq| choice.event(seq));
    let logprobs = events.filter_map(|event| match event.event {
        Event::Logprobs(logprobs) => Some(logprobs.to_owned()),
        _ => None,
    });
    logprobs.collect()
}
