//! Chat completions: `choices[].delta`, in every shape that servers give it.

use std::borrow::Cow;

use crate::{
    Fragment, ToolCallUpdate,
    decode::{
        chunk::{CONTENT_PARTS, Element, REASONING, is_padding, number_calls, put, some_text},
        node::{Node, Value, Wide},
    },
    limits::MAX_ENTRIES,
};

/// Reads a delta, or a whole message.
pub(crate) fn delta<'a>(node: &Node<'a>, element: &mut Element<'a>) {
    let mut reasoning: [Option<Fragment<'a>>; REASONING.len()] = Default::default();
    for (key, value) in node.as_object().unwrap_or_default() {
        match &**key {
            "role" => element.update.role = value.text().filter(|role| !role.is_empty()),
            "content" => content(value, element),
            "refusal" => element.update.refusal_update = some_text(fragment(value)),
            "tool_calls" => element.update.tool_call_updates = tool_calls(value),
            "function_call" => {
                element.update.function_name = value
                    .get("name")
                    .and_then(fragment)
                    .and_then(|f| some_text(Some(f)));
                element.update.function_arguments_update =
                    value.get("arguments").and_then(arguments);
            }
            key_name if is_padding(key_name) => {}
            other => match REASONING.iter().position(|name| *name == other) {
                Some(at) => {
                    if let Some(slot) = reasoning.get_mut(at) {
                        *slot = some_text(fragment(value));
                    }
                }
                None if value.is_null() => {}
                None => put(&mut element.fields, key.clone(), value.to_json()),
            },
        }
    }
    let part = element.update.reasoning_update.take();
    element.update.reasoning_update = reasoning.into_iter().flatten().next().or(part);
    if element.update.reasoning_update.is_none() {
        element.update.reasoning_update = node.get("reasoning_details").and_then(details);
        element.details_only = element.update.reasoning_update.is_some();
    }
}

/// What a whole message gives to an entry whose delta was empty.
pub(crate) fn merge<'a>(whole: Element<'a>, element: &mut Element<'a>) {
    let (from, to) = (whole.update, &mut element.update);
    to.role = to.role.take().or(from.role);
    to.whole = from.whole;
    to.content_update = from.content_update;
    to.refusal_update = from.refusal_update;
    to.reasoning_update = from.reasoning_update;
    to.tool_call_updates = from.tool_call_updates;
    to.function_name = from.function_name;
    to.function_arguments_update = from.function_arguments_update;
    element.details_only = whole.details_only;
    for (key, raw) in whole.fields {
        put(&mut element.fields, key, raw);
    }
}

/// A string, with the halves at its ends.
pub(crate) fn fragment<'a>(node: &Node<'a>) -> Option<Fragment<'a>> {
    node.as_str().map(|Wide { text, low, high }| Fragment {
        text: text.clone(),
        low: *low,
        high: *high,
    })
}

/// A string, or parts: text parts are text, thinking parts are reasoning (C11); whatever else it is, it is kept.
fn content<'a>(node: &Node<'a>, element: &mut Element<'a>) {
    let parts = match &node.value {
        Value::Null | Value::String(_) => {
            element.update.content_update = some_text(fragment(node));
            return;
        }
        Value::Array(parts) => parts.as_slice(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => std::slice::from_ref(node),
    };
    let (mut text, mut thinking) = (String::new(), String::new());
    let mut others = String::new();
    for part in parts {
        match part.get("type").and_then(Node::text).as_deref() {
            Some("thinking" | "reasoning") => thinking.push_str(&part_text(part)),
            Some("text" | "output_text") => text.push_str(&part_text(part)),
            None if is_text(part) => text.push_str(&part_text(part)),
            kind => {
                element.odd |= kind.is_none();
                others.push(if others.is_empty() { '[' } else { ',' });
                others.push_str(&part.to_json());
            }
        }
    }
    if !others.is_empty() {
        others.push(']');
        let key = Cow::Borrowed(CONTENT_PARTS);
        put(&mut element.fields, key, Cow::Owned(others));
    }
    element.update.content_update = (!text.is_empty()).then(|| Fragment::from(text));
    element.update.reasoning_update = (!thinking.is_empty()).then(|| Fragment::from(thinking));
}

/// Whether a part without a type is text all the same.
fn is_text(part: &Node<'_>) -> bool {
    part.as_str().is_some() || part.get("text").is_some()
}

/// The text of a part, which may itself be a list of parts; a part that is a string is its text.
fn part_text(part: &Node<'_>) -> String {
    const NAMES: [&str; 3] = ["text", "thinking", "reasoning"];
    if let Some(text) = part.text() {
        return text.into_owned();
    }
    let Some(inner) = NAMES
        .iter()
        .find_map(|name| part.get(name).filter(|inner| !inner.is_null()))
    else {
        return String::new();
    };
    match (inner.text(), inner.as_array()) {
        (Some(text), _) => text.into_owned(),
        (None, Some(parts)) => parts
            .iter()
            .filter_map(|part| part.get("text").and_then(Node::text))
            .collect(),
        (None, None) => String::new(),
    }
}

/// R4: the details' own text or summary.
pub(crate) fn details<'a>(node: &Node<'a>) -> Option<Fragment<'static>> {
    let entry = |entry: &Node<'a>| {
        ["text", "summary"].iter().find_map(|name| {
            entry
                .get(name)
                .and_then(Node::text)
                .filter(|text| !text.is_empty())
        })
    };
    let text: String = node.as_array()?.iter().filter_map(entry).collect();
    (!text.is_empty()).then(|| Fragment::from(text))
}

fn tool_calls<'a>(node: &Node<'a>) -> Vec<ToolCallUpdate<'a>> {
    let entries = match &node.value {
        Value::Array(entries) => entries.as_slice(),
        Value::Object(_) => std::slice::from_ref(node), // T42
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    };
    let mut calls: Vec<_> = entries
        .iter()
        .take(MAX_ENTRIES)
        .filter(|entry| entry.as_object().is_some())
        .map(tool_call)
        .collect();
    number_calls(&mut calls);
    calls
}

fn tool_call<'a>(node: &Node<'a>) -> ToolCallUpdate<'a> {
    let mut call = ToolCallUpdate::default();
    for (key, value) in node.as_object().unwrap_or_default() {
        match &**key {
            "index" => call.index = value.as_i64_lenient(),
            "id" => call.id = value.text().filter(|id| !id.is_empty()),
            "type" => call.kind = value.text().filter(|kind| !kind.is_empty()),
            "function" => {
                call.name = value
                    .get("name")
                    .and_then(fragment)
                    .and_then(|f| some_text(Some(f)));
                call.arguments = value.get("arguments").and_then(arguments);
            }
            "custom" if !value.is_null() => {
                call.kind = Some(Cow::Borrowed("custom"));
                call.name = value
                    .get("name")
                    .and_then(fragment)
                    .and_then(|f| some_text(Some(f)));
                call.arguments = value.get("input").and_then(fragment);
            }
            _ if value.is_null() => {}
            _ => put(&mut call.extra, key.clone(), value.to_json()),
        }
    }
    call
}

/// A string is appended as it is; an object is a whole value, but an empty one only holds the place (T19, T20).
fn arguments<'a>(node: &Node<'a>) -> Option<Fragment<'a>> {
    match &node.value {
        Value::Null => None,
        Value::String(_) => some_text(fragment(node)),
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            Some(Fragment::from(compact(node)))
        }
    }
}

fn compact<'a>(node: &Node<'a>) -> Cow<'a, str> {
    let json = node.to_json();
    match serde_json::from_str::<serde_json::Value>(&json) {
        Ok(value) => Cow::Owned(value.to_string()),
        Err(_) => json,
    }
}
