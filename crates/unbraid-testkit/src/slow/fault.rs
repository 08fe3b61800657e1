//! Errors that a server reports inside the stream.

use serde_json::Value;

use super::text;

/// The whole chunk if it reports an error (X1 to X9).
pub(super) fn in_chunk(chunk: &Value) -> Option<Value> {
    let says = |key| chunk.get(key).is_some_and(says_something);
    let has_choices = chunk
        .get("choices")
        .and_then(Value::as_array)
        .is_some_and(|choices| !choices.is_empty());
    let refused = chunk.get("success") == Some(&Value::Bool(false));
    let coded = text(chunk, "msg").is_some() && chunk.get("code").is_some_and(is_a_code);

    let is_error = says("error")
        || text(chunk, "object") == Some("error")
        || chunk.pointer("/base_resp/status_code").is_some_and(is_a_code)
        // These keys may also stand in a good chunk.
        || !has_choices && (refused || coded || says("error_message") || says("detail"));
    is_error.then(|| chunk.clone())
}

/// Gateways that write out every field send null, false or `""` where there is no error (X3).
pub(super) fn says_something(value: &Value) -> bool {
    !value.is_null() && value != false && value != ""
}

/// Zero and nothing mean that all is well.
fn is_a_code(value: &Value) -> bool {
    says_something(value) && value != 0 && value != "0"
}
