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
    tools: &[Arc<str>],
) -> Result<(), LimitExceeded> {
    let function = update.function_name.is_some() || update.function_arguments_update.is_some();
    if update.tool_call_updates.is_empty() && !function {
        announce_all(log, place);
        return Ok(());
    }
    for entry in &update.tool_call_updates {
        let call = match find(&log.calls, entry, tools) {
            Some(call) => call,
            None if entry.says_nothing() => continue,
            None => open_entry(log, entry, limits.tool_calls)?,
        };
        announce_others(log, call, place);
        absorb(log, call, entry, tools);
        arguments(log, call, entry.arguments.as_ref(), place, limits.warnings);
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
        name(log, call, update.function_name.as_ref(), tools);
        let piece = update.function_arguments_update.as_ref();
        arguments(log, call, piece, place, limits.warnings);
    }
    Ok(())
}

/// Whether a call has its name but was not told yet: whatever comes next tells it.
pub(super) fn any_waits(log: &Transcript) -> bool {
    log.calls.iter().any(|c| !c.announced && !c.name.is_empty())
}

/// The call that arguments with this index go to, if it was told and they change nothing else of it.
pub(super) fn told(log: &Transcript, index: i64) -> Option<u32> {
    let mut calls = log.calls.iter();
    let of_index = |c: &CallEntry| c.kind != CallKind::LegacyFunction && c.key == Some(index);
    let call = calls.rposition(of_index)?;
    let entry = log.calls.get(call)?;
    let settled = entry.announced && entry.index.is_some() && entry.high.is_none();
    settled.then(|| number(call))
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

fn open_entry(
    log: &mut Transcript,
    entry: &ToolCallUpdate<'_>,
    max: usize,
) -> Result<usize, LimitExceeded> {
    let call = open(log, CallKind::Function, max)?;
    if let Some(state) = log.calls.get_mut(call) {
        state.came_with_index = entry.index.is_some();
    }
    Ok(call)
}

/// The call that an entry belongs to; `None` opens a new one. The order of the rules is the design's.
fn find(calls: &[CallEntry], entry: &ToolCallUpdate<'_>, tools: &[Arc<str>]) -> Option<usize> {
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
        let bare = id.is_none() && !named;
        if let Some(call) = numbered(calls, key).filter(|_| bare) {
            return Some(call);
        }
        // T2: the latest call came without index, and the entry continues it, or is the header that it waited for.
        return latest.filter(|&call| {
            calls
                .get(call)
                .is_some_and(|c| c.key.is_none() && (bare || headerless(c)))
        });
    }
    let call = latest?;
    let entry_of = calls.get(call)?;
    let other_name = entry.name.as_ref().is_some_and(|piece| {
        named
            && *piece.text != *entry_of.name
            && !is_piece_of_declared(&entry_of.name, &piece.text, tools)
    });
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

/// T2: where the headers of all calls came without index, a fragment's index counts them, 0 being the first.
fn numbered(calls: &[CallEntry], index: i64) -> Option<usize> {
    let of_tools = |c: &&CallEntry| c.kind != CallKind::LegacyFunction;
    if calls.iter().filter(of_tools).any(|c| c.came_with_index) {
        return None;
    }
    let mut calls = calls.iter().enumerate().filter(|(_, c)| of_tools(c));
    let (call, entry) = calls.nth(usize::try_from(index).ok()?)?;
    entry.key.is_none().then_some(call)
}

fn latest(calls: &[CallEntry]) -> Option<usize> {
    calls
        .iter()
        .rposition(|c| c.kind != CallKind::LegacyFunction)
}

fn headerless(call: &CallEntry) -> bool {
    call.id.is_none() && call.name.is_empty()
}

fn absorb(log: &mut Transcript, call: usize, entry: &ToolCallUpdate<'_>, tools: &[Arc<str>]) {
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
    name(log, call, entry.name.as_ref(), tools);
}

fn name(log: &mut Transcript, call: usize, piece: Option<&Fragment<'_>>, tools: &[Arc<str>]) {
    let (Some(state), Some(piece)) = (log.calls.get_mut(call), piece) else {
        return;
    };
    match fold(&state.name, &piece.text, tools) {
        Fold::Keep => {}
        Fold::Replace => piece.text.as_ref().clone_into(&mut state.name),
        Fold::Append => state.name.push_str(&piece.text),
    }
}

/// What a further piece does to a name.
enum Fold {
    Keep,
    Replace,
    Append,
}

/// Declared names decide, where they can. Otherwise an equal piece is a repetition (T15), an extension takes the name's
/// place (T17), and anything else continues it (T16).
fn fold(name: &str, piece: &str, tools: &[Arc<str>]) -> Fold {
    let again = name == piece;
    if again && declared(name, "", tools) {
        return Fold::Keep;
    }
    if declared(name, piece, tools) {
        return Fold::Append;
    }
    if again {
        return Fold::Keep;
    }
    if declared("", piece, tools) || piece.starts_with(name) {
        return Fold::Replace;
    }
    Fold::Append
}

/// Whether two texts join to the name of a declared tool.
fn declared(head: &str, tail: &str, tools: &[Arc<str>]) -> bool {
    let mut tools = tools.iter();
    tools.any(|tool| tool.strip_prefix(head) == Some(tail))
}

/// Whether a piece without index continues a name (T16, T17), and is not the next call's (T3): only declared names tell.
fn is_piece_of_declared(name: &str, piece: &str, tools: &[Arc<str>]) -> bool {
    declared(name, piece, tools)
        || (!declared(name, "", tools) && declared("", piece, tools) && piece.starts_with(name))
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
    state.announced_index = state.index;
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
pub(super) fn finish_all(log: &mut Transcript, place: Place, cut: bool, max: usize) {
    for call in 0..log.calls.len() {
        announce(log, call, place);
    }
    let arguments = log.arguments();
    for (state, arguments) in log.calls.iter_mut().zip(&arguments) {
        state.status = Some(state.judge(arguments, cut));
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

#[cfg(test)]
mod tests {
    use super::{Fold, fold, is_piece_of_declared};

    /// What pieces of a name come to, if these tools are declared.
    #[track_caller]
    fn check(tools: &[&str], pieces: &[&str], expected: &str) {
        let tools: Vec<_> = tools.iter().map(|&tool| tool.into()).collect();
        let name = pieces.iter().fold(String::new(), |name, piece| {
            match fold(&name, piece, &tools) {
                Fold::Keep => name,
                Fold::Replace => (*piece).to_owned(),
                Fold::Append => name + piece,
            }
        });
        assert_eq!(name, expected, "{pieces:?} of {tools:?}");
    }

    #[test]
    fn t15_to_t17_names_are_folded_without_declared_tools() {
        check(&[], &["add", "add"], "add");
        check(&[], &["edit_ex", "isting_file"], "edit_existing_file");
        check(&[], &["get", "get_w", "get_weather"], "get_weather");
        check(&[], &["get", "", "_time"], "get_time");
    }

    #[test]
    fn t16_declared_names_decide_what_a_piece_is() {
        check(&["add"], &["add", "add"], "add");
        check(&["add", "addadd"], &["add", "add"], "add");
        check(&["haha"], &["ha", "ha"], "haha");
        check(&["getget_time"], &["get", "get_time"], "getget_time");
        check(&["get", "get_time"], &["get", "get_time"], "get_time");
        check(&["get", "get_time"], &["get", "_time"], "get_time");
        check(
            &["get", "get_weather"],
            &["get", "_wea", "ther"],
            "get_weather",
        );
        check(&["search", "web"], &["web", "search"], "search");
        check(&["web_search"], &["search", "web_search"], "web_search");
        check(&["search", "websearch"], &["web", "search"], "websearch");
    }

    #[test]
    fn t16_a_piece_without_index_belongs_to_a_name_only_by_a_declared_tool() {
        let belongs = |tools: &[&str], name, piece| {
            let tools: Vec<_> = tools.iter().map(|&tool| tool.into()).collect();
            is_piece_of_declared(name, piece, &tools)
        };
        assert!(belongs(&["get"], "ge", "t"), "they join to its name");
        assert!(belongs(&["get"], "ge", "get"), "it begins anew");
        assert!(!belongs(&["get"], "ge", "gem"), "that is not declared");
        assert!(!belongs(&["get"], "x", "get"), "it begins otherwise");
        assert!(!belongs(&["get"], "ge", "put"));
        assert!(
            !belongs(&["get", "get_all"], "get", "get_all"),
            "the name is whole"
        );
    }

    #[test]
    fn t44_names_that_nobody_declared_are_folded_as_ever() {
        check(&["add"], &["mul", "tiply"], "multiply");
        check(&["add"], &["mul", "multiply"], "multiply");
        check(&["add"], &["add", "_all"], "add_all");
    }
}
