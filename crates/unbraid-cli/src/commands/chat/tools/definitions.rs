//! The definitions of the tools in a request.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{exit::Failure, printable::printable};

/// Reads the tools of a request from a file with a JSON array.
pub(in super::super) fn read_tools(path: &Path) -> Result<Value, Failure> {
    let bytes = fs::read(path).map_err(|error| Failure::File {
        path: path.into(),
        error,
    })?;
    let name = printable(&path.to_string_lossy());
    match serde_json::from_slice(&bytes) {
        Ok(Value::Array(tools)) => Ok(tools.into_iter().map(definition).collect()),
        Ok(_) => Err(Failure::Usage(format!("{name}: tools are a JSON array"))),
        Err(error) => Err(Failure::Usage(format!(
            "{name}: tools are a JSON array: {error}"
        ))),
    }
}

/// The entry for a tool in the API's format. A function may stand alone, as in `functions` of 2023. Any other value is sent as
/// it is, because the server knows formats that this command does not.
fn definition(tool: Value) -> Value {
    let has = |key: &str| tool.get(key).is_some();
    if tool.get("name").is_some_and(Value::is_string) && !has("type") && !has("function") {
        return json!({ "type": "function", "function": tool });
    }
    tool
}

/// Whether the tool of this name is a custom tool, whose input is text (T31).
pub(super) fn is_custom(body: &Value, name: &str) -> bool {
    let tools = body.get("tools").and_then(Value::as_array);
    let is_named =
        |tool: &Value| tool.pointer("/custom/name").and_then(Value::as_str) == Some(name);
    tools.is_some_and(|tools| tools.iter().any(is_named))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{definition, is_custom};

    #[test]
    fn a_bare_function_becomes_an_entry() {
        let bare = json!({ "name": "f", "parameters": { "type": "object" } });
        let entry = json!({ "type": "function", "function": bare });
        assert_eq!(definition(bare), entry);
        assert_eq!(definition(entry.clone()), entry);
        for other in [
            json!({ "type": "custom", "custom": { "name": "f" } }),
            json!({ "type": "web_search", "name": "f" }),
            json!("f"),
        ] {
            assert_eq!(definition(other.clone()), other);
        }
    }

    #[test]
    fn t31_a_custom_tool_is_known_by_its_name() {
        let body = json!({ "tools": [{ "type": "custom", "custom": { "name": "sql" } }] });
        assert!(is_custom(&body, "sql") && !is_custom(&body, "f"));
    }
}
