//! What a call is worth once its choice has ended, as far as `serde_json` can judge it.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::lenient;

/// Whether a finish reason says that the answer was cut, in whichever server's words (F11).
pub(super) fn says_cut(reason: &str) -> bool {
    const WORDS: &str = "length max_tokens max_output_tokens max_messages model_context_window_exceeded model_length continuation content_filter content_filtered refusal sensitive safety recitation blocklist prohibited_content spii model_armor language image_safety image_prohibited_content image_recitation escalation guardrail_intervened error network_error insufficient_system_resource timeout";
    let reason = reason.to_lowercase();
    WORDS.split(' ').any(|word| word == reason)
}

/// The status of a function call; `None` where this client cannot decide it.
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

/// The status of a custom tool's call, whose input is text: nothing but the choice's end shows that it is whole.
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
        // No arguments: a call that takes none, or one that was cut before they came (T23, J6).
        return Some(if cut { "truncated" } else { "empty_as_object" });
    }
    match serde_json::from_str::<Value>(arguments) {
        // More digits may have been on their way.
        Ok(Value::Number(_)) if cut && arguments.ends_with(|c: char| !c.is_whitespace()) => {
            Some("truncated")
        }
        Ok(_) => Some("complete"),
        Err(error) if error.is_eof() => Some("truncated"),
        // A number beyond `f64` is JSON all the same. The parser stops at it, so that what follows is checked without values;
        // that check does not see halves of characters.
        Err(error) if error.to_string().starts_with("number out of range") => {
            let is_json = serde_json::from_str::<IgnoredAny>(arguments).is_ok();
            (is_json && !arguments.contains("\\ud")).then_some("complete")
        }
        // Control characters and halves of characters are mended; so are numbers that are none, which do not count here.
        Err(_) if arguments.contains("NaN") || arguments.contains("Infinity") => None,
        Err(_) => lenient::parse(arguments).map(|_| "repaired"),
    }
}
