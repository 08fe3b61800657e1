//! Chat completions: `choices[].delta`, in every shape that servers give it.

use std::{borrow::Cow, sync::Arc};

use super::parts::{Joined, content};
use crate::{
    Fragment, ToolCallUpdate,
    decode::{
        chunk::{Element, is_padding, number_calls, put, some_text},
        node::{Node, Value, Wide, compact},
    },
    limits::MAX_ENTRIES,
};

/// Reads a delta, or a whole message.
pub(crate) fn delta<'a>(node: &Node<'a>, element: &mut Element<'a>, names: &[Arc<str>]) {
    // The text under the best name so far, and that name's rank.
    let mut reasoning: Option<(usize, Fragment<'a>)> = None;
    for (key, value) in node.as_object().unwrap_or_default() {
        match &**key {
            "role" => element.update.role = value.text().filter(|role| !role.is_empty()),
            "content" => content(value, element),
            "refusal" => element.update.refusal = some_text(fragment(value)),
            "tool_calls" => element.update.tool_calls = tool_calls(value),
            "function_call" => {
                element.update.function_name = value
                    .get("name")
                    .and_then(fragment)
                    .and_then(|f| some_text(Some(f)));
                element.update.function_arguments = value.get("arguments").and_then(arguments);
            }
            key_name if is_padding(key_name) => {}
            other => match names.iter().position(|name| **name == *other) {
                Some(rank) => {
                    let is_better = reasoning.as_ref().is_none_or(|(best, _)| rank < *best);
                    if let (true, Some(text)) = (is_better, some_text(fragment(value))) {
                        reasoning = Some((rank, text));
                    }
                }
                None if value.is_null() => {}
                None => put(&mut element.fields, key.clone(), value.to_json()),
            },
        }
    }
    let part = element.update.reasoning.take();
    element.update.reasoning = reasoning.map(|(_, text)| text).or(part);
    if let (None, Some(list)) = (&element.update.reasoning, node.get("reasoning_details")) {
        let (text, lost_half) = details(list);
        element.details_only = text.is_some();
        element.lost_half |= lost_half;
        element.update.reasoning = text;
    }
}

/// What a whole message gives to an entry whose delta was empty.
pub(crate) fn merge<'a>(whole: Element<'a>, element: &mut Element<'a>) {
    let (from, to) = (whole.update, &mut element.update);
    to.role = to.role.take().or(from.role);
    to.is_full_message = from.is_full_message;
    to.content = from.content;
    to.refusal = from.refusal;
    to.reasoning = from.reasoning;
    to.tool_calls = from.tool_calls;
    to.function_name = from.function_name;
    to.function_arguments = from.function_arguments;
    element.details_only = whole.details_only;
    element.lost_half |= whole.lost_half;
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

/// R4: the details' own text or summary, and whether half a character was replaced between two of them.
pub(crate) fn details(node: &Node<'_>) -> (Option<Fragment<'static>>, bool) {
    let mut text = Joined::default();
    for entry in node.as_array().unwrap_or_default() {
        let said = ["text", "summary"]
            .iter()
            .filter_map(|name| entry.get(name)?.as_str())
            .find(|text| !text.is_empty());
        if let Some(said) = said {
            text.push(said);
        }
    }
    text.end()
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
            "index" => call.wire_index = value.as_i64_lenient(),
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

/// A string is appended as it is. An object is a whole value in its own text, but an empty one only holds the place
/// (T19, T20).
fn arguments<'a>(node: &Node<'a>) -> Option<Fragment<'a>> {
    match &node.value {
        Value::Null => None,
        Value::String(_) => some_text(fragment(node)),
        Value::Object(fields) if fields.is_empty() => None,
        Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
            Some(Fragment::from(compact(node.raw)))
        }
    }
}
