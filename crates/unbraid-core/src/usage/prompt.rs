//! Counts the tokens of a prompt from the request.
//!
//! The tokens around a message and a name are those of the page "How to count tokens with tiktoken" in OpenAI's cookbook.
//! Those of tools and calls were fitted on recorded requests ([`Framing`](super::Framing)).

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{
    Usage,
    calls::{self, NamedCall},
    tokenizer::{Tokenizer, sum, texts_of},
    tools,
};
use crate::Message;

/// The parts of a request that its prompt tokens are counted from: texts, and the tokens that surround them.
///
/// It counts the role, name, text parts, refusal and calls of each message, and the declared tools with their parameters. Of
/// a text completion it counts the `prompt`, which may be a list of texts or of tokens. Images, audio, files and
/// `response_format` are not counted.
///
/// # Examples
///
/// ```
/// use serde_json::json;
/// use unbraid_core::Prompt;
///
/// let words = |text: &str| text.split_whitespace().count() as u64;
/// let prompt = Prompt::from_request(&json!({ "model": "davinci-002", "prompt": "Once upon a time" }));
/// assert_eq!(prompt.tokens(&words), Some(4));
/// assert_eq!(prompt.model(), Some("davinci-002"));
/// assert_eq!(Prompt::from_request(&json!({ "input": "?" })).tokens(&words), None);
/// ```
#[derive(Clone, Default)]
pub struct Prompt {
    model: Option<Arc<str>>,
    /// One prompt, or those of a list; empty if the request has none.
    parts: Vec<Part>,
    /// The number of choices of each prompt (E15).
    choices_per_prompt: u32,
    /// The declared functions and custom tools.
    functions: Vec<Value>,
    /// Whether the messages include a system message.
    has_system: bool,
    /// Whether the request names the tool to call.
    names_tool: bool,
}

/// One prompt.
#[derive(Clone, Default)]
struct Part {
    texts: Vec<String>,
    /// The tokens that surround the texts.
    framing_tokens: u64,
    /// The calls of each earlier message that has any: name and arguments.
    calls: Vec<Vec<(String, String)>>,
}

/// Shows no text, because it is the user's.
impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt")
            .field("model", &self.model)
            .field("prompts", &self.parts.len())
            .finish_non_exhaustive()
    }
}

const PER_MESSAGE: u64 = 3;
const PER_NAME: u64 = 1;
/// The reply starts with the assistant's role.
const REPLY: u64 = 3;

impl Prompt {
    /// Creates a prompt from a request. Unknown parts of the request are not errors; they are not counted.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_core::Prompt;
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let prompt = Prompt::from_request(&json!({ "messages": [{ "role": "user", "content": "Hello" }] }));
    /// assert_eq!(prompt.tokens(&words), Some(8));
    /// ```
    #[must_use]
    pub fn from_request(request: &Value) -> Self {
        let model = request.get("model").and_then(Value::as_str);
        let mut prompt = Self {
            model: model.map(Arc::from),
            choices_per_prompt: choices(request),
            ..Self::default()
        };
        if let Some(messages) = request.get("messages").and_then(Value::as_array) {
            prompt.parts.push(Part::from_messages(messages));
            prompt.functions = functions(request);
            prompt.has_system = messages.iter().any(is_system);
            prompt.names_tool = names_tool(request);
        } else if let Some(text) = request.get("prompt").filter(|text| !text.is_null()) {
            prompt.parts = list(text).iter().map(Part::from_text).collect();
        }
        prompt
    }

    /// Returns the model that the request names.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_core::Prompt;
    ///
    /// assert_eq!(Prompt::from_request(&json!({ "model": "m" })).model(), Some("m"));
    /// assert_eq!(Prompt::default().model(), None);
    /// ```
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the number of choices of each prompt, if the request has a list of several prompts (E15).
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_core::Prompt;
    ///
    /// let list = Prompt::from_request(&json!({ "prompt": ["Once", "Twice"], "n": 3 }));
    /// assert_eq!(list.choices_per_prompt(), Some(3));
    /// assert_eq!(Prompt::from_request(&json!({ "prompt": "Once", "n": 3 })).choices_per_prompt(), None);
    /// ```
    #[must_use]
    pub fn choices_per_prompt(&self) -> Option<u32> {
        (self.parts.len() > 1).then_some(self.choices_per_prompt)
    }

    /// Counts the tokens of the prompt; `None`, not 0, if there is none. For a list it is the sum.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_core::Prompt;
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// assert_eq!(Prompt::from_request(&json!({ "prompt": ["a b", "c"] })).tokens(&words), Some(3));
    /// assert_eq!(Prompt::default().tokens(&words), None);
    /// ```
    #[must_use]
    pub fn tokens(&self, counter: &dyn Tokenizer) -> Option<u64> {
        let tools = tools::tokens(&self.functions, self.has_system, counter);
        let parts = self.parts.iter().map(|part| part.tokens(counter));
        (!self.parts.is_empty()).then(|| sum(parts).saturating_add(tools))
    }

    /// Counts the tokens of those prompts of a list whose position is wanted.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_core::Prompt;
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let prompt = Prompt::from_request(&json!({ "prompt": ["a b", "c"] }));
    /// assert_eq!(prompt.tokens_of(|position| position == 1, &words), Some(1));
    /// ```
    #[must_use]
    pub fn tokens_of(&self, wanted: impl Fn(u32) -> bool, counter: &dyn Tokenizer) -> Option<u64> {
        let parts = self.parts.iter().zip(0..);
        let parts = parts.filter(|(_, position)| wanted(*position));
        (!self.parts.is_empty()).then(|| sum(parts.map(|(part, _)| part.tokens(counter))))
    }

    /// Counts the tokens of those prompts of a list that are missing in reports of single prompts.
    pub(super) fn tokens_of_others(&self, reported: &Usage, counter: &dyn Tokenizer) -> u64 {
        let is_reported = |position| reported.prompts.iter().any(|(known, _)| *known == position);
        if self.parts.len() < 2 || reported.prompts.is_empty() {
            return 0;
        }
        self.tokens_of(|position| !is_reported(position), counter)
            .unwrap_or(0)
    }

    /// Counts the tokens of an answer to this request, as [`completion_tokens`](crate::completion_tokens) does. If the request
    /// names the tool to call, OpenAI's models write only the arguments.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_core::{Message, Prompt};
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let prompt = Prompt::from_request(&json!({ "messages": [] }));
    /// assert_eq!(prompt.completion_tokens(&Message::default(), &words), 0);
    /// ```
    #[must_use]
    pub fn completion_tokens(&self, message: &Message, counter: &dyn Tokenizer) -> u64 {
        let calls = named_calls(message);
        let writes_arguments_only = self.names_tool && counter.framing() == super::Framing::OpenAi;
        let calls = if writes_arguments_only {
            calls::arguments(&calls, counter)
        } else {
            counter.framing().calls(&calls, counter)
        };
        texts_of(message, counter).saturating_add(calls)
    }
}

/// The calls of an answer.
pub(super) fn named_calls(message: &Message) -> Vec<NamedCall<'_>> {
    let calls = message.tool_calls.iter();
    calls
        .map(|call| (&*call.name, call.arguments.as_str()))
        .collect()
}

impl Part {
    fn from_messages(messages: &[Value]) -> Self {
        let mut part = Self {
            framing_tokens: REPLY,
            ..Self::default()
        };
        messages.iter().for_each(|message| part.message(message));
        part
    }

    fn from_text(text: &Value) -> Self {
        let mut part = Self::default();
        part.text_completion(text);
        part
    }

    fn tokens(&self, counter: &dyn Tokenizer) -> u64 {
        let texts = sum(self.texts.iter().map(|text| counter.count(text)));
        let calls = self.calls.iter().map(|calls| {
            let calls = calls.iter().map(|(name, text)| (&**name, &**text));
            let calls: Vec<NamedCall<'_>> = calls.collect();
            counter.framing().past_calls(&calls, counter)
        });
        texts
            .saturating_add(sum(calls))
            .saturating_add(self.framing_tokens)
    }

    fn add(&mut self, tokens: u64) {
        self.framing_tokens = self.framing_tokens.saturating_add(tokens);
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
        // The name of a tool's result is counted with its call.
        let is_result = message.get("role").and_then(Value::as_str) == Some("tool");
        let name = message.get("name").and_then(Value::as_str);
        if let Some(name) = name.filter(|_| !is_result) {
            self.add(PER_NAME);
            self.text(name);
        }
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let calls = calls.into_iter().flatten();
        let calls = calls.filter_map(|call| call.get("function").or_else(|| call.get("custom")));
        let legacy = message.get("function_call").filter(|call| call.is_object());
        let calls: Vec<_> = calls.chain(legacy).map(call).collect();
        if !calls.is_empty() {
            self.calls.push(calls);
        }
    }

    /// Adds content, which is a text or a list of parts.
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

    /// Adds the prompt of a text completion, which is a text or a list of tokens.
    fn text_completion(&mut self, prompt: &Value) {
        match prompt {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.text_completion(item)),
            Value::Number(_) => self.add(1),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
    }
}

/// The name and arguments of a call. The arguments of a custom tool are its `input`.
fn call(call: &Value) -> (String, String) {
    let text = |key| call.get(key).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let arguments = text("arguments").or_else(|| text("input"));
    (name.to_owned(), arguments.unwrap_or_default().to_owned())
}

/// The functions in `tools`, or in `functions`, the field of 2023.
fn functions(request: &Value) -> Vec<Value> {
    let list = |key: &str| request.get(key).and_then(Value::as_array);
    let tools = list("tools").into_iter().flatten();
    let tools = tools.filter_map(|tool| tool.get("function").or_else(|| tool.get("custom")));
    let functions = list("functions").into_iter().flatten();
    tools.chain(functions).cloned().collect()
}

fn is_system(message: &Value) -> bool {
    let role = message.get("role").and_then(Value::as_str);
    matches!(role, Some("system" | "developer"))
}

/// Whether `tool_choice`, or `function_call`, the field of 2023, names a tool.
fn names_tool(request: &Value) -> bool {
    let is_named = |path: &str| request.pointer(path).is_some_and(Value::is_string);
    [
        "/tool_choice/function/name",
        "/tool_choice/custom/name",
        "/tool_choice/name",
        "/function_call/name",
    ]
    .into_iter()
    .any(is_named)
}

/// The number of choices `n`, which is 1 by default.
fn choices(request: &Value) -> u32 {
    let n = request.get("n").and_then(Value::as_u64).unwrap_or(1);
    u32::try_from(n).unwrap_or(u32::MAX).max(1)
}

/// The prompts of a list; an array of numbers is one prompt, in tokens.
fn list(prompt: &Value) -> &[Value] {
    match prompt {
        Value::Array(prompts) if !prompts.iter().all(Value::is_number) => prompts,
        one => std::slice::from_ref(one),
    }
}

#[cfg(test)]
mod tests;
