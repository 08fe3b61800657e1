//! Cuts an entry to one part of its message.

use unbraid_core::CompletionKind;

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
    (part, kind): (Part, CompletionKind),
    calls: &mut CallNumbers,
    edits: &mut Edits,
) -> bool {
    let Some(object) = json::object(text, entry) else {
        return false;
    };
    let is_set = |value: &Span| json::is_set(text, value);
    let is_text = |member: &Member| json::is_key(text, &member.key, "text");
    let is_delta = |member: &Member| {
        let fields = || json::object(text, &member.value);
        json::is_key(text, &member.key, "delta")
            && fields().is_some_and(|fields| !fields.members.is_empty())
    };
    // A text completion has beside its text what a chat has in its delta. It may omit an empty text.
    let has_message = || json::member(text, &object, "message").is_some_and(is_set);
    let is_without_text = || kind == CompletionKind::Text && !has_message();
    let has_text = (object.members.iter().any(is_text) || is_without_text())
        && !object.members.iter().any(is_delta);
    let mut is_shown = json::member(text, &object, "finish_reason").is_some_and(is_set);
    for member in &object.members {
        let is = |name| json::is_key(text, &member.key, name);
        if is("delta") || is("message") {
            is_shown |= keep_in_message(text, &member.value, part, calls, edits);
        } else if is("text") && part == Part::Content {
            is_shown |= is_set(&member.value);
        } else if is("text") && is_set(&member.value) {
            edits.replace(member.value.clone(), "\"\"");
        } else if has_text && is_beside_text(text, member) && is_set(&member.value) {
            let (is_kept, has_value) = selects(text, member, part, calls, edits);
            is_shown |= has_value;
            if !is_kept {
                edits.replace(member.value.clone(), "null");
            }
        }
    }
    is_shown
}

fn is_beside_text(text: &[u8], member: &Member) -> bool {
    let names = ["refusal", "tool_calls", "function_call"]
        .into_iter()
        .chain(REASONING);
    names
        .into_iter()
        .any(|name| json::is_key(text, &member.key, name))
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
        let (is_kept, has_value) = selects(text, member, part, calls, edits);
        is_shown |= has_value;
        kept.push((member.span(), is_kept));
    }
    edits.keep_items(&object.interior, kept.into_iter());
    is_shown
}

/// Whether a field of a message belongs to the view of one part, and whether it has a value for it.
fn selects(
    text: &[u8],
    member: &Member,
    part: Part,
    calls: &mut CallNumbers,
    edits: &mut Edits,
) -> (bool, bool) {
    let is = |name: &str| json::is_key(text, &member.key, name);
    let is_part = match part {
        _ if is("role") => true,
        Part::Content => is("content"),
        Part::Refusal => is("refusal"),
        Part::Reasoning => REASONING.iter().any(|name| is(name)),
        Part::ToolCall(0) if is("function_call") => true,
        Part::ToolCall(call) => {
            let has_call = is("tool_calls") && keep_call(text, member, call, calls, edits);
            return (has_call, has_call);
        }
    };
    (is_part, is_part && json::is_set(text, &member.value))
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
