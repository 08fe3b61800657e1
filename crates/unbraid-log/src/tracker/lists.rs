//! Lists that arrive as objects (E22).
//!
//! PHP and Lua write a list as an object with the positions as its keys, or one entry without a list. The core reads both. What
//! is written to the log has the list, because its readers are clients that expect one, and because views of one choice are
//! cut out of it.

use serde_json::value::RawValue;

use crate::fields::Fields;

/// The chunk with lists in place of such objects; `None` if it has none of them.
pub(super) fn with_lists(payload: &[u8]) -> Option<Vec<u8>> {
    let chunk: Fields<'_> = serde_json::from_slice(payload).ok()?;
    let chunk = changed(&chunk, |name, raw| match name {
        "choices" => list(raw, Position::Unused, entry),
        _ => None,
    })?;
    Some(chunk.into_bytes())
}

fn entry(raw: &str) -> Option<String> {
    let entry: Fields<'_> = serde_json::from_str(raw).ok()?;
    changed(&entry, |name, raw| match name {
        "delta" | "message" => {
            let message: Fields<'_> = serde_json::from_str(raw).ok()?;
            changed(&message, |name, raw| match name {
                "tool_calls" => list(raw, Position::IsIndex, |_| None),
                _ => None,
            })
        }
        _ => None,
    })
}

/// What the key of an entry means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Unused,
    /// It is the index of an entry that has none.
    IsIndex,
}

/// The entries as a list; `None` if it is one already, and no entry changes.
fn list(raw: &str, position: Position, change: impl Fn(&str) -> Option<String>) -> Option<String> {
    if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(raw) {
        let new: Vec<Option<String>> = items.iter().map(|item| change(item.get())).collect();
        let is_changed = new.iter().any(Option::is_some);
        let items = items.iter().zip(new);
        let items = items.map(|(item, new)| new.unwrap_or_else(|| item.get().to_owned()));
        return is_changed.then(|| list_of(items));
    }
    let fields: Fields<'_> = serde_json::from_str(raw).ok()?;
    let keys: Option<Vec<u64>> = fields.0.iter().map(|(key, _)| key.parse().ok()).collect();
    let Some(keys) = keys else {
        let entry = change(raw).unwrap_or_else(|| raw.to_owned());
        return Some(list_of(std::iter::once(entry)));
    };
    let mut entries: Vec<(u64, &str)> = keys
        .into_iter()
        .zip(fields.0.iter().map(|(_, raw)| raw.get()))
        .collect();
    // Lua writes the fields of an object in any order.
    entries.sort_by_key(|(key, _)| *key);
    let entries = entries.into_iter().map(|(key, raw)| {
        let entry = change(raw).unwrap_or_else(|| raw.to_owned());
        match position {
            Position::IsIndex => with_index(entry, key),
            Position::Unused => entry,
        }
    });
    Some(list_of(entries))
}

fn list_of(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// An entry with an index.
fn with_index(raw: String, index: u64) -> String {
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(&raw) else {
        return raw;
    };
    let has_index = fields
        .0
        .iter()
        .any(|(name, raw)| name == "index" && raw.get() != "null");
    if has_index {
        return raw;
    }
    let others = fields.0.iter().filter(|(name, _)| name != "index");
    let others = others.map(|(name, raw)| field(name, raw.get()));
    object_of(std::iter::once(field("index", &index.to_string())).chain(others))
}

fn field(name: &str, raw: &str) -> String {
    format!("{}:{raw}", serde_json::Value::from(name))
}

fn object_of(fields: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", fields.collect::<Vec<_>>().join(","))
}

/// The object with some fields changed; `None` if none is.
fn changed(object: &Fields<'_>, change: impl Fn(&str, &str) -> Option<String>) -> Option<String> {
    let changed: Vec<Option<String>> = object
        .0
        .iter()
        .map(|(name, raw)| change(name, raw.get()))
        .collect();
    let is_changed = changed.iter().any(Option::is_some);
    let fields = object.0.iter().zip(&changed);
    let fields =
        fields.map(|((name, raw), new)| field(name, new.as_deref().unwrap_or_else(|| raw.get())));
    is_changed.then(|| object_of(fields))
}

#[cfg(test)]
mod tests {
    use super::with_lists;

    #[track_caller]
    fn check(chunk: &str, expected: Option<&str>) {
        let changed = with_lists(chunk.as_bytes()).map(|chunk| String::from_utf8(chunk).unwrap());
        assert_eq!(changed.as_deref(), expected, "{chunk}");
    }

    #[test]
    fn e22_an_object_with_positions_becomes_a_list() {
        check(
            r#"{"id":"a","choices":{"1":{"index":1,"x":1.50},"0":{"index":0}},"created":1}"#,
            Some(r#"{"id":"a","choices":[{"index":0},{"index":1,"x":1.50}],"created":1}"#),
        );
        check(r#"{"choices":{}}"#, Some(r#"{"choices":[]}"#));
        check(
            r#"{"choices":{"index":0,"text":"a"}}"#,
            Some(r#"{"choices":[{"index":0,"text":"a"}]}"#),
        );
    }

    #[test]
    fn e22_so_do_calls_whose_keys_are_their_indices() {
        check(
            r#"{"choices":[{"delta":{"tool_calls":{"0":{"id":"a"},"2":{"index":1},"3":{"index":null}}}}]}"#,
            Some(
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a"},{"index":1},{"index":3}]}}]}"#,
            ),
        );
        check(
            r#"{"choices":{"0":{"message":{"tool_calls":{"id":"a"}}}}}"#,
            Some(r#"{"choices":[{"message":{"tool_calls":[{"id":"a"}]}}]}"#),
        );
    }

    #[test]
    fn e22_anything_else_stays_as_it_is() {
        for chunk in [
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]}}]}"#,
            r#"{"choices":null}"#,
            r#"{"choices":"x"}"#,
            r#"{"a":{"choices":{}}}"#,
            "[1]",
            "{",
        ] {
            check(chunk, None);
        }
    }
}
