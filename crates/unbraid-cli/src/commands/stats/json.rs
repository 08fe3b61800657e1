//! The statistics as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use unbraid_core::ToolCall;

use super::{Row, Stats, measure::Pauses};
use crate::{json, outcome::no_choice_error};

/// Converts statistics to one object. What is unknown is null; times are in milliseconds, sizes in bytes of UTF-8.
pub(super) fn to_json(stats: &Stats<'_>) -> Value {
    let (measure, usage) = (stats.measure, &stats.usage);
    let choices: Vec<Value> = stats.rows().iter().map(choice).collect();
    let error = match stats.demux.closed() {
        Some(Err(error)) => json::value(error),
        // As in the output of `collect`: a stream without a choice is an error, even if it ended normally.
        Some(Ok(())) if choices.is_empty() => no_choice_error(),
        Some(Ok(())) | None => Value::Null,
    };
    json!({
        "model": stats.demux.metadata().model.as_deref(),
        "error": error,
        "bytes": measure.bytes,
        "last_event": measure.last_event,
        "times": measure.times(),
        "duration_ms": milliseconds(measure.duration),
        "usage": {
            "source": usage.source.as_str(),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.total_tokens,
        },
        "choices": choices,
        "warnings": stats.demux.warnings(),
        "warnings_dropped": stats.demux.warnings_dropped(),
    })
}

fn choice(row: &Row<'_>) -> Value {
    let Row {
        outcome,
        measured,
        tokens,
    } = row;
    let calls: Vec<Value> = outcome.message.tool_calls.iter().map(call).collect();
    let last = measured.and_then(|measured| measured.last);
    let error = json::value(&outcome.end.cause());
    json!({
        "index": outcome.choice,
        "end": outcome.end.as_str(),
        "error": error,
        "finish_reason": outcome.finish_reason.as_ref().map(|reason| reason.as_str()),
        "deltas": measured.map_or(0, |measured| measured.deltas),
        "tokens": tokens.map(|(tokens, _)| tokens),
        "tokens_estimated": tokens.map(|(_, is_estimated)| is_estimated),
        "content_bytes": measured.map_or(0, |measured| measured.content_bytes),
        "reasoning_bytes": measured.map_or(0, |measured| measured.reasoning_bytes),
        "refusal_bytes": measured.map_or(0, |measured| measured.refusal_bytes),
        "tool_calls": calls,
        "last_delta_event": last.map(|(event, _)| event),
        "last_delta_byte": last.map(|(_, byte)| byte),
        "first_delta_ms": milliseconds(measured.and_then(|measured| measured.first_delta)),
        "inter_delta_ms": measured.and_then(|measured| measured.pauses()).map(pauses),
    })
}

fn call(call: &ToolCall) -> Value {
    json!({
        "name": &*call.name,
        "status": call.status.map(|status| status.as_str()),
        "arguments_bytes": call.arguments.len(),
    })
}

fn pauses(pauses: Pauses) -> Value {
    json!({
        "count": pauses.count,
        "p50": milliseconds(Some(pauses.p50)),
        "p90": milliseconds(Some(pauses.p90)),
        "p99": milliseconds(Some(pauses.p99)),
        "max": milliseconds(Some(pauses.max)),
    })
}

/// Milliseconds, to the microsecond.
fn milliseconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| (time.as_secs_f64() * 1e6).round() / 1e3)
}
