//! The only line of an answer of `/api/chat` or `/api/generate` that is not streamed.

use unbraid_core::{Event, FinishReason, Message, Transcript, internal::rfc3339};

use super::{
    Answer, NativeError,
    blocks::arguments,
    json::{self, Object},
};

pub(super) fn response(answer: Answer<'_>) -> Result<String, NativeError> {
    let (choice, metadata) = (answer.choice, answer.demux.metadata());
    let message = choice.message();
    let mut fields = Object::default();
    // Only chats have a role.
    let is_chat = choice.role().is_some();
    if is_chat {
        fields = fields.text("role", answer.role());
    }
    fields = fields.text(
        if is_chat { "content" } else { "response" },
        &message.content,
    );
    let thinking = Some(&*message.reasoning).filter(|text| !text.is_empty());
    fields = fields
        .optional("thinking", thinking)
        .list("tool_calls", &calls(choice, &message)?);
    let images = message.extra.iter().filter(|(name, _)| &**name == "images");
    fields = images.fold(fields, |fields, (_, list)| match &*json::entries(list) {
        // What `/api/generate` generates is one image.
        [image] if !is_chat => fields.raw("image", image),
        _ => fields.raw("images", list),
    });
    let more = message.extra.iter();
    let more: Vec<_> = more
        .filter(|(name, _)| &**name != "images")
        .cloned()
        .collect();
    let fields = fields.fields(&more).finish();
    let created = metadata.created.map(rfc3339);
    let mut line = Object::default()
        .optional("model", metadata.model.as_deref())
        .optional("created_at", created.as_deref());
    line = match is_chat {
        true => line.raw("message", &fields),
        false => line.fields(&json::fields(&fields)),
    };
    let reason = choice.finish_reason().map(FinishReason::as_str);
    let is_done = choice.end().is_some_and(|end| !end.is_error());
    let line = line
        .raw("done", if is_done { "true" } else { "false" })
        .optional("done_reason", reason)
        .list("logprobs", &logprobs(choice))
        .fields(&json::fields(&answer.usage().unwrap_or_default()));
    Ok(line.fields(&metadata.extra).finish())
}

fn calls(choice: &Transcript, message: &Message) -> Result<Vec<String>, NativeError> {
    let mut calls = Vec::new();
    for (position, call) in message.tool_calls.iter().enumerate() {
        let function = Object::default()
            .text("name", &call.name)
            .raw("arguments", &arguments(choice, position, call)?)
            .fields(&call.extra);
        let call = Object::default().optional("id", call.id.as_deref());
        calls.push(call.raw("function", &function.finish()).finish());
    }
    Ok(calls)
}

/// The log probabilities, which are a list of tokens here.
fn logprobs(choice: &Transcript) -> Vec<String> {
    let events = (0..choice.event_count()).filter_map(|seq| choice.event(seq));
    let tokens = events.filter_map(|event| match event.event {
        Event::Logprobs(logprobs) => Some(json::fields(logprobs)),
        _ => None,
    });
    let lists = tokens.flatten().filter(|(name, _)| name == "content");
    lists.flat_map(|(_, list)| json::entries(&list)).collect()
}
