//! The prompt's tokens, counted from the request.
//!
//! The rules are those of the page "How to count tokens with tiktoken" in OpenAI's cookbook: what surrounds a message,
//! a name, a function and its parameters was measured there, for the models of 2023 and again for those since gpt-4o.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::estimate::{CountTokens, sum};

/// What of a request its prompt's tokens are counted from: texts, and the tokens that surround them.
///
/// Counted are a message's role, name, text parts and refusal, the names and arguments of its calls, and the functions
/// that were offered with their parameters; or, of a text completion, the `prompt`, which may be a list of texts or of
/// tokens. Images, audio and files are not counted, nor are a schema's inner levels and `response_format`.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::Prompt;
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// let prompt = Prompt::of(&json!({ "model": "davinci-002", "prompt": "Once upon a time" }));
/// assert_eq!(prompt.tokens(&words), Some(4));
/// assert_eq!(prompt.model(), Some("davinci-002"));
/// assert_eq!(Prompt::of(&json!({ "input": "?" })).tokens(&words), None);
/// ```
#[derive(Clone, Default)]
pub struct Prompt {
    model: Option<Arc<str>>,
    texts: Vec<String>,
    /// Tokens beside the texts; `None` if there is no prompt.
    around: Option<i64>,
}

/// The texts are the user's.
impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("model", &self.model)
            .field("texts", &self.texts.len())
            .finish_non_exhaustive()
    }
}

const PER_MESSAGE: i64 = 3;
const PER_NAME: i64 = 1;
/// The reply begins with the assistant's role.
const REPLY: i64 = 3;

const PER_FUNCTION: i64 = 7;
/// With the encoding of gpt-4 and gpt-3.5.
const PER_FUNCTION_BEFORE_4O: i64 = 10;
const FUNCTIONS_END: i64 = 12;
const PROPERTIES: i64 = 3;
const PER_PROPERTY: i64 = 3;
/// An enumeration costs three tokens a value, less three.
const ENUMERATION: i64 = -3;
const PER_VALUE: i64 = 3;

impl Prompt {
    /// Keeps of a request what counting needs. Nothing in it is an error: what is not understood is not counted.
    #[must_use]
    pub fn of(request: &Value) -> Self {
        let model = request.get("model").and_then(Value::as_str);
        let mut prompt = Self {
            model: model.map(Arc::from),
            ..Self::default()
        };
        if let Some(messages) = request.get("messages").and_then(Value::as_array) {
            prompt.add(REPLY);
            messages.iter().for_each(|message| prompt.message(message));
            prompt.functions(request);
        } else if let Some(text) = request.get("prompt").filter(|text| !text.is_null()) {
            prompt.add(0);
            prompt.text_completion(text);
        }
        prompt
    }

    /// The model that the request names.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The prompt's tokens; `None`, not 0, where there is none.
    #[must_use]
    pub fn tokens(&self, counter: &dyn CountTokens) -> Option<u64> {
        let around = self.around?;
        let texts = sum(self.texts.iter().map(|text| counter.count(text)));
        Some(texts.saturating_add_signed(around))
    }

    fn add(&mut self, tokens: i64) {
        self.around = Some(self.around.unwrap_or(0).saturating_add(tokens));
    }

    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.texts.push(text.to_owned());
        }
    }

    fn message(&mut self, message: &Value) {
        self.add(PER_MESSAGE);
        for key in ["role", "content", "refusal"] {
            self.content(message.get(key));
        }
        if let Some(name) = message.get("name").and_then(Value::as_str) {
            self.add(PER_NAME);
            self.text(name);
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        for call in calls.into_iter().flatten() {
            self.call(call.get("function").or_else(|| call.get("custom")));
        }
        self.call(message.get("function_call"));
    }

    /// A text, or parts of which some are.
    fn content(&mut self, content: Option<&Value>) {
        match content {
            Some(Value::String(text)) => self.text(text),
            Some(Value::Array(parts)) => {
                for part in parts {
                    let text = part
                        .as_str()
                        .or_else(|| part.get("text")?.as_str())
                        .or_else(|| part.get("refusal")?.as_str());
                    self.text(text.unwrap_or_default());
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {}
        }
    }

    fn call(&mut self, call: Option<&Value>) {
        for key in ["name", "arguments", "input"] {
            let text = call.and_then(|call| call.get(key)?.as_str());
            self.text(text.unwrap_or_default());
        }
    }

    /// `tools`, or `functions` in the form of 2023.
    fn functions(&mut self, request: &Value) {
        let list = |key: &str| request.get(key).and_then(Value::as_array);
        let tools = list("tools").into_iter().flatten();
        let tools = tools.filter_map(|tool| tool.get("function").or_else(|| tool.get("custom")));
        let functions = list("functions").into_iter().flatten();
        let all: Vec<&Value> = tools.chain(functions).collect();
        let each = if self.model().is_some_and(before_4o) {
            PER_FUNCTION_BEFORE_4O
        } else {
            PER_FUNCTION
        };
        if !all.is_empty() {
            self.add(FUNCTIONS_END);
        }
        for function in all {
            self.add(each);
            let name = word(function.get("name"));
            self.text(&format!("{name}:{}", description(function)));
            let properties = function
                .get("parameters")
                .and_then(|parameters| parameters.get("properties")?.as_object());
            self.properties(properties);
        }
    }

    fn properties(&mut self, properties: Option<&Map<String, Value>>) {
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return;
        };
        self.add(PROPERTIES);
        for (name, property) in properties {
            self.add(PER_PROPERTY);
            if let Some(values) = property.get("enum").and_then(Value::as_array) {
                self.add(ENUMERATION);
                for value in values {
                    self.add(PER_VALUE);
                    self.text(&word(Some(value)));
                }
            }
            let kind = word(property.get("type"));
            self.text(&format!("{name}:{kind}:{}", description(property)));
        }
    }

    /// A text, some texts, tokens, or lists of tokens.
    fn text_completion(&mut self, prompt: &Value) {
        match prompt {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.text_completion(item)),
            Value::Number(_) => self.add(1),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
    }
}

/// A text as it is, anything else as JSON.
fn word(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn description(of: &Value) -> &str {
    let text = of.get("description").and_then(Value::as_str).unwrap_or("");
    text.strip_suffix('.').unwrap_or(text)
}

/// Whether functions cost a model what they cost before gpt-4o.
fn before_4o(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let name = name.split(':').next().unwrap_or(name);
    name == "gpt-4"
        || ["gpt-4-", "gpt-3.5", "gpt-35"]
            .iter()
            .any(|old| name.starts_with(old))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Counts words, so that what surrounds them can be told apart.
    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    #[track_caller]
    fn check(request: &Value, expected: impl Into<Option<u64>>) {
        assert_eq!(Prompt::of(request).tokens(&words), expected.into());
    }

    #[test]
    fn a_message_costs_its_words_and_three() {
        check(&json!({ "messages": [] }), 3);
        let user = json!({ "role": "user", "content": "a b c" });
        check(&json!({ "messages": [user] }), 3 + 3 + 1 + 3);
        let named = json!({ "role": "system", "name": "someone", "content": "a" });
        check(
            &json!({ "messages": [named, user] }),
            3 + 7 + (3 + 1 + 1 + 1 + 1),
        );
        let odd = json!({ "role": "user", "content": null, "name": null });
        check(&json!({ "messages": [odd, 5] }), 3 + 4 + 3);
    }

    #[test]
    fn parts_count_by_their_text() {
        let parts = json!([
            { "type": "text", "text": "a b" },
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,x y z" } },
            { "type": "refusal", "refusal": "no" },
        ]);
        check(&json!({ "messages": [{ "content": parts }] }), 3 + 3 + 3);
    }

    #[test]
    fn calls_count_by_name_and_arguments() {
        let call = json!({ "id": "c d e", "type": "function", "function": { "name": "f", "arguments": "{ }" } });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
        check(&json!({ "messages": [message] }), 3 + 3 + 1 + 3);
        let legacy =
            json!({ "role": "assistant", "function_call": { "name": "f", "arguments": "{ }" } });
        check(&json!({ "messages": [legacy] }), 3 + 3 + 1 + 3);
    }

    #[test]
    fn functions_cost_more_before_gpt_4o() {
        let function = json!({ "name": "f", "description": "does it.", "parameters": { "type": "object", "properties": {
            "city": { "type": "string", "description": "which one" },
            "unit": { "enum": ["c", "f"] },
        } } });
        // The function, its line, properties, two of them, one line each, two values less three.
        let all = 12 + 7 + 2 + 3 + (3 + 2) + (3 + 1 + (2 * 4 - 3));
        let tools = json!([{ "type": "function", "function": function }]);
        for (model, more) in [
            ("gpt-4o", 0),
            ("openai/gpt-4-0613", 3),
            ("ft:gpt-3.5-turbo:me", 3),
            ("?", 0),
        ] {
            check(
                &json!({ "model": model, "messages": [], "tools": tools }),
                3 + all + more,
            );
            check(
                &json!({ "model": model, "messages": [], "functions": [function] }),
                3 + all + more,
            );
        }
        check(&json!({ "messages": [], "tools": [] }), 3);
        check(
            &json!({ "messages": [], "functions": [{ "name": "f" }] }),
            3 + 12 + 7 + 1,
        );
    }

    #[test]
    fn a_text_completion_counts_its_prompt() {
        check(&json!({ "prompt": "a b" }), 2);
        check(&json!({ "prompt": ["a b", "c"] }), 3);
        check(&json!({ "prompt": [1, 2, 3] }), 3);
        check(&json!({ "prompt": [[1, 2], [3]] }), 3);
        check(&json!({ "prompt": "" }), 0);
        check(&json!({ "prompt": null }), None);
        check(&json!({ "model": "x" }), None);
        check(&json!([]), None);
    }

    #[test]
    fn the_users_text_is_not_in_the_debug_output() {
        let prompt = Prompt::of(&json!({ "messages": [{ "content": "secret" }] }));
        assert!(!format!("{prompt:?}").contains("secret"));
    }
}
