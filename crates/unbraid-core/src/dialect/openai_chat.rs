//! Chat completions: `choices[].delta`, in each form that servers are known to send.

use std::{borrow::Cow, sync::Arc};

use super::parts::{TextJoiner, content, text_of};
use crate::{
    Fragment, ToolCallUpdate, audio,
    chunk::{
        Element, ReasoningOrigin, is_call_field, is_padding, number_calls, put_field, some_text,
    },
    limits::MAX_ENTRIES,
    node::{Node, Value, compact},
};

/// Reads a delta, or a full message.
pub(crate) fn delta<'a>(node: &Node<'a>, element: &mut Element<'a>, reasoning_keys: &[Arc<str>]) {
    let fields = node.as_object().unwrap_or_default();
    read_fields(fields.iter(), element, reasoning_keys);
}

/// Reads the fields of a delta, wherever a server has them.
pub(super) fn read_fields<'n, 'a: 'n>(
    fields: impl Iterator<Item = &'n (Cow<'a, str>, Node<'a>)>,
    element: &mut Element<'a>,
    reasoning_keys: &[Arc<str>],
) {
    // The text of the highest-ranked reasoning field so far, and its rank.
    let mut reasoning: Option<(usize, Fragment<'a>)> = None;
    let mut reasoning_details = None;
    for (key, value) in fields {
        match &**key {
            "role" => element.update.role = value.text().filter(|role| !role.is_empty()),
            "content" => content(value, element),
            "refusal" => {
                element.update.refusal = text_of(value, element);
            }
            "tool_calls" => element.update.tool_calls = tool_calls(value),
            "function_call" => {
                element.update.function_name = value
                    .get("name")
                    .and_then(Node::fragment)
                    .and_then(|f| some_text(Some(f)));
                element.update.function_arguments = value.get("arguments").and_then(arguments);
            }
            key_name if is_padding(key_name) => {}
            other => match reasoning_keys.iter().position(|name| **name == *other) {
                Some(rank) => {
                    let is_better = reasoning.as_ref().is_none_or(|(best, _)| rank < *best);
                    if is_better && let Some(text) = text_of(value, element) {
                        reasoning = Some((rank, text));
                    }
                }
                None if value.is_null() => {}
                None => {
                    if other == "reasoning_details" {
                        reasoning_details = Some(value);
                    }
                    let raw = match other {
                        "audio" => audio::piece_json(value),
                        _ => value.to_json(),
                    };
                    put_field(&mut element.fields, key.clone(), raw);
                }
            },
        }
    }
    let from_parts = element.update.reasoning.take();
    element.reasoning_origin = match (&reasoning, &from_parts) {
        (Some((rank, _)), _) => Some(ReasoningOrigin::Field(*rank)),
        (None, Some(_)) => Some(ReasoningOrigin::ContentParts),
        (None, None) => None,
    };
    element.update.reasoning = reasoning.map(|(_, text)| text).or(from_parts);
    if let (None, Some(list)) = (&element.update.reasoning, reasoning_details) {
        let (text, replaced_half) = details(list);
        element.reasoning_origin = text.is_some().then_some(ReasoningOrigin::Details);
        element.replaced_half |= replaced_half;
        element.update.reasoning = text;
    }
}

/// Moves the fields of a full message to an entry whose delta was empty.
pub(crate) fn merge_message<'a>(message: Element<'a>, element: &mut Element<'a>) {
    let (from, to) = (message.update, &mut element.update);
    to.role = to.role.take().or(from.role);
    to.is_full_message = from.is_full_message;
    to.content = from.content;
    to.refusal = from.refusal;
    to.reasoning = from.reasoning;
    to.tool_calls = from.tool_calls;
    to.function_name = from.function_name;
    to.function_arguments = from.function_arguments;
    element.reasoning_origin = message.reasoning_origin;
    element.replaced_half |= message.replaced_half;
    for (key, raw) in message.fields {
        put_field(&mut element.fields, key, raw);
    }
}

/// The text of `reasoning_details`, from the `text` or `summary` of each entry (R4), and whether half a surrogate pair
/// between two of them was replaced. A part of Gemini is kept there for its signature, and its text is the answer's (G13).
pub(crate) fn details(node: &Node<'_>) -> (Option<Fragment<'static>>, bool) {
    let mut text = TextJoiner::default();
    for entry in node.as_array().unwrap_or_default() {
        let part = ["text", "summary"]
            .iter()
            .filter_map(|name| entry.get(name)?.as_str())
            .find(|text| !text.is_empty());
        if let Some(part) = part.filter(|_| entry.get("thoughtSignature").is_none()) {
            text.push(part);
        }
    }
    text.finish()
}

fn tool_calls<'a>(node: &Node<'a>) -> Vec<ToolCallUpdate<'a>> {
    // T42: a single call may come without a list.
    let entries = node.entries_at().take(MAX_ENTRIES);
    let mut calls: Vec<_> = entries
        .filter(|(_, entry)| entry.as_object().is_some())
        .map(|(position, entry)| {
            let mut call = tool_call(entry);
            // E22: the keys are those of the same calls in later chunks.
            call.wire_index = call.wire_index.or(position);
            call
        })
        .collect();
    number_calls(&mut calls);
    calls
}

fn tool_call<'a>(node: &Node<'a>) -> ToolCallUpdate<'a> {
    let mut call = ToolCallUpdate::default();
    let member = member(node);
    for (key, value) in node.as_object().unwrap_or_default() {
        match &**key {
            "index" => call.wire_index = value.as_i64_lenient(),
            "id" => call.id = id(value),
            "type" => call.kind = value.text().filter(|kind| !kind.is_empty()),
            "function" | "custom" if &**key != member => {}
            "function" => called(value, "arguments", &mut call),
            "custom" => called(value, "input", &mut call),
            _ if value.is_null() => {}
            _ => put_field(&mut call.extra, key.clone(), value.to_json()),
        }
    }
    if member == "custom" {
        call.kind = Some(Cow::Borrowed(member));
    }
    call
}

/// The member with what is called (T31): types with both of them send the one that is not meant empty.
fn member(call: &Node<'_>) -> &'static str {
    let is_function = || {
        let function = call.get("function").filter(|function| !function.is_null());
        let kind = call.get("type").and_then(Node::as_str);
        let is_meant = kind.is_some_and(|kind| kind.text == "function");
        function.map(|function| is_meant && function.has_content())
    };
    match call.get("custom").filter(|custom| !custom.is_null()) {
        Some(custom) if custom.has_content() && is_function() != Some(true) => "custom",
        Some(_) if is_function().is_none() => "custom",
        _ => "function",
    }
}

/// The id of a call, which may be a number (E10).
fn id<'a>(value: &Node<'a>) -> Option<Cow<'a, str>> {
    match value.value {
        Value::Number(raw) => Some(Cow::Borrowed(raw)),
        _ => value.text().filter(|id| !id.is_empty()),
    }
}

/// Reads what is called, from the member with its name and its arguments. Unknown fields there become fields of the call (T40).
fn called<'a>(member: &Node<'a>, arguments_key: &str, call: &mut ToolCallUpdate<'a>) {
    for (key, value) in member.as_object().unwrap_or_default() {
        match &**key {
            "name" => call.name = some_text(value.fragment()),
            key if key == arguments_key => call.arguments = arguments(value),
            key if is_call_field(key) => {}
            _ if value.is_null() || call.extra.iter().any(|(known, _)| known == key) => {}
            _ => put_field(&mut call.extra, key.clone(), value.to_json()),
        }
    }
}

/// The arguments of a call. A string is appended as it is. Any other value is complete and keeps its own JSON text,
/// but an empty object is only a placeholder (T19, T20).
fn arguments<'a>(node: &Node<'a>) -> Option<Fragment<'a>> {
    match &node.value {
        Value::Null => None,
        Value::String(_) => some_text(node.fragment()),
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            Some(Fragment::from(compact(node.raw)))
        }
    }
}
