//! What is asked: the JSON object of a chat or text completion.

mod encode;
mod fields;

use std::{fmt, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};
use unbraid::BoxError;

pub(crate) use self::encode::EachChoice;
use crate::fan_out::ChoiceStrategy;

/// A request for completions.
///
/// Its fields go to the server as they were given, in that order; nothing is checked, for the provider decides what it
/// understands. Two are seen to: `stream` is always true, and `stream_options.include_usage` is set unless it was given or
/// [`include_usage(false)`](Self::include_usage) says otherwise.
///
/// `Debug` names the fields, never their values.
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
    fields: Map<String, Value>,
    include_usage: bool,
    choices: ChoiceStrategy,
}

/// Which of the two interfaces is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Chat,
    Text,
}

/// A value that is no request.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The body of a request is a JSON object.
    #[error("a request is a JSON object, not {found}")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// The value does not serialise; what serde said is the `source()`.
    #[error("the request does not serialise to JSON")]
    Serialize(#[source] Arc<dyn std::error::Error + Send + Sync>),
}

impl Request {
    /// A chat completion.
    #[must_use]
    pub fn chat(model: impl Into<String>) -> Self {
        Self::new(Kind::Chat).field("model", model.into())
    }

    /// A text completion. The prompt is a string, or an array of strings or of tokens.
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

    /// A request that was made elsewhere, unchanged.
    ///
    /// It is a text completion if it has a `prompt` and no `messages`, else a chat completion.
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
    /// let refused = Request::from_value(json!(["model"])).unwrap_err();
    /// assert_eq!(refused.to_string(), "a request is a JSON object, not an array");
    /// # Ok::<(), RequestError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError::NotAnObject`].
    pub fn from_value(value: Value) -> Result<Self, RequestError> {
        let fields = object(value)?;
        let text = fields.contains_key("prompt") && !fields.contains_key("messages");
        let kind = if text { Kind::Text } else { Kind::Chat };
        Ok(Self {
            fields,
            ..Self::new(kind)
        })
    }

    /// The same for anything that serialises to such an object: the request types of other crates, or your own.
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
    /// let theirs = CreateChatCompletionRequestArgs::default()
    ///     .model("gpt-4o-mini")
    ///     .n(3)
    ///     .messages([ChatCompletionRequestUserMessage::from("Hello").into()])
    ///     .build()?;
    /// let request = Request::from_serialize(&theirs)?;
    /// assert_eq!(request.body()["messages"][0]["content"], "Hello");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`RequestError`]: it does not serialise, or not to an object.
    pub fn from_serialize(value: &impl Serialize) -> Result<Self, RequestError> {
        Self::from_value(serialised(value)?)
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            fields: Map::new(),
            include_usage: true,
            choices: ChoiceStrategy::default(),
        }
    }

    /// Adds a message of the role `system`.
    #[must_use]
    pub fn system(self, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "system", "content": text.into() }))
    }

    /// Adds a message of the role `user`.
    #[must_use]
    pub fn user(self, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "user", "content": text.into() }))
    }

    /// Adds a message of the role `assistant`: an earlier answer.
    #[must_use]
    pub fn assistant(self, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "assistant", "content": text.into() }))
    }

    /// Adds a message of any shape: images, the result of a call. It takes the place of `messages` that are no array.
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

    /// Any other field. A later value takes the place of an earlier one.
    #[must_use]
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// The fields of an object, unchanged, each in the place of an earlier one of its name.
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
    /// [`RequestError`]: it does not serialise, or not to an object.
    pub fn fields(mut self, more: &impl Serialize) -> Result<Self, RequestError> {
        self.fields.extend(object(serialised(more)?)?);
        Ok(self)
    }

    /// A field as it was given.
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
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.fields.insert(name.into(), value.into());
    }

    /// Takes a field away; the order of the others stays.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        self.fields.shift_remove(name)
    }

    /// Whether the server is asked for its count of tokens; `true` unless said otherwise.
    ///
    /// Some servers refuse a request with `stream_options`; with `false` it is sent only if it was given as a field.
    #[must_use]
    pub fn include_usage(mut self, include: bool) -> Self {
        self.include_usage = include;
        self
    }

    /// How several choices are asked for; by `n` unless said otherwise.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{ChoiceStrategy, Request};
    ///
    /// // Four answers from whatever provider, if need be by four requests.
    /// let request = Request::chat("a model").user("Hello?").n(4).choice_strategy(ChoiceStrategy::Auto);
    /// # drop(request);
    /// ```
    #[must_use]
    pub fn choice_strategy(mut self, choices: ChoiceStrategy) -> Self {
        self.choices = choices;
        self
    }

    /// The body as it is sent.
    #[must_use]
    pub fn body(&self) -> Value {
        let sent = self.sent();
        let fields = sent.map(|(name, value)| (name.to_owned(), value.into_owned()));
        Value::Object(fields.collect())
    }

    pub(crate) fn model(&self) -> &str {
        self.get("model").and_then(Value::as_str).unwrap_or("")
    }

    pub(crate) fn asked_by(&self) -> ChoiceStrategy {
        self.choices
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// How many choices were asked for, if that was said: `n` for each prompt.
    pub(crate) fn expected_choices(&self) -> Option<u32> {
        let n = u32::try_from(self.fields.get("n")?.as_u64()?).ok()?;
        let prompts = u32::try_from(self.prompts().len().max(1)).ok()?;
        n.checked_mul(prompts).filter(|expected| *expected > 0)
    }

    /// The prompts of a list; an array of numbers is one prompt, in tokens.
    pub(crate) fn prompts(&self) -> &[Value] {
        match self.fields.get("prompt") {
            Some(Value::Array(prompts)) if !prompts.iter().all(Value::is_number) => prompts,
            _ => &[],
        }
    }
}

/// By way of text: a `Value` made directly would hold an `f32` of 0.7 as 0.699999988079071.
fn serialised(value: &impl Serialize) -> Result<Value, RequestError> {
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
