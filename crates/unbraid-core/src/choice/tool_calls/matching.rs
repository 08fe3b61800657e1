//! Which call an entry of `tool_calls` belongs to.

use std::sync::Arc;

use serde::de::IgnoredAny;

use super::names::continues_declared;
use crate::{CallKind, ToolCallUpdate, transcript::CallEntry};

/// The slot of the call that an entry belongs to; `None` opens a new call.
///
/// The rules in their order: a known id, the index, then the latest call. `docs/edge-cases.md` has the servers behind them.
pub(in crate::choice) fn find(
    calls: &[CallEntry],
    entry: &ToolCallUpdate<'_>,
    tools: &[Arc<str>],
) -> Option<usize> {
    let id = entry.id.as_deref().filter(|id| !id.is_empty());
    let has_name = entry.name.as_ref().is_some_and(|name| !name.is_empty());
    let key = entry.wire_index.or_else(|| entry.position.map(i64::from));
    if let Some(call) = id.and_then(|id| find_by_id(calls, id, key, has_name)) {
        return call;
    }
    let has_new_id = |call: &CallEntry| id.is_some() && call.id.is_some();
    let Some(key) = key else {
        return find_without_index(calls, entry, has_name, has_new_id, tools);
    };
    if let Some(call) = find_by_key(calls, key) {
        // T7, T10: a new id opens a call only together with a name.
        let opens = has_name && calls.get(call).is_some_and(has_new_id);
        return (!opens).then_some(call);
    }
    let continues = |call: &CallEntry| id.is_none() && (!has_name || repeats_name(call, entry));
    let by_ordinal = find_by_ordinal(calls, key);
    if by_ordinal.is_some_and(|slot| calls.get(slot).is_some_and(continues)) {
        return by_ordinal;
    }
    // T2: the latest call has no index, and this entry continues it or is its missing header.
    latest(calls).filter(|&call| {
        calls
            .get(call)
            .is_some_and(|c| c.key.is_none() && (continues(c) || has_no_header(c)))
    })
}

/// T15: whether an entry repeats the name of a call whose header came without arguments, as each of its fragments does.
fn repeats_name(call: &CallEntry, entry: &ToolCallUpdate<'_>) -> bool {
    let name = entry.name.as_ref().map(|name| &*name.text);
    !call.has_arguments && name == Some(&*call.name)
}

/// An entry without index belongs to the latest call, unless it names another one.
fn find_without_index(
    calls: &[CallEntry],
    entry: &ToolCallUpdate<'_>,
    has_name: bool,
    has_new_id: impl Fn(&CallEntry) -> bool,
    tools: &[Arc<str>],
) -> Option<usize> {
    let slot = latest(calls)?;
    let call = calls.get(slot)?;
    // T18: the name of a call may come after its arguments. With arguments of its own, after whole ones, it is another call.
    let has_arguments = entry
        .arguments
        .as_ref()
        .is_some_and(|piece| !piece.is_empty());
    let is_whole = || serde_json::from_str::<IgnoredAny>(&call.waiting).is_ok();
    let is_named = has_name && (!call.name.is_empty() || (has_arguments && is_whole()));
    let has_other_name = entry.name.as_ref().is_some_and(|piece| {
        is_named && *piece.text != *call.name && !continues_declared(&call.name, &piece.text, tools)
    });
    let opens = (has_name && has_new_id(call)) || has_other_name;
    (!opens || has_no_header(call)).then_some(slot)
}

/// `Some` if the id is known. T14: the same id with another index and a name is another call, hence `Some(None)`.
fn find_by_id(
    calls: &[CallEntry],
    id: &str,
    key: Option<i64>,
    has_name: bool,
) -> Option<Option<usize>> {
    let has_id = |call: &CallEntry| call.id.as_deref() == Some(id);
    let same_key = |call: &CallEntry| key.is_none() || call.key.is_none() || call.key == key;
    if let Some(call) = calls.iter().rposition(|c| has_id(c) && same_key(c)) {
        return Some(Some(call));
    }
    let call = calls.iter().rposition(has_id)?;
    if !has_name {
        return Some(Some(call));
    }
    // A call that waits for its header may already have this index.
    let waits = |call: &CallEntry| call.key == key && has_no_header(call);
    Some(calls.iter().rposition(waits))
}

/// The latest call with this index. A legacy function call has none.
pub(super) fn find_by_key(calls: &[CallEntry], key: i64) -> Option<usize> {
    let has_key = |c: &CallEntry| c.kind != CallKind::LegacyFunction && c.key == Some(key);
    calls.iter().rposition(has_key)
}

/// T2: if the headers of all calls came without index, a fragment's index counts them from 0.
fn find_by_ordinal(calls: &[CallEntry], index: i64) -> Option<usize> {
    let is_tool_call = |call: &&CallEntry| call.kind != CallKind::LegacyFunction;
    let mut tool_calls = calls.iter().filter(is_tool_call);
    if tool_calls.any(|call| call.came_with_index) {
        return None;
    }
    let mut calls = calls.iter().enumerate().filter(|(_, c)| is_tool_call(c));
    let (slot, call) = calls.nth(usize::try_from(index).ok()?)?;
    call.key.is_none().then_some(slot)
}

fn latest(calls: &[CallEntry]) -> Option<usize> {
    calls
        .iter()
        .rposition(|call| call.kind != CallKind::LegacyFunction)
}

fn has_no_header(call: &CallEntry) -> bool {
    call.id.is_none() && call.name.is_empty()
}
