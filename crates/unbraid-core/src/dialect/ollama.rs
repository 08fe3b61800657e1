//! `/api/chat` and `/api/generate` of Ollama: one object a line, the last of which has `done: true`.

use std::borrow::Cow;

use super::{
    reader::{
        DialectReader, Lane, Output, WireEvent, arguments_of, entries, fragment, is_cut,
        other_fields, raw, reason_of, text, text_of_part,
    },
    time::unix_seconds,
};
use crate::{
    ToolCallUpdate,
    chunk::has_tokens,
    node::{Node, Value},
};

/// The only choice of an answer.
const CHOICE: u32 = 0;

/// The state of one answer.
#[derive(Default)]
pub(crate) struct Ollama {
    has_started: bool,
    /// The calls so far. Each entry is a new one, whatever its id and index are (O05).
    calls: i64,
}

impl DialectReader for Ollama {
    fn read<'a>(&mut self, event: &WireEvent<'_, 'a>, output: &mut Output<'a>) -> bool {
        let node = event.node;
        let has = |key: &str| node.get(key).is_some();
        let has_text = has("message") || has("response") || has("thinking");
        if !has("done") && (has("type") || !has_text) {
            return false;
        }
        let message = node
            .get("message")
            .filter(|node| node.as_object().is_some());
        if !std::mem::replace(&mut self.has_started, true) {
            let update = output.choice(CHOICE);
            update.role = message.and_then(|message| text(message, "role"));
            update.created = text(node, "created_at").and_then(|time| unix_seconds(&time));
        }
        let is_done = node.get("done").and_then(Node::as_bool) == Some(true);
        let reason = reason_of(node.get("done_reason")).filter(|_| is_done);
        let is_cut = reason.as_deref().is_some_and(is_cut);
        if let Some(message) = message {
            self.message(message, "content", is_cut, output);
            const KNOWN: [&str; 6] = [
                "role",
                "content",
                "thinking",
                "tool_calls",
                "images",
                "image",
            ];
            for (key, value) in other_fields(message, &KNOWN) {
                output.message_field(CHOICE, key, value);
            }
        }
        self.message(node, "response", is_cut, output);
        self.fields(node, output);
        output.first().model = text(node, "model");
        let usage = usage(node);
        if is_done {
            if let Some(reason) = reason {
                output.finish_reason(CHOICE, reason);
            }
            output.stream().usage = usage.map(Into::into);
            output.done();
        }
        true
    }
}

impl Ollama {
    /// Reads a message, or a line of `/api/generate`, which has the same fields. `is_cut` if the line has a reason for which
    /// the arguments of its calls may be missing.
    fn message<'a>(
        &mut self,
        node: &Node<'a>,
        content: &str,
        is_cut: bool,
        output: &mut Output<'a>,
    ) {
        output.text(CHOICE, Lane::Reasoning, fragment(node, "thinking"));
        output.text(CHOICE, Lane::Content, fragment(node, content));
        for part in entries(node.get(content)) {
            output.text(CHOICE, Lane::Content, text_of_part(part));
        }
        for key in ["images", "image"] {
            for image in images(node.get(key)) {
                output.entry(CHOICE, "images", &raw(image));
            }
        }
        for call in entries(node.get("tool_calls")) {
            self.call(call, is_cut, output);
        }
    }

    fn call<'a>(&mut self, node: &Node<'a>, is_cut: bool, output: &mut Output<'a>) {
        let ordinal = self.calls;
        self.calls += 1;
        let function = node.get("function").unwrap_or(node);
        let mut extra = other_fields(node, &["function", "id", "type", "name", "arguments"]);
        extra.append(&mut other_fields(
            function,
            &["name", "arguments", "id", "type"],
        ));
        // Each call is whole, unless the answer was cut in it (D14).
        let if_missing = (!is_cut).then(|| "{}".into());
        output.call(
            CHOICE,
            ToolCallUpdate {
                wire_index: Some(ordinal),
                id: text(node, "id"),
                name: fragment(function, "name"),
                arguments: arguments_of(function.get("arguments")).or(if_missing),
                without_id: true,
                extra,
                ..ToolCallUpdate::default()
            },
        );
    }

    /// The fields beside the text.
    fn fields<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        for (key, value) in node.as_object().unwrap_or_default() {
            match &**key {
                "logprobs" => {
                    if let Some(logprobs) = logprobs(value) {
                        output.choice(CHOICE).logprobs = Some(logprobs);
                    }
                }
                "model" | "created_at" | "message" | "response" | "thinking" | "tool_calls"
                | "image" | "images" | "done" | "done_reason" => {}
                key if is_usage(key) => {}
                _ if value.is_null() => {}
                _ => {
                    let field = (key.clone(), raw(value));
                    output.stream().metadata.push(field);
                }
            }
        }
    }
}

/// A list of tokens, which chat completions have under `content`, or one token in place of it.
fn logprobs<'a>(node: &Node<'a>) -> Option<Cow<'a, str>> {
    let tokens = raw(node);
    match &node.value {
        // As in chat completions.
        Value::Object(_) if has_tokens(&tokens) => Some(tokens),
        Value::Object(_) if node.is_set() => Some(format!("{{\"content\":[{tokens}]}}").into()),
        Value::Array(list) if !list.is_empty() => Some(format!("{{\"content\":{tokens}}}").into()),
        _ => None,
    }
}

fn images<'n, 'a>(node: Option<&'n Node<'a>>) -> &'n [Node<'a>] {
    match node {
        Some(node) if node.is_null() => &[],
        Some(node) => node
            .as_array()
            .unwrap_or_else(|| std::slice::from_ref(node)),
        None => &[],
    }
}

fn is_usage(key: &str) -> bool {
    key.ends_with("_count") || key.ends_with("_duration")
}

/// The counts and durations of the last line as one object.
fn usage(node: &Node<'_>) -> Option<String> {
    let fields = node.as_object()?.iter();
    let fields = fields.filter(|(key, value)| is_usage(key) && !value.is_null());
    let fields: Vec<String> = fields
        .map(|(key, value)| format!("{}:{}", serde_json::Value::from(&**key), raw(value)))
        .collect();
    (!fields.is_empty()).then(|| format!("{{{}}}", fields.join(",")))
}
