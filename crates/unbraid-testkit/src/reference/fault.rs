//! Errors that a server reports inside the stream.

use serde_json::Value;

use super::text;

/// The whole chunk if it reports an error (X1 to X9).
pub(crate) fn in_chunk(chunk: &Value) -> Option<Value> {
    let has = |key| chunk.get(key).is_some_and(is_present);
    let has_choices = chunk
        .get("choices")
        .and_then(Value::as_array)
        .is_some_and(|choices| !choices.is_empty());
    let refused = chunk.get("success") == Some(&Value::Bool(false));
    let coded = (has("msg") || has("message")) && chunk.get("code").is_some_and(is_error_code);

    let is_error = has("error")
        || text(chunk, "object") == Some("error")
        || chunk.pointer("/base_resp/status_code").is_some_and(is_error_code)
        // A chunk with choices may also contain these keys.
        || !has_choices && (text(chunk, "type") == Some("error") || refused || coded || has("error_message") || has("detail"));
    is_error.then(|| chunk.clone())
}

/// Gateways that serialize every field send null, false or `""` where there is no error (X3).
pub(super) fn is_present(value: &Value) -> bool {
    !value.is_null() && value != false && value != ""
}

/// Zero and an absent code mean success.
fn is_error_code(value: &Value) -> bool {
    is_present(value) && value != 0 && value != "0"
}
