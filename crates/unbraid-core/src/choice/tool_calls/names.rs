//! Names of tools that arrive in pieces.

use std::sync::Arc;

/// What a further piece does to a name.
pub(super) enum NameUpdate {
    Keep,
    Replace,
    Append,
}

/// Decides what a further piece does to a name.
///
/// Declared names decide if they can. Otherwise an equal piece is a repetition (T15), an extension replaces the name
/// (T17), and anything else is appended (T16).
pub(super) fn update_name(name: &str, piece: &str, tools: &[Arc<str>]) -> NameUpdate {
    let is_equal = name == piece;
    if is_equal && is_declared(name, "", tools) {
        return NameUpdate::Keep;
    }
    if is_declared(name, piece, tools) {
        return NameUpdate::Append;
    }
    if is_equal {
        return NameUpdate::Keep;
    }
    if is_declared("", piece, tools) || piece.starts_with(name) {
        return NameUpdate::Replace;
    }
    NameUpdate::Append
}

/// Whether two texts join to the name of a declared tool.
fn is_declared(head: &str, tail: &str, tools: &[Arc<str>]) -> bool {
    let mut tools = tools.iter();
    tools.any(|tool| tool.strip_prefix(head) == Some(tail))
}

/// Whether a piece without index belongs to this name (T16, T17) and not to the next call (T3). Only declared names can
/// decide that.
pub(super) fn continues_declared(name: &str, piece: &str, tools: &[Arc<str>]) -> bool {
    is_declared(name, piece, tools)
        || (!is_declared(name, "", tools)
            && is_declared("", piece, tools)
            && piece.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::{NameUpdate, continues_declared, update_name};

    /// Checks which name the pieces join to if these tools are declared.
    #[track_caller]
    fn check(tools: &[&str], pieces: &[&str], expected: &str) {
        let tools: Vec<_> = tools.iter().map(|&tool| tool.into()).collect();
        let name = pieces.iter().fold(String::new(), |name, piece| {
            match update_name(&name, piece, &tools) {
                NameUpdate::Keep => name,
                NameUpdate::Replace => (*piece).to_owned(),
                NameUpdate::Append => name + piece,
            }
        });
        assert_eq!(name, expected, "{pieces:?} of {tools:?}");
    }

    #[test]
    fn t15_to_t17_names_are_joined_without_declared_tools() {
        check(&[], &["add", "add"], "add");
        check(&[], &["edit_ex", "isting_file"], "edit_existing_file");
        check(&[], &["get", "get_w", "get_weather"], "get_weather");
        check(&[], &["get", "", "_time"], "get_time");
    }

    #[test]
    fn t16_a_fragment_without_index_belongs_to_a_name_only_by_a_declared_tool() {
        let belongs = |tools: &[&str], name, piece| {
            let tools: Vec<_> = tools.iter().map(|&tool| tool.into()).collect();
            continues_declared(name, piece, &tools)
        };
        assert!(belongs(&["get"], "ge", "t"), "both form the name");
        assert!(belongs(&["get"], "ge", "get"), "the name is repeated");
        assert!(!belongs(&["get"], "ge", "gem"), "not a declared name");
        assert!(!belongs(&["get"], "x", "get"), "another start");
        assert!(!belongs(&["get"], "ge", "put"));
        assert!(
            !belongs(&["get", "get_all"], "get", "get_all"),
            "the name is complete"
        );
    }

    #[test]
    fn t16_declared_names_decide_what_a_piece_is() {
        check(&["add"], &["add", "add"], "add");
        check(&["add", "addadd"], &["add", "add"], "add");
        check(&["haha"], &["ha", "ha"], "haha");
        check(&["getget_time"], &["get", "get_time"], "getget_time");
        check(&["get", "get_time"], &["get", "get_time"], "get_time");
        check(&["get", "get_time"], &["get", "_time"], "get_time");
        check(
            &["get", "get_weather"],
            &["get", "_wea", "ther"],
            "get_weather",
        );
        check(&["search", "web"], &["web", "search"], "search");
        check(&["web_search"], &["search", "web_search"], "web_search");
        check(&["search", "websearch"], &["web", "search"], "websearch");
    }

    #[test]
    fn t44_undeclared_names_are_joined_as_without_declarations() {
        check(&["add"], &["mul", "tiply"], "multiply");
        check(&["add"], &["mul", "multiply"], "multiply");
        check(&["add"], &["add", "_all"], "add_all");
    }
}
