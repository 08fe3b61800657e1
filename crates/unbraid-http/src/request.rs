//! The JSON object of a chat or text completion.

pub(crate) mod encode;
mod error;
mod fields;
mod json;
mod reply;
mod requested;
mod strategy;
mod translate;
mod wire;

use std::{fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};
use unbraid::BoxError;

pub use self::{
    error::RequestError,
    reply::{ReplyPolicy, ReplyReasoning},
    strategy::ChoiceStrategy,
};

/// A request for completions.
///
/// Its fields are sent as they were given, in that order. They are not checked, because the provider decides what it
/// supports. Two fields are set for you: `stream` is always true, and `stream_options.include_usage` is true unless it was
/// given or [`include_usage(false)`](Self::include_usage) was called.
///
/// `Debug` prints the names of the fields, never their values. A request can be serialized with serde and read back, to store
/// a conversation: `Serialize` writes the fields as they were given.
///
/// # Examples
///
/// ```
/// use unbraid_http::Request;
///
/// let request = Request::chat("gpt-4o-mini")
///     .system("Answer in one word.")
///     .user("What is the capital of France?")
///     .n(4)
///     .temperature(0.7)
///     .field("service_tier", "flex");
/// assert_eq!(
///     request.body(),
///     serde_json::json!({
///         "model": "gpt-4o-mini",
///         "messages": [
///             { "role": "system", "content": "Answer in one word." },
///             { "role": "user", "content": "What is the capital of France?" },
///         ],
///         "n": 4,
///         "temperature": 0.7,
///         "service_tier": "flex",
///         "stream": true,
///         "stream_options": { "include_usage": true },
///     })
/// );
/// ```
#[derive(Clone, PartialEq)]
pub struct Request {
    kind: Kind,
    /// Whether the fields are those of the client's provider.
    is_native: bool,
    fields: Map<String, Value>,
    include_usage: bool,
    strategy: ChoiceStrategy,
    reply_policy: ReplyPolicy,
}

/// Which of the two interfaces the request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    Text,
}

impl Request {
    /// Creates a request for a chat completion.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("gpt-4o-mini").user("Hello?");
    /// assert_eq!(request.body()["model"], "gpt-4o-mini");
    /// ```
    #[must_use]
    pub fn chat(model: impl Into<String>) -> Self {
        Self::new(Kind::Chat).field("model", model.into())
    }

    /// Creates a request for a text completion. The prompt is a string, or an array of strings or of tokens.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::Request;
    ///
    /// let request = Request::text("davinci-002", "Once upon").max_tokens(16);
    /// assert_eq!(request.body()["prompt"], "Once upon");
    /// ```
    #[must_use]
    pub fn text(model: impl Into<String>, prompt: impl Into<Value>) -> Self {
        Self::new(Kind::Text)
            .field("model", model.into())
            .field("prompt", prompt)
    }

    /// Creates a request from a JSON object, which is sent unchanged.
    ///
    /// It is for a text completion if it has a `prompt` and no `messages`, else for a chat completion.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    /// use unbraid_http::{Request, RequestError};
    ///
    /// let request = Request::from_value(json!({ "model": "m", "messages": [], "top_k": 40 }))?;
    /// assert_eq!(request.body()["top_k"], 40);
    ///
    /// let error = Request::from_value(json!(["model"])).unwrap_err();
    /// assert_eq!(error.to_string(), "a request is a JSON object, not an array");
    /// # Ok::<(), RequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError::NotAnObject`] if the value is not an object.
    pub fn from_value(value: Value) -> Result<Self, RequestError> {
        let fields = object(value)?;
        let text = fields.contains_key("prompt") && !fields.contains_key("messages");
        let kind = if text { Kind::Text } else { Kind::Chat };
        Ok(Self {
            fields,
            ..Self::new(kind)
        })
    }

    /// Creates a request from anything that serializes to a JSON object: the request types of other crates, or your own.
    ///
    /// # Examples
    ///
    /// ```
    /// use async_openai::types::chat::{
    ///     ChatCompletionRequestUserMessage, CreateChatCompletionRequestArgs,
    /// };
    /// use unbraid_http::Request;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let external = CreateChatCompletionRequestArgs::default()
    ///     .model("gpt-4o-mini")
    ///     .n(3)
    ///     .messages([ChatCompletionRequestUserMessage::from("Hello").into()])
    ///     .build()?;
    /// let request = Request::from_serialize(&external)?;
    /// assert_eq!(request.body()["messages"][0]["content"], "Hello");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError`] if the value cannot be serialized, or not to an object.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, RequestError> {
        Self::from_value(to_value(value)?)
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            is_native: false,
            fields: Map::new(),
            include_usage: true,
            strategy: ChoiceStrategy::default(),
            reply_policy: ReplyPolicy::default(),
        }
    }

    /// Adds a message with the role `system`.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").system("Be brief.");
    /// assert_eq!(request.body()["messages"][0]["role"], "system");
    /// ```
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "system", "content": text.into() }))
    }

    /// Adds a message with the role `user`.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").user("Hello?");
    /// assert_eq!(request.body()["messages"][0]["content"], "Hello?");
    /// ```
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "user", "content": text.into() }))
    }

    /// Adds a message with the role `assistant` and only a text. [`reply`](Self::reply) adds an answer with its calls.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").user("Hello?").assistant("Hi!").user("How are you?");
    /// assert_eq!(request.body()["messages"][1]["content"], "Hi!");
    /// ```
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "assistant", "content": text.into() }))
    }

    /// Adds a message of any shape, such as one with images. It replaces `messages` that are not an array.
    ///
    /// # Examples
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let rules = json!({ "role": "developer", "content": [{ "type": "text", "text": "Be brief." }] });
    /// let request = unbraid_http::Request::chat("m").message(rules).user("How warm is it?");
    /// assert_eq!(request.body()["messages"][0]["role"], "developer");
    /// ```
    #[must_use]
    pub fn message(mut self, message: impl Into<Value>) -> Self {
        let messages = self.fields.entry("messages").or_insert(Value::Null);
        if let Value::Array(messages) = messages {
            messages.push(message.into());
        } else {
            *messages = Value::Array(vec![message.into()]);
        }
        self
    }

    /// Sets a field. A later value replaces an earlier one.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").field("top_k", 40);
    /// assert_eq!(request.body()["top_k"], 40);
    /// ```
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets each field of an object, unchanged. It replaces an earlier one of the same name.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{Request, RequestError};
    ///
    /// #[derive(serde::Serialize)]
    /// struct Sampling {
    ///     min_p: f32,
    ///     temperature: f32,
    /// }
    /// let request = Request::chat("m").fields(&Sampling { min_p: 0.05, temperature: 0.7 })?;
    /// assert_eq!(request.get("min_p").unwrap().to_string(), "0.05");
    /// # Ok::<(), RequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError`] if the value cannot be serialized, or not to an object.
    pub fn fields(mut self, more: &impl Serialize) -> Result<Self, RequestError> {
        self.fields.extend(object(to_value(more)?)?);
        Ok(self)
    }

    /// Returns a field as it was given.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut request = unbraid_http::Request::chat("m").user("Hi").n(4);
    /// assert_eq!(request.get("n"), Some(&4.into()));
    /// request.set("n", 1);
    /// assert_eq!(request.remove("n"), Some(1.into()));
    /// assert_eq!(request.get("n"), None);
    /// ```
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }

    /// Changes a field in place, or adds it.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut request = unbraid_http::Request::chat("m");
    /// request.set("model", "another");
    /// assert_eq!(request.body()["model"], "another");
    /// ```
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.fields.insert(name.into(), value.into());
    }

    /// Removes a field and returns it. The order of the others does not change.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut request = unbraid_http::Request::chat("m").n(2);
    /// assert_eq!(request.remove("n"), Some(2.into()));
    /// assert_eq!(request.remove("n"), None);
    /// ```
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.fields.shift_remove(name)
    }

    /// Sets whether the server is asked to report its token counts. The default is `true`.
    ///
    /// Some servers refuse a request with `stream_options`. With `false` that field is sent only if it was given.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").include_usage(false);
    /// assert!(request.body().get("stream_options").is_none());
    /// ```
    #[must_use]
    pub fn include_usage(mut self, include: bool) -> Self {
        self.include_usage = include;
        self
    }

    /// Sets how several choices are requested. The default is [`ChoiceStrategy::Native`], by `n`.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{ChoiceStrategy, Request};
    ///
    /// // Four answers from any provider, if necessary by four requests.
    /// let request = Request::chat("a model").user("Hello?").n(4).choice_strategy(ChoiceStrategy::Auto);
    /// # drop(request);
    /// ```
    #[must_use]
    pub fn choice_strategy(mut self, strategy: ChoiceStrategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// Returns the body as it is sent.
    ///
    /// # Examples
    ///
    /// ```
    /// let body = unbraid_http::Request::chat("m").include_usage(false).body();
    /// assert_eq!(body, serde_json::json!({ "model": "m", "stream": true }));
    /// ```
    #[must_use]
    pub fn body(&self) -> Value {
        let fields = self.sent_fields();
        let owned = fields.map(|(name, value)| (name.to_owned(), value.into_owned()));
        Value::Object(owned.collect())
    }

    pub(crate) fn model(&self) -> &str {
        self.get("model").and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn strategy(&self) -> ChoiceStrategy {
        self.strategy
    }

    /// The fields that tokens are counted from.
    pub(crate) fn counted(&self) -> Value {
        self.fields.clone().into()
    }

    /// The prompts of a list. An array of numbers is a single prompt, given as tokens.
    pub(crate) fn prompts(&self) -> &[Value] {
        match self.fields.get("prompt") {
            Some(Value::Array(prompts)) if !prompts.iter().all(Value::is_number) => prompts,
            _ => &[],
        }
    }
}

/// Serializes to text first: converted directly, an `f32` of 0.7 would become 0.699999988079071.
fn to_value(value: &impl Serialize) -> Result<Value, RequestError> {
    serde_json::to_string(value)
        .and_then(|text| serde_json::from_str(&text))
        .map_err(|error| RequestError::Serialize(Arc::from(BoxError::from(error))))
}

fn object(value: Value) -> Result<Map<String, Value>, RequestError> {
    let found = match value {
        Value::Object(fields) => return Ok(fields),
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
    };
    Err(RequestError::NotAnObject { found })
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.fields.keys().collect();
        f.debug_struct("Request")
            .field("kind", &self.kind)
            .field("fields", &names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
