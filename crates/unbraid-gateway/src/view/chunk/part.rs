//! Cuts an entry to one part of its message.

use super::{
    calls::CallNumbers,
    edit::Edits,
    json::{self, Member, Span},
};
use crate::view::Part;

/// The fields of a delta that contain reasoning, and those that only repeat it in another form.
const REASONING: [&str; 7] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "thinking_content",
    "thought",
    "reasoning_details",
];

/// Removes everything from an entry's message but its role and one part. Returns whether the view shows the entry: it has
/// one of the two, or a finish reason.
pub(super) fn keep(
    text: &[u8],
    entry: &Span,
    part: Part,
    calls: &mut CallNumbers,
    edits: &mut Edits,
) -> bool {
    let Some(object) = json::object(text, entry) else {
        return false;
    };
    let is_set = |value: &Span| json::is_set(text, value);
    let mut is_shown = json::member(text, &object, "finish_reason").is_some_and(is_set);
    for member in &object.members {
        let is = |name| json::is_key(text, &member.key, name);
        if is("delta") || is("message") {
            is_shown |= keep_in_message(text, &member.value, part, calls, edits);
        } else if is("text") && part == Part::Content {
            is_shown |= is_set(&member.value);
        } else if is("text") && is_set(&member.value) {
            edits.replace(member.value.clone(), "\"\"");
        }
    }
    is_shown
}

fn keep_in_message(
    text: &[u8],
    message: &Span,
    part: Part,
    calls: &mut CallNumbers,
    edits: &mut Edits,
) -> bool {
    let Some(object) = json::object(text, message) else {
        return false;
    };
    let mut is_shown = false;
    let mut kept = Vec::with_capacity(object.members.len());
    for member in &object.members {
        let is = |name: &str| json::is_key(text, &member.key, name);
        let (is_kept, has_value) = match part {
            _ if is("role") => (true, json::is_set(text, &member.value)),
            Part::Content if is("content") => (true, json::is_set(text, &member.value)),
            Part::Refusal if is("refusal") => (true, json::is_set(text, &member.value)),
            Part::Reasoning if REASONING.iter().any(|name| is(name)) => {
                (true, json::is_set(text, &member.value))
            }
            Part::ToolCall(0) if is("function_call") => (true, json::is_set(text, &member.value)),
            Part::ToolCall(call) if is("tool_calls") => {
                let has_call = keep_call(text, member, call, calls, edits);
                (has_call, has_call)
            }
            Part::Content | Part::Reasoning | Part::Refusal | Part::ToolCall(_) => (false, false),
        };
        is_shown |= has_value;
        kept.push((member.span(), is_kept));
    }
    edits.keep_items(&object.interior, kept.into_iter());
    is_shown
}

/// Removes all calls but one. Returns whether it is there.
fn keep_call(
    text: &[u8],
    member: &Member,
    call: u32,
    calls: &mut CallNumbers,
    edits: &mut Edits,
) -> bool {
    let Some(array) = json::array(text, &member.value) else {
        // A single call without a list.
        return calls.number(text, &member.value) == Some(call);
    };
    let kept: Vec<_> = array
        .elements
        .into_iter()
        .map(|element| {
            let is_kept = calls.number(text, &element) == Some(call);
            (element, is_kept)
        })
        .collect();
    let has_call = kept.iter().any(|(_, is_kept)| *is_kept);
    if has_call {
        edits.keep_items(&array.interior, kept.into_iter());
    }
    has_call
}
