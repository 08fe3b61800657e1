//! Errors that a server reports inside the stream.

use serde_json::Value;

use super::text;
use crate::dialects::identify_value;
pub(super) use crate::dialects::is_present;

/// The whole value of an event with this name if it reports an error (X1 to X9).
pub(crate) fn in_value(value: &Value, name: &str) -> Option<Value> {
    let has = |key| value.get(key).is_some_and(is_present);
    let has_choices = value
        .get("choices")
        .and_then(Value::as_array)
        .is_some_and(|choices| !choices.is_empty());
    let refused = value.get("success") == Some(&Value::Bool(false));
    let is_code = |code: &Value| is_error_code(code) || is_error_word(code);
    let coded = (has("msg") || has("message")) && value.get("code").is_some_and(is_code);
    let failed = value
        .pointer("/base_resp/status_code")
        .is_some_and(is_error_code);
    let kind = value["type"].as_str().unwrap_or_default();
    let has_message = has("msg") || has("message");
    let is_status = |key: &str| {
        let status = value.get(key).and_then(number);
        status.is_some_and(|status| (400..600).contains(&status))
    };
    let has_status = is_status("status") || is_status("statusCode") || is_status("status_code");
    let has_fields = refused
        || coded
        || is_named_error(value)
        || has("detail")
        || has_message && is_of_error(kind)
        || (has_message || has("title")) && has_status;

    let is_error = is_failure(&value["error"])
        || value.pointer("/x_groq/error").is_some_and(is_failure)
        || text(value, "object") == Some("error")
        || failed && (has_choices || is_nameless(value, name))
        // A chunk with choices may also contain these keys.
        || !has_choices
            && (text(value, "type") == Some("error") || has_fields && is_nameless(value, name));
    is_error.then(|| value.clone())
}

/// Whether something in the value of a field for errors is set, and is neither a code nor a word of success.
pub(super) fn is_failure(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.values().any(is_failure),
        Value::Array(entries) => entries.iter().any(is_failure),
        value => is_present(value) && !says_success(value),
    }
}

fn says_success(value: &Value) -> bool {
    let word = value.as_str().unwrap_or_default().to_lowercase();
    ["success", "ok", "none", "null", "no_error", "noerror"].contains(&&*word)
        || [Some(0), Some(200)].contains(&number(value))
}

/// Whether `error_code`, or without it a message of an error, or one of `errors` reports one.
fn is_named_error(value: &Value) -> bool {
    let has_usage = value.get("usage").is_some_and(is_present);
    is_failure(&value["error_code"])
        || !value
            .get("error_code")
            .is_some_and(|code| says_success(code) || is_present(code))
            && (is_failure(&value["error_msg"]) || is_failure(&value["error_message"]))
        || !has_usage && value["errors"].is_array() && is_failure(&value["errors"])
}

/// Whether neither a type, nor a name, nor its fields say what a value is, or the type is that of an error.
fn is_nameless(value: &Value, name: &str) -> bool {
    let kind = value["type"].as_str().unwrap_or(name);
    let is_usual = ["", "message", "data"].contains(&&*kind.to_lowercase());
    let mut schemes = ["about:", "http:", "https:", "urn:"].into_iter();
    let is_uri = schemes.any(|scheme| kind.starts_with(scheme));
    (is_usual || is_uri || is_of_error(kind))
        && matches!(identify_value(value, name), None | Some("chat"))
}

fn is_of_error(kind: &str) -> bool {
    let kind = kind.to_lowercase();
    kind.ends_with("error") || kind.ends_with("exception")
}

/// A word in place of a code, if it names a failure and not how far the work is.
fn is_error_word(value: &Value) -> bool {
    const SIGNS: &str = "abort arrear blocked denied error exceed exception expired fail forbid insufficient invalid limit \
        not_found notfound overload quota refus reject throttl timed_out timeout unauthor unavailable unsupported violat";
    let word = value.as_str().unwrap_or_default().to_ascii_lowercase();
    SIGNS.split_whitespace().any(|sign| word.contains(sign))
}

/// Zero and an absent code mean success, and so do the codes of success and progress in HTTP.
fn is_error_code(value: &Value) -> bool {
    number(value).is_some_and(|number| number != 0 && !(100..300).contains(&number))
}

fn number(value: &Value) -> Option<i64> {
    let number = value.as_i64();
    number.or_else(|| value.as_str()?.trim().parse().ok())
}
