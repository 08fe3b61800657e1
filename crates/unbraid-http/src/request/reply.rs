//! The next turn: an answer as the assistant's message, and the results of its calls.

mod blocks;
mod policy;

use serde_json::{Map, Value, json};
use unbraid::{CallKind, Message, ReasoningSource, ToolCall};

pub use self::policy::{ReplyPolicy, ReplyReasoning};
use super::{Request, translate};

/// Unknown fields of a message that carry no text, but the state that the provider needs for its next turn: Gemini's
/// thought signatures, Copilot's reasoning, and the plan of Cohere's calls.
const STATE_FIELDS: [&str; 4] = [
    "extra_content",
    "thought_signature",
    "reasoning_opaque",
    "tool_plan",
];

/// What stands in the answer beside texts and calls.
const CONTENT_PARTS: &str = "content_parts";

/// Reasoning with its signatures: OpenRouter's name, and LiteLLM's.
const REASONING_BLOCKS: [&str; 2] = ["reasoning_details", "thinking_blocks"];

/// The name of a reasoning text whose own name is not known.
const DEFAULT_REASONING_FIELD: &str = "reasoning_content";

impl Request {
    /// Adds an answer as a message with the role `assistant`, in the form in which providers accept it back.
    ///
    /// The answer is the outcome of one choice, or its [`Message`]. A request for the next turn of several choices is one
    /// clone for each of them.
    ///
    /// - No field is null. `content` is missing if there are calls and no text.
    /// - A call has its id, name and arguments, and its unknown fields, such as Gemini's `extra_content` with a thought
    ///   signature, unless the reply policy is [`ReplyReasoning::Never`]. Arguments are the text that the model wrote, also if that is not JSON; empty ones become `{}`. What the
    ///   server left out stays out: an id is never made up. A legacy call is the `function_call`.
    /// - Reasoning is sent back as [`reply_policy`](Self::reply_policy) says: by default in a message with calls, where
    ///   the server sent it. `reasoning_details` are sent with their fragments joined, in place of the same text.
    /// - The state that another provider's interface needs back (signed thinking, encrypted reasoning, the plan of Cohere,
    ///   the calls of the provider's own tools) is in `reasoning_details`, `tool_plan` and `content_parts`, from where a
    ///   client [for that provider](crate::Client::builder_for) takes it.
    /// - A refusal is the field `refusal`. Audio is its id, as the API expects it. Other unknown fields are left out, because
    ///   strict providers refuse fields that they do not know; [`ReplyPolicy::with_fields`] names those to keep.
    ///
    /// An answer that was cut is added as far as it arrived.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::Completions;
    /// use unbraid_http::Request;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"now"}}]},"finish_reason":"tool_calls"}]}
    ///
    /// data: [DONE]
    ///
    /// "#;
    /// let outcome = Completions::from_reader(&body[..]).first().await?.finished().await?;
    ///
    /// let first = Request::chat("m").user("What time is it?");
    /// let second = first.reply(&outcome).tool_result("c1", "12:00");
    /// assert_eq!(
    ///     second.get("messages").unwrap()[1],
    ///     serde_json::json!({
    ///         "role": "assistant",
    ///         "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "now", "arguments": "{}" } }],
    ///     })
    /// );
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn reply(self, answer: &impl AsRef<Message>) -> Self {
        let message = assistant(answer.as_ref(), &self.reply_policy);
        self.message(message)
    }

    /// Sets how later calls of [`reply`](Self::reply) write an answer. The default is [`ReplyPolicy::default`].
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_http::{ReplyPolicy, ReplyReasoning, Request};
    ///
    /// // The next turn goes to another provider, which refuses the reasoning of this one.
    /// let request = Request::chat("m").reply_policy(ReplyPolicy::default().with_reasoning(ReplyReasoning::Never));
    /// # drop(request);
    /// ```
    #[must_use]
    pub fn reply_policy(mut self, policy: ReplyPolicy) -> Self {
        self.reply_policy = policy;
        self
    }

    /// Adds the result of a call, as a message with the role `tool`. Providers expect one for each call of an answer, after
    /// its [`reply`](Self::reply).
    ///
    /// With an empty id, for a call that has none, `tool_call_id` is left out.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").tool_result("call_1", "21 C");
    /// assert_eq!(
    ///     request.get("messages").unwrap()[0],
    ///     serde_json::json!({ "role": "tool", "tool_call_id": "call_1", "content": "21 C" })
    /// );
    /// ```
    #[must_use]
    pub fn tool_result(self, id: impl Into<String>, text: impl Into<String>) -> Self {
        let (id, text) = (id.into(), text.into());
        if id.is_empty() {
            return self.message(json!({ "role": "tool", "content": text }));
        }
        self.message(json!({ "role": "tool", "tool_call_id": id, "content": text }))
    }

    /// Adds the result of a legacy function call, as a message with the role `function`.
    ///
    /// # Examples
    ///
    /// ```
    /// let request = unbraid_http::Request::chat("m").function_result("get_weather", "21 C");
    /// assert_eq!(request.get("messages").unwrap()[0]["role"], "function");
    /// ```
    #[must_use]
    pub fn function_result(self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.message(json!({ "role": "function", "name": name.into(), "content": text.into() }))
    }

    /// Adds the result of a call of any kind: [`function_result`](Self::function_result) for a legacy function call, and
    /// [`tool_result`](Self::tool_result) for any other.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid::{ChoiceIndex, Config, Demux};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"now\"}}}]}\n\n");
    /// # let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    /// let mut request = unbraid_http::Request::chat("m").reply(&message);
    /// for call in &message.tool_calls {
    ///     request = request.call_result(call, "12:00");
    /// }
    /// assert_eq!(request.get("messages").unwrap()[1]["name"], "now");
    /// ```
    #[must_use]
    pub fn call_result(self, call: &ToolCall, text: impl Into<String>) -> Self {
        match call.kind {
            CallKind::LegacyFunction => self.function_result(&*call.name, text),
            _ => self.tool_result(call.id.as_deref().unwrap_or(""), text),
        }
    }
}

/// The message of an answer.
fn assistant(answer: &Message, policy: &ReplyPolicy) -> Value {
    let mut message = Map::new();
    let mut set = |name: &str, value: Value| message.insert(name.to_owned(), value);
    set("role", "assistant".into());
    let parts = Reasoning::of(answer, policy);
    let needs_content = policy.empty_content || !has_substitute_for_text(answer);
    if let Some(content) = content(answer, &parts) {
        set("content", content);
    } else if needs_content {
        set("content", "".into());
    }
    if let Some((name, text)) = parts.field {
        set(name, text.into());
    }
    for (name, blocks) in parts.blocks {
        set(name, blocks);
    }
    if !answer.refusal.is_empty() {
        set("refusal", answer.refusal.as_str().into());
    }
    if let Some(id) = answer.audio.as_ref().and_then(|audio| audio.id.as_deref()) {
        set("audio", json!({ "id": id }));
    }
    let is_legacy = |call: &&ToolCall| call.kind == CallKind::LegacyFunction;
    let calls: Vec<Value> = answer
        .tool_calls
        .iter()
        .filter(|call| !is_legacy(call))
        .map(|call| tool_call(call, policy))
        .collect();
    if !calls.is_empty() {
        set("tool_calls", calls.into());
    }
    if let Some(call) = answer.tool_calls.iter().find(is_legacy) {
        set("function_call", named_arguments(call));
    }
    let state: &[&str] = match policy.reasoning {
        ReplyReasoning::Never => &[], // it means nothing to another provider
        ReplyReasoning::WithCalls | ReplyReasoning::Always => &STATE_FIELDS,
    };
    let more = policy.fields.iter().map(|name| &**name);
    let names_parts = more.clone().any(|name| name == CONTENT_PARTS);
    if !names_parts && let Some(parts) = state_parts(answer, policy) {
        message.insert(CONTENT_PARTS.into(), parts);
    }
    for name in state.iter().copied().chain(more) {
        if let Some(value) = unknown_field(answer, name) {
            message.entry(name).or_insert(value);
        }
    }
    message.into()
}

/// The parts that their provider needs back, such as the calls of its own tools and their results. Parts of chat completions
/// are not among them: no server accepts them under this name.
fn state_parts(answer: &Message, policy: &ReplyPolicy) -> Option<Value> {
    let Value::Array(mut parts) = unknown_field(answer, CONTENT_PARTS)? else {
        return None;
    };
    parts.retain(translate::is_state);
    let is_sent = policy.reasoning != ReplyReasoning::Never && !parts.is_empty();
    is_sent.then_some(parts.into())
}

/// Whether the API accepts the message without `content`.
fn has_substitute_for_text(answer: &Message) -> bool {
    let has_audio = answer
        .audio
        .as_ref()
        .is_some_and(|audio| audio.id.is_some());
    has_audio || !answer.tool_calls.is_empty()
}

/// What is sent back of the reasoning, by the place that it has in a message.
#[derive(Default)]
struct Reasoning<'m> {
    field: Option<(&'m str, &'m str)>,
    /// A part before the text (C11).
    part: Option<&'m str>,
    /// Tags before the text (C18).
    tagged: Option<&'m str>,
    blocks: Vec<(&'static str, Value)>,
}

impl<'m> Reasoning<'m> {
    fn of(answer: &'m Message, policy: &ReplyPolicy) -> Self {
        let wants_text = match policy.reasoning {
            ReplyReasoning::Never => return Self::default(),
            ReplyReasoning::WithCalls => !answer.tool_calls.is_empty(),
            ReplyReasoning::Always => true,
        };
        let mut reasoning = Self::default();
        for name in REASONING_BLOCKS {
            if let Some(Value::Array(fragments)) = unknown_field(answer, name) {
                reasoning
                    .blocks
                    .push((name, blocks::join(fragments).into()));
            }
        }
        let text = answer.reasoning.as_str();
        let has_details = reasoning
            .blocks
            .iter()
            .any(|(name, _)| *name == "reasoning_details");
        if text.is_empty() || !wants_text {
            return reasoning;
        }
        match &answer.reasoning_source {
            // OpenRouter takes either; the details have the signatures, too.
            Some(ReasoningSource::Field(_)) | None if has_details => {}
            Some(ReasoningSource::Field(name)) => reasoning.field = Some((name, text)),
            Some(ReasoningSource::ContentParts) => reasoning.part = Some(text),
            Some(ReasoningSource::ThinkTags) => reasoning.tagged = Some(text),
            Some(ReasoningSource::Details) => {}
            None | Some(_) => reasoning.field = Some((DEFAULT_REASONING_FIELD, text)),
        }
        reasoning
    }
}

/// The content, if there is any.
fn content(answer: &Message, reasoning: &Reasoning<'_>) -> Option<Value> {
    let text = answer.content.as_str();
    if let Some(thinking) = reasoning.part {
        let part = |text: &str| json!({ "type": "text", "text": text });
        let thinking = json!({ "type": "thinking", "thinking": [part(thinking)] });
        let text = (!text.is_empty()).then(|| part(text));
        return Some([thinking].into_iter().chain(text).collect());
    }
    if let Some(thinking) = reasoning.tagged {
        return Some(format!("<think>{thinking}</think>{text}").into());
    }
    (!text.is_empty()).then(|| text.into())
}

fn tool_call(call: &ToolCall, policy: &ReplyPolicy) -> Value {
    let mut entry = Map::new();
    if let Some(id) = &call.id {
        entry.insert("id".into(), (**id).into());
    }
    let (kind, data) = match call.kind {
        CallKind::Custom => (
            "custom",
            json!({ "name": *call.name, "input": call.arguments }),
        ),
        _ => ("function", named_arguments(call)),
    };
    entry.insert("type".into(), kind.into());
    entry.insert(kind.into(), data);
    if policy.reasoning == ReplyReasoning::Never {
        return entry.into(); // strict providers refuse what another one added
    }
    for (name, raw) in &call.extra {
        if let Some(value) = parse(raw) {
            entry.entry(&**name).or_insert(value);
        }
    }
    entry.into()
}

/// T23: providers expect JSON, and a call without arguments has none.
fn named_arguments(call: &ToolCall) -> Value {
    let is_empty = call.arguments.trim_ascii().is_empty();
    let arguments = if is_empty { "{}" } else { &call.arguments };
    json!({ "name": *call.name, "arguments": arguments })
}

fn unknown_field(answer: &Message, name: &str) -> Option<Value> {
    let mut fields = answer.extra.iter();
    let (_, raw) = fields.find(|(known, _)| **known == *name)?;
    parse(raw)
}

/// A field's value. Null says as much as a missing field; a number beyond the range of `f64` cannot be sent.
fn parse(raw: &str) -> Option<Value> {
    serde_json::from_str(raw)
        .ok()
        .filter(|value: &Value| !value.is_null())
}

#[cfg(test)]
mod tests;
