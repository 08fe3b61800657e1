//! Errors that a server reports inside the stream.

use serde_json::Value;

use super::text;
use crate::dialects::{identify_value, is_set};

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
    let has_fields = refused || coded || has("error_message") || has("detail");

    let is_error = has("error")
        || value.pointer("/x_groq/error").is_some_and(is_set)
        || text(value, "object") == Some("error")
        || failed && (has_choices || is_nameless(value, name))
        // A chunk with choices may also contain these keys.
        || !has_choices
            && (text(value, "type") == Some("error") || has_fields && is_nameless(value, name));
    is_error.then(|| value.clone())
}

/// Whether neither a type, nor a name, nor its fields say what a value is, or the type is that of an error.
fn is_nameless(value: &Value, name: &str) -> bool {
    let kind = value["type"].as_str().unwrap_or(name).to_lowercase();
    let is_usual = ["", "message", "data"].contains(&&*kind);
    let is_error = kind.ends_with("error") || kind.ends_with("exception");
    (is_usual || is_error) && matches!(identify_value(value, name), None | Some("chat"))
}

/// Gateways that serialize every field send null, false or `""` where there is no error (X3).
pub(super) fn is_present(value: &Value) -> bool {
    !value.is_null() && value != false && value != ""
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
    let number = value.as_i64();
    let number = number.or_else(|| value.as_str()?.trim().parse().ok());
    number.is_some_and(|number| number != 0 && !(100..300).contains(&number))
}
