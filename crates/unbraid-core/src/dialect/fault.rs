//! Recognizes errors among the values of a stream, in the shapes that servers and gateways send (D03, X1 to X8).

use super::{identify::identify, wire_event::WireEvent};
use crate::node::Node;

/// Whether a value is an error, in any of the shapes that servers and gateways send (D03).
pub(crate) fn is_error(event: &WireEvent<'_, '_>) -> bool {
    let is = |key: &str, text: &str| {
        let value = event.node.get(key).and_then(Node::as_str);
        value.is_some_and(|value| value.text == text)
    };
    is("type", "error")
        || is("object", "error")
        || event.node.get("error").is_some_and(Node::is_set)
        || (names_error(event.node) && is_nameless(event))
}

/// Whether nothing but its fields says what a value is. `message` and `data` are the names that frameworks give to every event.
fn is_nameless(event: &WireEvent<'_, '_>) -> bool {
    let kind = event.kind();
    kind.is_none_or(|kind| matches!(&*kind, "message" | "data")) && identify(event).is_none()
}

/// Whether a value without content is an error, by the keys that gateways use (X6 to X8).
pub(crate) fn names_error(node: &Node<'_>) -> bool {
    let is_set = |key: &str| node.get(key).is_some_and(Node::is_set);
    let is_error_code = |node: &Node<'_>, key: &str| {
        node.get(key)
            .and_then(Node::as_i64_lenient)
            .is_some_and(|code| code != 0)
    };
    let is_named_error = |key: &str| {
        let name = node.get(key).and_then(Node::text);
        name.is_some_and(|name| name == "error")
    };
    is_named_error("object")
        || is_named_error("type")
        || is_set("error_message")
        || is_set("detail")
        || ((is_set("msg") || is_set("message")) && is_error_code(node, "code"))
        || node
            .get("base_resp")
            .is_some_and(|base| is_error_code(base, "status_code"))
        || node.get("success").and_then(Node::as_bool) == Some(false)
}
