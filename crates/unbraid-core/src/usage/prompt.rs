//! The prompt's tokens, counted from the request.
//!
//! What surrounds a message and a name is by the page "How to count tokens with tiktoken" of OpenAI's cookbook. What tools
//! and calls cost was fitted on recorded requests ([`Framing`](super::Framing)).

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{
    Usage,
    calls::{self, NamedCall},
    tokenizer::{Tokenizer, sum, texts_of},
    tools,
};
use crate::Message;

/// What of a request its prompt's tokens are counted from: texts, and the tokens that surround them.
///
/// Counted are a message's role, name, text parts and refusal, its calls, and the tools that were offered with their
/// parameters; or, of a text completion, the `prompt`, which may be a list of texts or of tokens. Images, audio and files
/// are not counted, nor is `response_format`.
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
    /// One, or those of a list; none if the request has no prompt.
    parts: Vec<Part>,
    /// How many choices each prompt has (E15).
    each: u32,
    /// The functions and custom tools that are offered.
    functions: Vec<Value>,
    /// Whether a system message is among the messages.
    system: bool,
    /// Whether the request names the tool to call.
    names_tool: bool,
}

/// One prompt.
#[derive(Clone, Default)]
struct Part {
    texts: Vec<String>,
    /// Tokens beside the texts.
    around: u64,
    /// The calls of each earlier message that made some: name and arguments.
    calls: Vec<Vec<(String, String)>>,
}

/// The texts are the user's.
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
/// The reply begins with the assistant's role.
const REPLY: u64 = 3;

impl Prompt {
    /// Keeps of a request what counting needs. Nothing in it is an error: what is not understood is not counted.
    #[must_use]
    pub fn from_request(request: &Value) -> Self {
        let model = request.get("model").and_then(Value::as_str);
        let mut prompt = Self {
            model: model.map(Arc::from),
            each: choices(request),
            ..Self::default()
        };
        if let Some(messages) = request.get("messages").and_then(Value::as_array) {
            prompt.parts.push(Part::of_messages(messages));
            prompt.functions = functions(request);
            prompt.system = messages.iter().any(is_system);
            prompt.names_tool = names_tool(request);
        } else if let Some(text) = request.get("prompt").filter(|text| !text.is_null()) {
            prompt.parts = list(text).iter().map(Part::of_text).collect();
        }
        prompt
    }

    /// The model that the request names.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// How many choices each prompt has, if the request has a list of several prompts (E15).
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
        (self.parts.len() > 1).then_some(self.each)
    }

    /// The prompt's tokens; `None`, not 0, where there is none. Of a list it is the sum.
    #[must_use]
    pub fn tokens(&self, counter: &dyn Tokenizer) -> Option<u64> {
        let tools = tools::tokens(&self.functions, self.system, counter);
        let parts = self.parts.iter().map(|part| part.tokens(counter));
        (!self.parts.is_empty()).then(|| sum(parts).saturating_add(tools))
    }

    /// The tokens of those prompts of a list that pass the test of their position.
    #[must_use]
    pub fn tokens_of(&self, wanted: impl Fn(u32) -> bool, counter: &dyn Tokenizer) -> Option<u64> {
        let parts = self.parts.iter().zip(0..);
        let parts = parts.filter(|(_, position)| wanted(*position));
        (!self.parts.is_empty()).then(|| sum(parts.map(|(part, _)| part.tokens(counter))))
    }

    /// The tokens of those prompts of a list that a server which reports one by one has not reported.
    pub(super) fn tokens_of_others(&self, reported: &Usage, counter: &dyn Tokenizer) -> u64 {
        let known = |at| reported.prompts.iter().any(|(known, _)| *known == at);
        if self.parts.len() < 2 || reported.prompts.is_empty() {
            return 0;
        }
        self.tokens_of(|at| !known(at), counter).unwrap_or(0)
    }

    /// As [`completion_tokens`](crate::completion_tokens), for an answer to this request: where it names the tool to call,
    /// OpenAI's models write the arguments alone.
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
        let named = self.names_tool && counter.framing() == super::Framing::OpenAi;
        let calls = if named {
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
    fn of_messages(messages: &[Value]) -> Self {
        let mut part = Self {
            around: REPLY,
            ..Self::default()
        };
        messages.iter().for_each(|message| part.message(message));
        part
    }

    fn of_text(text: &Value) -> Self {
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
        texts.saturating_add(sum(calls)).saturating_add(self.around)
    }

    fn add(&mut self, tokens: u64) {
        self.around = self.around.saturating_add(tokens);
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
        let of_result = message.get("role").and_then(Value::as_str) == Some("tool");
        let name = message.get("name").and_then(Value::as_str);
        if let Some(name) = name.filter(|_| !of_result) {
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

    /// A text, or tokens.
    fn text_completion(&mut self, prompt: &Value) {
        match prompt {
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter().for_each(|item| self.text_completion(item)),
            Value::Number(_) => self.add(1),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
    }
}

/// Name and arguments; those of a custom tool are its `input`.
fn call(call: &Value) -> (String, String) {
    let text = |key| call.get(key).and_then(Value::as_str);
    let name = text("name").unwrap_or_default();
    let arguments = text("arguments").or_else(|| text("input"));
    (name.to_owned(), arguments.unwrap_or_default().to_owned())
}

/// `tools`, or `functions` in the form of 2023.
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

/// `tool_choice`, or `function_call` in the form of 2023, with a name.
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

/// `n`, which is 1 if it was not given.
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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Framing;

    /// Counts words, so that what surrounds them can be told apart.
    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    /// The same, for a model of OpenAI's.
    struct OpenAi;

    impl Tokenizer for OpenAi {
        fn count(&self, text: &str) -> u64 {
            words(text)
        }

        fn framing(&self) -> Framing {
            Framing::OpenAi
        }
    }

    #[track_caller]
    fn check(request: &Value, expected: impl Into<Option<u64>>) {
        assert_eq!(
            Prompt::from_request(request).tokens(&words),
            expected.into()
        );
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
        check(&json!({ "messages": [message] }), 3 + 3 + 1 + (6 + 3));
        let legacy =
            json!({ "role": "assistant", "function_call": { "name": "f", "arguments": "{ }" } });
        check(&json!({ "messages": [legacy] }), 3 + 3 + 1 + (6 + 3));
        let custom = json!({ "type": "custom", "custom": { "name": "f", "input": "a b c" } });
        let result =
            json!({ "role": "tool", "name": "f", "tool_call_id": "c d e", "content": "one" });
        let both = json!({ "role": "assistant", "tool_calls": [call, custom] });
        check(
            &json!({ "messages": [both, result] }),
            3 + (3 + 1 + (6 + 3) + (6 + 4)) + (3 + 1 + 1),
        );
    }

    #[test]
    fn openai_models_frame_past_calls_their_own_way() {
        let call = |name: &str| json!({ "function": { "name": name, "arguments": "{ }" } });
        let request = |calls: Value| {
            let message = json!({ "role": "assistant", "tool_calls": calls });
            Prompt::from_request(&json!({ "messages": [message] })).tokens(&OpenAi)
        };
        // "functions.f" is a word, in the call and in its result.
        assert_eq!(request(json!([call("f")])), Some(3 + 3 + 1 + (3 + 2 + 2)));
        // "{ }" stands twice in the JSON of both calls: three words.
        let both = json!([call("f"), call("g")]);
        assert_eq!(request(both), Some(3 + 3 + 1 + (12 + 3)));
    }

    #[test]
    fn tools_count_as_the_model_gets_them() {
        let function = json!({ "name": "f", "parameters": { "properties": { "city": { "type": "string" } } } });
        let tools = json!([{ "type": "function", "function": function }]);
        let user = json!({ "role": "user", "content": "a" });
        let system = json!({ "role": "system", "content": "a" });
        // namespace functions { / type f = (_: { city?: string }) => any; / } // namespace functions
        let text = 3 + 10 + 4;
        for (messages, around) in [(json!([user]), 9), (json!([system]), 5)] {
            for request in [
                json!({ "messages": messages, "tools": tools }),
                json!({ "messages": messages, "functions": [function] }),
            ] {
                let tokens = Prompt::from_request(&request).tokens(&OpenAi);
                assert_eq!(tokens, Some(3 + 3 + 2 + text + around), "{request}");
            }
        }
        // The JSON has no space.
        check(&json!({ "messages": [], "tools": tools }), 3 + 1);
        check(&json!({ "messages": [], "tools": [] }), 3);
        let none = json!({ "messages": [], "tools": [] });
        assert_eq!(Prompt::from_request(&none).tokens(&OpenAi), Some(3));
    }

    #[test]
    fn where_the_request_names_the_tool_its_arguments_count_alone() {
        let mut demux = crate::Demux::new(crate::Config::default());
        demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"f\",\"arguments\":\"a b\"}}]}}]}\n\n");
        let message = demux.choice(crate::ChoiceIndex(0)).unwrap().message();
        for (choice, openai) in [
            (
                json!({ "type": "function", "function": { "name": "f" } }),
                2,
            ),
            (json!({ "type": "function", "name": "f" }), 2),
            (json!("required"), 6 + 1 + 2),
            (Value::Null, 6 + 1 + 2),
        ] {
            let request = json!({ "messages": [], "tool_choice": choice });
            let prompt = Prompt::from_request(&request);
            assert_eq!(prompt.completion_tokens(&message, &OpenAi), openai);
            assert_eq!(prompt.completion_tokens(&message, &words), 6 + 1 + 2);
        }
        let legacy = json!({ "messages": [], "function_call": { "name": "f" } });
        let tokens = Prompt::from_request(&legacy).completion_tokens(&message, &OpenAi);
        assert_eq!(tokens, 2);
    }

    #[test]
    fn e15_each_prompt_of_a_list_is_counted() {
        let prompt = Prompt::from_request(&json!({ "prompt": ["a b", [1, 2, 3], "c"], "n": 2 }));
        assert_eq!(prompt.tokens(&words), Some(6));
        assert_eq!(prompt.tokens_of(|at| at == 1, &words), Some(3));
        assert_eq!(prompt.choices_per_prompt(), Some(2));
        let one = |prompt| Prompt::from_request(&json!({ "prompt": prompt })).choices_per_prompt();
        assert_eq!(one(json!(["a"])), None);
        assert_eq!(one(json!([1, 2])), None);
        assert_eq!(one(json!([[1, 2], [3]])), Some(1));
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
        let prompt = Prompt::from_request(&json!({ "messages": [{ "content": "secret" }] }));
        assert!(!format!("{prompt:?}").contains("secret"));
    }
}
