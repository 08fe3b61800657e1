//! Recognizes errors among the values of a stream, in the shapes that servers and gateways send (D03, X1 to X8).

use super::{Dialect, identify::identify, wire_event::WireEvent};
use crate::node::Node;

/// Whether a value is an error of the stream, in any of the shapes that servers and gateways send (D03).
pub(crate) fn is_error(event: &WireEvent<'_, '_>) -> bool {
    says_error(event.node) || (has_error_fields(event.node) && is_nameless(event))
}

/// Whether a value says that it is an error.
pub(crate) fn says_error(node: &Node<'_>) -> bool {
    let is_error = |key: &str| {
        let value = node.get(key).and_then(Node::as_str);
        value.is_some_and(|value| value.text == "error")
    };
    is_error("type") || is_error("object") || node.get("error").is_some_and(Node::is_set)
}

/// Whether nothing but its fields says what a value is: neither a dialect nor a type or name of its own. `message` and `data`
/// are the names that frameworks give to every event, and the type may be that of an error.
fn is_nameless(event: &WireEvent<'_, '_>) -> bool {
    let kind = event.kind();
    let is_of_error = |kind: &str| {
        let kind = kind.to_ascii_lowercase();
        kind.ends_with("error") || kind.ends_with("exception")
    };
    let has_choices = event.node.get("choices").is_some_and(Node::is_set);
    !has_choices
        && kind.is_none_or(|kind| matches!(&*kind, "message" | "data") || is_of_error(&kind))
        && matches!(identify(event), None | Some(Dialect::Chat))
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
    // Others say how far the work is.
    let is_error_word = |key: &str| {
        let word = node.get(key).and_then(Node::as_str);
        word.is_some_and(|word| {
            let word = word.text.to_ascii_lowercase();
            FAILURES.iter().any(|sign| word.contains(sign))
        })
    };
    is_set("error_message")
        || is_set("detail")
        || ((is_set("msg") || is_set("message"))
            && (is_error_code(node, "code") || is_error_word("code")))
        || node
            .get("base_resp")
            .is_some_and(|base| is_error_code(base, "status_code"))
        || node.get("success").and_then(Node::as_bool) == Some(false)
}
