//! The status of a call at the end of its choice, as far as `serde_json` can decide it.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::lenient;

/// Whether a finish reason of any server means that the answer was cut (F11).
pub(super) fn is_cut(reason: &str) -> bool {
    const WORDS: &str = "length max_tokens max_output_tokens max_messages model_context_window_exceeded model_length continuation content_filter content_filtered refusal sensitive safety recitation blocklist prohibited_content spii model_armor language image_safety image_prohibited_content image_recitation escalation guardrail_intervened error network_error insufficient_system_resource timeout";
    let reason = reason.to_lowercase();
    WORDS.split(' ').any(|word| word == reason)
}

/// Whether it means that the limit on tokens was reached: the model had written everything but the end.
pub(super) fn is_length(reason: &str) -> bool {
    const WORDS: &str = "length max_tokens max_output_tokens max_messages model_context_window_exceeded model_length continuation";
    let reason = reason.to_lowercase();
    WORDS.split(' ').any(|word| word == reason)
}

/// The calls that the end of a choice may have cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// None.
    None,
    /// The one that was written last, if nothing follows it.
    Last,
    /// Any.
    Any,
}

/// The status of a function call, or `None` if this client cannot decide it.
pub(super) fn of_function(
    name: Option<&str>,
    lacks_id: bool,
    arguments: &str,
    cut: bool,
) -> Option<&'static str> {
    if name.is_none() {
        return Some("missing_name");
    }
    let status = of_arguments(arguments, cut)?;
    Some(or_missing_id(status, lacks_id))
}

/// The status of a custom tool's call. Its input is text, so only the end of the choice shows that it is complete.
pub(super) fn of_custom(name: Option<&str>, lacks_id: bool, cut: bool) -> &'static str {
    match (name, cut) {
        (None, _) => "missing_name",
        (Some(_), true) => "truncated",
        (Some(_), false) => or_missing_id("complete", lacks_id),
    }
}

fn or_missing_id(status: &'static str, lacks_id: bool) -> &'static str {
    match status {
        "truncated" => status,
        _ if lacks_id => "missing_id",
        _ => status,
    }
}

fn of_arguments(arguments: &str, cut: bool) -> Option<&'static str> {
    if arguments.trim().is_empty() {
        // T23, J6: a call without arguments, or one that was cut before them.
        return Some(if cut { "truncated" } else { "empty_as_object" });
    }
    match serde_json::from_str::<Value>(arguments) {
        // More digits may have followed.
        Ok(Value::Number(_)) if cut && arguments.ends_with(|c: char| !c.is_whitespace()) => {
            Some("truncated")
        }
        Ok(_) => Some("complete"),
        Err(error) if error.is_eof() => Some("truncated"),
        // A number outside the range of `f64` is valid JSON, but the parser stops there. The rest is checked without
        // values, a check that does not detect surrogate halves.
        Err(error) if error.to_string().starts_with("number out of range") => {
            let is_json = serde_json::from_str::<IgnoredAny>(arguments).is_ok();
            (is_json && !arguments.contains("\\ud")).then_some("complete")
        }
        // The repairs of `lenient::parse` count, except those of `NaN` and the infinities.
        Err(_) if arguments.contains("NaN") || arguments.contains("Infinity") => None,
        Err(_) => lenient::parse(arguments).map(|_| "repaired"),
    }
}
