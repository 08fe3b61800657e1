//! Recognizes errors among the values of a stream, in the shapes that servers and gateways send (D03, X1 to X8).

use super::{Dialect, identify::identify, wire_event::WireEvent};
use crate::node::{Node, Value};

/// Whether a value is an error of the stream, in any of the shapes that servers and gateways send (D03).
pub(crate) fn is_error(event: &WireEvent<'_, '_>) -> bool {
    says_error(event.node)
        || (has_error_fields(event.node) && is_nameless(event))
        || (event.name == Some("ping") && is_error_in_ping(event.node))
}

/// Whether a value says that it is an error.
fn says_error(node: &Node<'_>) -> bool {
    let is_error = |key: &str| {
        let value = node.get(key).and_then(Node::as_str);
        value.is_some_and(|value| value.text == "error")
    };
    is_error("type") || is_error("object") || reported(node).is_some()
}

/// The error in the field of that name (X3).
pub(crate) fn reported<'n, 'a>(node: &'n Node<'a>) -> Option<&'n Node<'a>> {
    node.get("error").filter(|error| is_failure(error))
}

/// Whether the value of a field for errors is one: something in it is set, and is neither a code nor a word of success.
pub(crate) fn is_failure(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Object(fields) => fields.iter().any(|(_, value)| is_failure(value)),
        Value::Array(items) => items.iter().any(is_failure),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            node.is_set() && !is_success(node)
        }
    }
}

/// Whether nothing but its fields says what a value is: neither a dialect nor a type or name of its own. `message` and `data`
/// are the names that frameworks give to every event, and the type may be that of an error.
fn is_nameless(event: &WireEvent<'_, '_>) -> bool {
    let kind = event.kind();
    let is_usual =
        |kind: &str| matches!(kind, "message" | "data") || is_of_error(kind) || is_uri(kind);
    let has_choices = event.node.get("choices").is_some_and(Node::is_set);
    !has_choices
        && kind.is_none_or(|kind| is_usual(&kind))
        && matches!(identify(event), None | Some(Dialect::Chat))
}

/// Whether a type names an error: `server_error`, `ThrottlingException`.
fn is_of_error(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    kind.ends_with("error") || kind.ends_with("exception")
}

/// Whether a type is an address, as in the problem details of RFC 9457.
fn is_uri(kind: &str) -> bool {
    let mut starts = ["about:", "http:", "https:", "urn:"].into_iter();
    starts.any(|start| kind.starts_with(start))
}

/// Parts of the words that are codes of errors: `DataInspectionFailed`, `insufficient_quota`, `AccessDenied`.
const FAILURES: [&str; 26] = [
    "abort",
    "arrear",
    "blocked",
    "denied",
    "error",
    "exceed",
    "exception",
    "expired",
    "fail",
    "forbid",
    "insufficient",
    "invalid",
    "limit",
    "not_found",
    "notfound",
    "overload",
    "quota",
    "refus",
    "reject",
    "throttl",
    "timed_out",
    "timeout",
    "unauthor",
    "unavailable",
    "unsupported",
    "violat",
];

/// Whether a value has the fields by which gateways report an error (X6 to X8).
fn has_error_fields(node: &Node<'_>) -> bool {
    let is_set = |key: &str| node.get(key).is_some_and(Node::is_set);
    // Codes of success and progress are those of HTTP.
    let is_error_code = |node: &Node<'_>, key: &str| {
        node.get(key)
            .and_then(Node::as_i64_lenient)
            .is_some_and(|code| code != 0 && !(100..300).contains(&code))
    };
    let has_message = is_set("msg") || is_set("message");
    // The second name is that of Amazon's services.
    let kind = ["type", "__type"]
        .into_iter()
        .find_map(|key| node.get(key)?.as_str());
    is_named_error(node)
        || is_set("detail")
        || (has_message && (is_error_code(node, "code") || is_failure_word(node, "code")))
        || (has_message && kind.is_some_and(|kind| is_of_error(&kind.text)))
        || ((has_message || is_set("title"))
            && STATUSES.into_iter().any(|key| is_status(node, key)))
        || node
            .get("base_resp")
            .is_some_and(|base| is_error_code(base, "status_code"))
        || node.get("success").and_then(Node::as_bool) == Some(false)
}

/// The names under which errors have the status of a response.
const STATUSES: [&str; 3] = ["status", "statusCode", "status_code"];

/// Whether a field has the status of a response that is an error.
fn is_status(node: &Node<'_>, key: &str) -> bool {
    let status = node.get(key).and_then(Node::as_i64_lenient);
    status.is_some_and(|status| (400..600).contains(&status))
}

/// Whether a field has a word for a failure. Others say how far the work is.
fn is_failure_word(node: &Node<'_>, key: &str) -> bool {
    let word = node.get(key).and_then(Node::as_str);
    word.is_some_and(|word| {
        let word = word.text.to_ascii_lowercase();
        FAILURES.iter().any(|sign| word.contains(sign))
    })
}

/// Whether the data of a ping is an error. A ping may have any fields, so that a message counts only beside the status, the code
/// or the type of an error.
pub(crate) fn is_error_in_ping(node: &Node<'_>) -> bool {
    let has_message = node.get("message").is_some_and(Node::is_set);
    let kind = node.get("type").and_then(Node::as_str);
    let is_of_failure = STATUSES
        .into_iter()
        .chain(["code"])
        .any(|key| is_status(node, key))
        || is_failure_word(node, "code")
        || kind.is_some_and(|kind| is_of_error(&kind.text));
    says_error(node) || (has_message && is_of_failure)
}

/// Whether one of the fields that are named for errors has one. A code decides: gateways write that of success beside good values.
fn is_named_error(node: &Node<'_>) -> bool {
    let mut messages = ["error_msg", "error_message"].into_iter();
    let has_message = messages.any(|key| node.get(key).is_some_and(is_failure));
    let code = node.get("error_code");
    let code = code.filter(|code| is_success(code) || code.has_content());
    // Each entry is an error of its own. Beside the usage of an answer they concern something else.
    let has_usage = node.get("usage").is_some_and(Node::has_content);
    let errors = node.get("errors").filter(|_| !has_usage);
    code.map_or(has_message, is_failure)
        || errors.is_some_and(|errors| errors.as_array().is_some() && is_failure(errors))
}

/// Whether the code or the message of an error says that there is none. Codes of Baidu's errors begin at 1.
fn is_success(value: &Node<'_>) -> bool {
    let word = value.as_str().map(|word| word.text.to_ascii_lowercase());
    matches!(
        word.as_deref(),
        Some("success" | "ok" | "none" | "null" | "no_error" | "noerror")
    ) || matches!(value.as_i64_lenient(), Some(0 | 200))
}

#[cfg(test)]
mod tests {
    use crate::{Config, Demux, StreamError};

    #[test]
    fn s16_only_the_data_of_a_failure_makes_a_ping_an_error() {
        let rows = [
            (r#"{"error":{"message":"busy"}}"#, true),
            (r#"{"message":"busy","code":429}"#, true),
            (r#"{"message":"busy","status":503}"#, true),
            (r#"{"message":"busy","code":"rate_limit_exceeded"}"#, true),
            (r#"{"message":"busy","type":"server_error"}"#, true),
            (r#"{"detail":"keep-alive"}"#, false),
            (r#"{"message":"pong","code":1}"#, false),
            (r#"{"message":"pong","code":200}"#, false),
            (r#"{"type":"ping"}"#, false),
            ("{}", false),
        ];
        for (data, is_error) in rows {
            let mut demux = Demux::new(Config::default());
            demux.feed(format!("event: ping\ndata: {data}\n\n").as_bytes());
            demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
            demux.finish();
            let closed = demux.closed().expect("the stream has ended");
            let has_failed = matches!(closed, Err(StreamError::Server(_)));
            assert_eq!(has_failed, is_error, "{data}");
        }
    }
}
