//! Counts the tools of a request in the form in which a model gets them.
//!
//! OpenAI's models get TypeScript: a namespace with one type for each function, and comments for its descriptions. The text
//! written here has the token counts that the API charged for the recorded requests of docs/usage.md.

use serde_json::{Map, Value};

use super::tokenizer::{Framing, Tokenizer, sum};

/// OpenAI: the tokens around the namespace, which are fewer if it is part of a system message.
const NAMESPACE: u64 = 9;
const WITHIN_SYSTEM: u64 = 4;
/// A schema's title costs one token more than its comment line.
const TITLE: u64 = 1;
/// The parts of a schema that are nested deeper are written as `object`.
const MAX_DEPTH: usize = 32;

/// Counts the tokens of the declared functions. `has_system`: the messages include a system message.
pub(super) fn tokens(functions: &[Value], has_system: bool, counter: &dyn Tokenizer) -> u64 {
    match (counter.framing(), functions) {
        (_, []) => 0,
        (Framing::OpenAi, functions) => {
            let titles = functions.iter().filter(|f| title(f).is_some()).count() as u64;
            let around = NAMESPACE - if has_system { WITHIN_SYSTEM } else { 0 };
            let text = counter.count(&namespace(functions));
            text.saturating_add(around + titles * TITLE)
        }
        // Their chat templates contain the JSON. The text around it, up to a thousand tokens, is not known.
        (Framing::Other, functions) => sum(functions.iter().map(|f| counter.count(&f.to_string()))),
    }
}

fn namespace(functions: &[Value]) -> String {
    let mut text = String::from("namespace functions {\n\n");
    for function in functions {
        comment(&mut text, function.get("description"));
        comment(&mut text, title(function));
        let name = function.get("name").and_then(Value::as_str);
        text.push_str("type ");
        text.push_str(name.unwrap_or_default());
        match function.get("parameters").and_then(properties) {
            Some((schema, properties)) => {
                text.push_str(" = (_: ");
                object(&mut text, schema, properties, MAX_DEPTH);
                text.push_str(") => any;\n\n");
            }
            None => text.push_str(" = () => any;\n\n"),
        }
    }
    text.push_str("} // namespace functions");
    text
}

fn title(function: &Value) -> Option<&Value> {
    let title = function.get("parameters")?.get("title")?;
    title.as_str().filter(|title| !title.is_empty())?;
    Some(title)
}

fn comment(text: &mut String, words: Option<&Value>) {
    let words = words.and_then(Value::as_str).unwrap_or_default();
    for line in words.lines() {
        text.push_str("// ");
        text.push_str(line);
        text.push('\n');
    }
}

/// A schema and its properties, if it has any.
fn properties(schema: &Value) -> Option<(&Value, &Map<String, Value>)> {
    let properties = schema.get("properties")?.as_object()?;
    (!properties.is_empty()).then_some((schema, properties))
}

/// Writes an object on one line, unless one of its properties has a comment.
fn object(text: &mut String, schema: &Value, properties: &Map<String, Value>, max_depth: usize) {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let has_comments = properties
        .values()
        .any(|p| has_words(p.get("description")) || bounds(p).is_some());
    let (open, separator, close) = if has_comments {
        ("{\n", ",\n", "\n}")
    } else {
        ("{ ", ", ", " }")
    };
    text.push_str(open);
    for (position, (name, property)) in properties.iter().enumerate() {
        if position > 0 {
            text.push_str(separator);
        }
        comment(text, property.get("description"));
        comment(text, bounds(property).map(Value::from).as_ref());
        text.push_str(name);
        text.push_str(if is_required(name) { ": " } else { "?: " });
        kind(text, property, max_depth);
    }
    text.push_str(close);
}

fn has_words(value: Option<&Value>) -> bool {
    value
        .and_then(Value::as_str)
        .is_some_and(|words| !words.is_empty())
}

/// The range of a number, with its format.
fn bounds(property: &Value) -> Option<String> {
    let keys = ["format", "minimum", "maximum"];
    let found = keys.map(|key| Some((key, property.get(key)?)));
    let [_, minimum, maximum] = &found;
    if minimum.is_none() && maximum.is_none() {
        return None;
    }
    let words = found.into_iter().flatten().map(|(key, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        format!("{key}: {value}")
    });
    Some(words.collect::<Vec<String>>().join(", "))
}

fn kind(text: &mut String, schema: &Value, max_depth: usize) {
    let Some(max_depth) = max_depth.checked_sub(1) else {
        return text.push_str("object");
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return either(text, values, |text, value| {
            text.push_str(&value.to_string())
        });
    }
    if let Some(value) = schema.get("const") {
        return text.push_str(&value.to_string());
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema.get(key).and_then(Value::as_array) {
            return either(text, schemas, |text, schema| kind(text, schema, max_depth));
        }
    }
    match schema.get("type") {
        Some(Value::Array(names)) => either(text, names, |text, name| {
            named(text, name.as_str(), schema, max_depth);
        }),
        name => named(text, name.and_then(Value::as_str), schema, max_depth),
    }
}

fn either(text: &mut String, all: &[Value], mut one: impl FnMut(&mut String, &Value)) {
    for (position, value) in all.iter().enumerate() {
        if position > 0 {
            text.push_str(" | ");
        }
        one(text, value);
    }
}

fn named(text: &mut String, name: Option<&str>, schema: &Value, max_depth: usize) {
    match (name, properties(schema)) {
        (Some("integer" | "number"), _) => text.push_str("number"),
        (Some("array"), _) => {
            match schema.get("items") {
                Some(items) => kind(text, items, max_depth),
                None => text.push_str("any"),
            }
            text.push_str("[]");
        }
        (Some("object") | None, Some((schema, properties))) => {
            object(text, schema, properties, max_depth);
        }
        (Some(name), _) => text.push_str(name),
        (None, None) => text.push_str("any"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(parameters: &Value, expected: &str) {
        let function = json!({ "name": "f", "description": "Does it.", "parameters": parameters });
        let text = namespace(&[function]);
        let start = "namespace functions {\n\n// Does it.\n";
        let end = "\n\n} // namespace functions";
        let middle = text.strip_prefix(start).and_then(|t| t.strip_suffix(end));
        assert_eq!(middle, Some(expected), "{text}");
    }

    #[test]
    fn a_function_without_parameters_is_short() {
        check(&json!({}), "type f = () => any;");
        check(
            &json!({ "type": "object", "properties": {} }),
            "type f = () => any;",
        );
        check(&Value::Null, "type f = () => any;");
    }

    #[test]
    fn properties_without_comments_are_on_one_line() {
        check(
            &json!({ "type": "object", "title": "T", "required": ["a", "d"], "properties": {
                "a": { "type": "integer" },
                "b": { "type": ["string", "null"] },
                "c": { "type": "array", "items": { "type": "boolean" } },
                "d": { "properties": { "e": { "anyOf": [{ "const": 1 }, {}] } } },
                "g": { "type": "object" },
                "h": { "type": "array" },
            } }),
            "// T\ntype f = (_: { a: number, b?: string | null, c?: boolean[], d: { e?: 1 | any }, g?: object, h?: any[] }) => any;",
        );
    }

    #[test]
    fn properties_with_comments_have_lines_of_their_own() {
        check(
            &json!({ "properties": {
                "a": { "type": "string", "description": "One.\nTwo." },
                "b": { "enum": ["x", 2] },
                "c": { "type": "integer", "format": "uint8", "minimum": 0, "maximum": 9 },
                "d": { "type": "number", "format": "double" },
            } }),
            "type f = (_: {\n// One.\n// Two.\na?: string,\nb?: \"x\" | 2,\n\
             // format: uint8, minimum: 0, maximum: 9\nc?: number,\nd?: number\n}) => any;",
        );
    }

    #[test]
    fn a_schema_without_end_is_cut() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..100 {
            schema = json!({ "type": "object", "properties": { "a": schema } });
        }
        let text = namespace(&[json!({ "name": "f", "parameters": schema })]);
        assert!(text.contains("a?: object }") && text.len() < 500);
    }
}
