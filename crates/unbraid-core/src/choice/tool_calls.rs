//! The tool calls of one choice: what each entry of an update adds to them, and their events.

mod matching;
mod names;

use std::sync::Arc;

pub(super) use matching::find;
use matching::find_by_key;
use names::{NameUpdate, update_name};

use super::text::{join_halves, push_text, replace_halves, warn_lone_half};
use crate::{
    CallIndex, CallKind, CallStatus, Fragment, Limit, LimitExceeded, Limits, Update, Warning,
    event::Position,
    transcript::{CallEntry, Kind, Transcript},
};

/// Applies an update's calls, then its legacy function call.
pub(super) fn apply(
    update: &Update<'_>,
    position: Position,
    transcript: &mut Transcript,
    limits: &Limits,
    tools: &[Arc<str>],
) -> Result<(), LimitExceeded> {
    let has_function = update.function_name.is_some() || update.function_arguments.is_some();
    for entry in &update.tool_calls {
        let call = match find(transcript.calls(), entry, tools) {
            Some(call) => call,
            None if entry.is_empty() => continue,
            None => {
                let came_with_index = entry.wire_index.is_some();
                open(
                    transcript,
                    CallKind::Function,
                    came_with_index,
                    limits.tool_calls,
                )?
            }
        };
        announce_others(transcript, call, position);
        if let Some(state) = transcript.call_mut(call) {
            state.absorb(entry);
        }
        let name = entry.name.as_ref();
        add_to_name(transcript, call, name, tools, position, limits.warnings);
        let arguments = entry.arguments.as_ref();
        add_arguments(transcript, call, arguments, position, limits.warnings);
    }
    if has_function {
        let is_legacy = |call: &CallEntry| call.kind == CallKind::LegacyFunction;
        let call = match transcript.calls().iter().position(is_legacy) {
            Some(call) => call,
            None => open(
                transcript,
                CallKind::LegacyFunction,
                false,
                limits.tool_calls,
            )?,
        };
        announce_others(transcript, call, position);
        let name = update.function_name.as_ref();
        add_to_name(transcript, call, name, tools, position, limits.warnings);
        let arguments = update.function_arguments.as_ref();
        add_arguments(transcript, call, arguments, position, limits.warnings);
    }
    Ok(())
}

/// Whether a call has its name but is not announced: then the next update announces it.
#[inline]
pub(super) fn any_unannounced(transcript: &Transcript) -> bool {
    let mut calls = transcript.calls().iter();
    calls.any(|call| !call.announced && !call.name.is_empty())
}

/// The ordinal of the call that arguments with this index belong to, if appending them changes nothing else.
pub(super) fn announced_call(transcript: &Transcript, index: i64) -> Option<u32> {
    let call = find_by_key(transcript.calls(), index)?;
    let state = transcript.calls().get(call)?;
    let only_appends = state.announced && state.index.is_some() && state.high.is_none();
    only_appends.then(|| ordinal(call))
}

fn open(
    transcript: &mut Transcript,
    kind: CallKind,
    came_with_index: bool,
    max: usize,
) -> Result<usize, LimitExceeded> {
    if transcript.calls().len() >= max {
        return Err(LimitExceeded::new(Limit::ToolCalls, max as u64));
    }
    Ok(transcript.open_call(CallEntry {
        kind,
        came_with_index,
        ..CallEntry::default()
    }))
}

fn add_to_name(
    transcript: &mut Transcript,
    call: usize,
    piece: Option<&Fragment<'_>>,
    tools: &[Arc<str>],
    position: Position,
    max_warnings: usize,
) {
    let Some(piece) = piece else { return };
    let now = transcript.moment(position.event);
    let (piece, is_lone) = replace_halves(piece);
    if is_lone {
        warn_lone_half(position, transcript, max_warnings);
    }
    let Some(state) = transcript.call_mut(call) else {
        return;
    };
    match update_name(&state.name, &piece, tools) {
        NameUpdate::Keep => return,
        NameUpdate::Replace => piece.as_ref().clone_into(&mut state.name),
        NameUpdate::Append => state.name.push_str(&piece),
    }
    if state.announced && !piece.is_empty() {
        state.renamed = Some(now);
    }
    state.named = state.named.or(Some(now)).filter(|_| !state.name.is_empty());
}

/// Appends arguments verbatim (T24). Arguments that arrive before the name wait for it (T18).
fn add_arguments(
    transcript: &mut Transcript,
    call: usize,
    arguments: Option<&Fragment<'_>>,
    position: Position,
    max_warnings: usize,
) {
    let (Some(state), Some(arguments)) = (transcript.call_mut(call), arguments) else {
        return;
    };
    state.has_arguments |= !arguments.is_empty();
    let (text, is_lone) = join_halves(&mut state.high, arguments);
    let waits = !state.announced && state.name.is_empty();
    if waits {
        state.waiting.push_str(&text);
    }
    if is_lone {
        warn_lone_half(position, transcript, max_warnings);
    }
    if waits || text.is_empty() {
        return;
    }
    announce(transcript, call, position);
    push_text(
        transcript,
        Kind::CallArguments,
        position,
        ordinal(call),
        &text,
    );
}

fn ordinal(call: usize) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// Emits the start of a call, unless that was done, and the arguments that waited for its name.
fn announce(transcript: &mut Transcript, call: usize, position: Position) {
    let state = transcript.call_mut(call);
    let Some((name, waiting)) = state.and_then(CallEntry::announce) else {
        return;
    };
    let call = ordinal(call);
    transcript.push(Kind::CallStart, position, call, &name);
    push_text(transcript, Kind::CallArguments, position, call, &waiting);
}

/// Announces every call that has a name: the choice goes on without it, so the name is complete.
pub(super) fn announce_all(transcript: &mut Transcript, position: Position) {
    announce_others(transcript, usize::MAX, position);
}

/// Announces the calls for which this update has no entry: the choice goes on without them, so their names are complete, and they
/// came before its text.
pub(super) fn announce_left(
    update: &Update<'_>,
    position: Position,
    transcript: &mut Transcript,
    tools: &[Arc<str>],
) {
    let entries = update.tool_calls.iter();
    let continued: Vec<usize> = entries
        .filter_map(|entry| find(transcript.calls(), entry, tools))
        .collect();
    let has_function = update.function_name.is_some() || update.function_arguments.is_some();
    announce_where(transcript, position, |call, state| {
        let is_legacy = state.kind == CallKind::LegacyFunction;
        let is_continued = continued.contains(&call) || (is_legacy && has_function);
        !is_continued
    });
}

fn announce_others(transcript: &mut Transcript, except: usize, position: Position) {
    announce_where(transcript, position, |call, _| call != except);
}

/// Announces those of the calls with a name that are to be announced now.
fn announce_where(
    transcript: &mut Transcript,
    position: Position,
    is_due: impl Fn(usize, &CallEntry) -> bool,
) {
    for call in 0..transcript.calls().len() {
        let state = transcript.calls().get(call);
        let is_ready = state
            .is_some_and(|state| !state.announced && !state.name.is_empty() && is_due(call, state));
        if is_ready {
            announce(transcript, call, position);
        }
    }
}

/// Replaces the half of a character that a call's arguments end with (C14).
pub(super) fn flush_all(transcript: &mut Transcript, position: Position, max_warnings: usize) {
    for call in 0..transcript.calls().len() {
        let state = transcript.call_mut(call);
        let Some(state) = state.filter(|state| state.high.is_some()) else {
            continue;
        };
        state.high = None;
        if state.announced {
            transcript.push(Kind::CallArguments, position, ordinal(call), "\u{FFFD}");
        } else {
            state.waiting.push('\u{FFFD}');
        }
        warn_lone_half(position, transcript, max_warnings);
    }
}

/// Announces the remaining calls, with a name or without, and emits the status of each call.
pub(super) fn finish_all(
    transcript: &mut Transcript,
    position: Position,
    first_cut: CallIndex,
    max_warnings: usize,
) {
    for call in 0..transcript.calls().len() {
        announce(transcript, call, position);
    }
    let arguments = transcript.arguments();
    for (call, arguments) in arguments.iter().enumerate() {
        if let Some(state) = transcript.call_mut(call) {
            let is_cut = CallIndex(ordinal(call)) >= first_cut;
            state.status = Some(state.check(arguments, is_cut));
        }
    }
    let late = transcript.late_calls();
    for (call, arguments) in arguments.iter().enumerate() {
        transcript.push(Kind::CallDone, position, ordinal(call), "");
        let status = transcript.calls().get(call).and_then(|state| state.status);
        if status == Some(CallStatus::Repaired) && arguments.trim_start().starts_with("{}") {
            let message = "arguments begin with a placeholder object";
            let warning = Warning::new("T22", position.event, message);
            transcript.warn(warning, position, max_warnings);
        }
        for late in late
            .iter()
            .filter(|late| late.call_index.0 == ordinal(call))
        {
            transcript.warn(late.to_warning(), position, max_warnings);
        }
    }
}
