//! Tool calls of one choice: which call an entry belongs to, and what it adds.

use std::sync::Arc;

use super::{join_halves, lone_half, push_text};
use crate::{
    CallKind, CallStatus, Fragment, Limit, LimitExceeded, Limits, ToolCallUpdate, Update, Warning,
    event::Place,
    limits::MAX_FIELDS,
    transcript::{CallEntry, Kind, Transcript},
};

/// Applies an update's calls, then its legacy function call.
pub(super) fn apply(
    update: &Update<'_>,
    place: Place,
    log: &mut Transcript,
    limits: &Limits,
) -> Result<(), LimitExceeded> {
    let function = update.function_name.is_some() || update.function_arguments_update.is_some();
    if update.tool_call_updates.is_empty() && !function {
        announce_all(log, place);
        return Ok(());
    }
    for entry in &update.tool_call_updates {
        let call = match find(&log.calls, entry) {
            Some(call) => call,
            None if entry.says_nothing() => continue,
            None => open(log, CallKind::Function, limits.tool_calls)?,
        };
        announce_others(log, call, place);
        absorb(log, call, entry, place, limits.warnings);
    }
    if function {
        let legacy = log
            .calls
            .iter()
            .position(|c| c.kind == CallKind::LegacyFunction);
        let call = match legacy {
            Some(call) => call,
            None => open(log, CallKind::LegacyFunction, limits.tool_calls)?,
        };
        announce_others(log, call, place);
        name(log, call, update.function_name.as_ref());
        let piece = update.function_arguments_update.as_ref();
        arguments(log, call, piece, place, limits.warnings);
    }
    Ok(())
}

fn open(log: &mut Transcript, kind: CallKind, max: usize) -> Result<usize, LimitExceeded> {
    if log.calls.len() >= max {
        return Err(LimitExceeded {
            limit: Limit::ToolCalls,
            max: max as u64,
        });
    }
    log.calls.push(CallEntry {
        kind,
        ..CallEntry::default()
    });
    Ok(log.calls.len() - 1)
}

/// The call that an entry belongs to; `None` opens a new one. The order of the rules is the design's.
fn find(calls: &[CallEntry], entry: &ToolCallUpdate<'_>) -> Option<usize> {
    let id = entry.id.as_deref().filter(|id| !id.is_empty());
    let named = entry.name.as_ref().is_some_and(|name| !name.is_empty());
    let key = entry.index.or_else(|| entry.position.map(i64::from));
    if let Some(known) = id.and_then(|id| find_id(calls, id, key, named)) {
        return known;
    }
    let new_id = |call: &CallEntry| id.is_some() && call.id.is_some();
    let latest = latest(calls);
    if let Some(key) = key {
        let same = calls
            .iter()
            .rposition(|c| c.kind != CallKind::LegacyFunction && c.key == Some(key));
        if let Some(call) = same {
            // T7 against T10: a new id opens a call only where a name comes with it.
            return (!(named && calls.get(call).is_some_and(new_id))).then_some(call);
        }
        // T2: the latest call came without index, and the entry continues it, or is the header that it waited for.
        return latest.filter(|&call| {
            calls
                .get(call)
                .is_some_and(|c| c.key.is_none() && ((id.is_none() && !named) || headerless(c)))
        });
    }
    let call = latest?;
    let entry_of = calls.get(call)?;
    let other_name = named
        && entry
            .name
            .as_ref()
            .is_some_and(|name| *name.text != *entry_of.name);
    let opens = (named && new_id(entry_of)) || other_name;
    (!opens || headerless(entry_of)).then_some(call)
}

/// A known id wins, but T14: the same id on another index, with a name, is another call.
fn find_id(calls: &[CallEntry], id: &str, key: Option<i64>, named: bool) -> Option<Option<usize>> {
    let has_id = |c: &CallEntry| c.id.as_deref() == Some(id);
    let same_key = |c: &CallEntry| key.is_none() || c.key.is_none() || c.key == key;
    if let Some(call) = calls.iter().rposition(|c| has_id(c) && same_key(c)) {
        return Some(Some(call));
    }
    let call = calls.iter().rposition(has_id)?;
    if !named {
        return Some(Some(call));
    }
    // The index may already be taken by a slot that waits for its header.
    Some(calls.iter().rposition(|c| c.key == key && headerless(c)))
}

fn latest(calls: &[CallEntry]) -> Option<usize> {
    calls
        .iter()
        .rposition(|c| c.kind != CallKind::LegacyFunction)
}

fn headerless(call: &CallEntry) -> bool {
    call.id.is_none() && call.name.is_empty()
}

fn absorb(log: &mut Transcript, call: usize, entry: &ToolCallUpdate<'_>, place: Place, max: usize) {
    if let Some(state) = log.calls.get_mut(call) {
        state.key = state
            .key
            .or(entry.index)
            .or_else(|| entry.position.map(i64::from));
        state.index = state.index.or(entry.index);
        if let (None, Some(id)) = (&state.id, entry.id.as_deref().filter(|id| !id.is_empty())) {
            state.id = Some(id.into());
        }
        if entry.kind.as_deref() == Some("custom") {
            state.kind = CallKind::Custom;
        }
        for (key, raw) in &entry.extra {
            let full = state.extra.len() >= MAX_FIELDS;
            match state.extra.iter_mut().find(|(known, _)| **known == **key) {
                Some((_, value)) => *value = Arc::from(&**raw),
                None if full => {}
                None => state.extra.push((Arc::from(&**key), Arc::from(&**raw))),
            }
        }
    }
    name(log, call, entry.name.as_ref());
    arguments(log, call, entry.arguments.as_ref(), place, max);
}

/// Folds a name: equal keeps, an extension replaces, anything else appends (T15 to T17).
fn name(log: &mut Transcript, call: usize, piece: Option<&Fragment<'_>>) {
    let (Some(state), Some(piece)) = (log.calls.get_mut(call), piece) else {
        return;
    };
    if piece.text == state.name.as_str() {
        return;
    }
    if piece.text.starts_with(state.name.as_str()) {
        state.name.clear();
    }
    state.name.push_str(&piece.text);
}

/// Appends verbatim (T24); what comes before the name waits for it (T18).
fn arguments(
    log: &mut Transcript,
    call: usize,
    piece: Option<&Fragment<'_>>,
    place: Place,
    max: usize,
) {
    let (Some(state), Some(piece)) = (log.calls.get_mut(call), piece) else {
        return;
    };
    let (text, lone) = join_halves(&mut state.high, piece);
    if lone {
        lone_half(place, log, max);
    }
    if text.is_empty() {
        return;
    }
    if let Some(state) = log
        .calls
        .get_mut(call)
        .filter(|state| !state.announced && state.name.is_empty())
    {
        return state.waiting.push_str(&text);
    }
    announce(log, call, place);
    push_text(log, Kind::CallArguments, place, number(call), &text);
}

fn number(call: usize) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Tells a call, and what waited for its name.
fn announce(log: &mut Transcript, call: usize, place: Place) {
    let Some(state) = log.calls.get_mut(call).filter(|state| !state.announced) else {
        return;
    };
    state.announced = true;
    state.announced_id = state.id.clone();
    state.announced_kind = state.kind;
    let (name, waiting) = (state.name.clone(), std::mem::take(&mut state.waiting));
    log.push(Kind::CallStart, place, number(call), &name);
    push_text(log, Kind::CallArguments, place, number(call), &waiting);
}

/// A name is stable once the choice goes on without it.
pub(super) fn announce_all(log: &mut Transcript, place: Place) {
    announce_others(log, usize::MAX, place);
}

fn announce_others(log: &mut Transcript, but: usize, place: Place) {
    for call in 0..log.calls.len() {
        let named = log
            .calls
            .get(call)
            .is_some_and(|c| !c.announced && !c.name.is_empty());
        if named && call != but {
            announce(log, call, place);
        }
    }
}

pub(super) fn flush_all(log: &mut Transcript, place: Place, max: usize) {
    for call in 0..log.calls.len() {
        let Some(state) = log.calls.get_mut(call).filter(|state| state.high.is_some()) else {
            continue;
        };
        state.high = None;
        if state.announced {
            log.push(Kind::CallArguments, place, number(call), "\u{FFFD}");
        } else {
            state.waiting.push('\u{FFFD}');
        }
        lone_half(place, log, max);
    }
}

/// At the end every call is told, named or not, and judged.
pub(super) fn finish_all(log: &mut Transcript, place: Place, max: usize) {
    for call in 0..log.calls.len() {
        announce(log, call, place);
    }
    let arguments = log.arguments();
    for (state, arguments) in log.calls.iter_mut().zip(&arguments) {
        state.status = Some(state.judge(arguments));
    }
    for (call, arguments) in arguments.iter().enumerate() {
        log.push(Kind::CallDone, place, number(call), "");
        let status = log.calls.get(call).and_then(|state| state.status);
        if status == Some(CallStatus::Repaired) && arguments.trim_start().starts_with("{}") {
            let warning =
                Warning::new("T22", place.at, "arguments begin with a placeholder object");
            log.warn(warning, place, max);
        }
    }
}

/// What came behind the end is in the message, so its calls are judged anew there.
pub(super) fn mark_late(log: &mut Transcript) {
    for state in &mut log.calls {
        state.late = true;
    }
}
