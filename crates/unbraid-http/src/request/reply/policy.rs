//! What a reply repeats of an answer.

use std::borrow::Cow;

/// How [`Request::reply`](crate::Request::reply) writes an answer.
///
/// The default is what most providers accept: the reasoning of a message with calls, where the server sent it, and no
/// `content` in a message that has only calls.
///
/// # Examples
///
/// ```
/// use unbraid_http::{ReplyPolicy, ReplyReasoning, Request};
///
/// let policy = ReplyPolicy::default()
///     .with_reasoning(ReplyReasoning::Always)
///     .with_empty_content(true)
///     .with_fields(["citations"]);
/// let request = Request::chat("m").reply_policy(policy);
/// # drop(request);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyPolicy {
    /// Which answers are sent back with their reasoning.
    pub reasoning: ReplyReasoning,
    /// Whether a message with calls and without text has the content `""`. Otherwise it has none, as the API documents it.
    /// Some servers require the field; gateways to Anthropic refuse an empty text.
    pub empty_content: bool,
    /// Names of further unknown fields of the message to send back, with the values that the server sent.
    pub fields: Vec<Cow<'static, str>>,
}

impl ReplyPolicy {
    /// Sets [`reasoning`](Self::reasoning).
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: ReplyReasoning) -> Self {
        self.reasoning = reasoning;
        self
    }

    /// Sets [`empty_content`](Self::empty_content).
    #[must_use]
    pub fn with_empty_content(mut self, empty_content: bool) -> Self {
        self.empty_content = empty_content;
        self
    }

    /// Sets [`fields`](Self::fields).
    #[must_use]
    pub fn with_fields<S>(mut self, names: impl IntoIterator<Item = S>) -> Self
    where
        S: Into<Cow<'static, str>>,
    {
        self.fields = names.into_iter().map(Into::into).collect();
        self
    }
}

/// Which answers [`Request::reply`](crate::Request::reply) sends back with their reasoning; see [`ReplyPolicy`].
///
/// Its text goes where the server sent it, because that is the only place that the same server is sure to accept: the field
/// of the same name, a part of the content, or `<think>` tags. The lists `reasoning_details` and `thinking_blocks`, which hold
/// signatures, and the other state of a provider are sent with every answer, unless this is [`Never`](Self::Never).
///
/// # Examples
///
/// ```
/// use unbraid_http::{ReplyPolicy, ReplyReasoning};
///
/// assert_eq!(ReplyPolicy::default().reasoning, ReplyReasoning::WithCalls);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplyReasoning {
    /// Answers with calls, whose results the model awaits in the middle of its thoughts. DeepSeek and Moonshot refuse a
    /// request without that reasoning; the reasoning of other answers is ignored or refused.
    #[default]
    WithCalls,
    /// Every answer: for models that keep their thoughts over several turns, such as GLM and Qwen.
    Always,
    /// None, for another provider or for a model that does not reason. All other state of the provider is left out, too: the
    /// signatures of reasoning and of calls, and every field that the provider added to a call.
    Never,
}
