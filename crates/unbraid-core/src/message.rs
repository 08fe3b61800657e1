//! The message of a choice, and its outcome.

use std::sync::Arc;

use crate::{
    Audio, ChoiceEnd, ChoiceIndex, FinishReason, ReasoningSource, Warning,
    tool_call::{CallKind, CallStatus, ToolCall},
};

/// The message of a choice, as a response without streaming would contain it.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
/// let message = demux.choice(ChoiceIndex(0)).unwrap().message();
/// assert_eq!(message.content, "Hi");
/// assert_eq!(message.role.as_deref(), Some("assistant"), "assumed, because no role arrived");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The role: `assistant` if a chat server named none, `None` for text completions.
    pub role: Option<Arc<str>>,
    /// The text; empty if there was none.
    pub content: String,
    /// The reasoning; empty if there was none.
    pub reasoning: String,
    /// Where the reasoning was in the stream; `None` if there was none, or if an [`Update`](crate::Update) of your own did
    /// not say it.
    pub reasoning_source: Option<ReasoningSource>,
    /// The refusal; empty if there was none.
    pub refusal: String,
    /// The calls in order of appearance, a legacy function call included.
    pub tool_calls: Vec<ToolCall>,
    /// The audio, if there was any (M11).
    pub audio: Option<Audio>,
    /// Unknown fields of the deltas, as raw JSON (C20). The lists `annotations`, `executed_tools`, `images`,
    /// `reasoning_details`, `thinking_blocks` and `content_parts` (parts of the content that are neither text nor reasoning)
    /// are concatenated. Of any other field the last value counts.
    pub extra: Vec<(Arc<str>, Arc<str>)>,
}

impl Message {
    /// T37: some bridges send one call in both forms, as a function call and as a tool call.
    pub(crate) fn drop_repeated_function_call(&mut self) {
        let legacy = |call: &ToolCall| call.kind == CallKind::LegacyFunction;
        let Some(slot) = self.tool_calls.iter().position(legacy) else {
            return;
        };
        let Some(old) = self.tool_calls.get(slot) else {
            return;
        };
        let same = |call: &ToolCall| {
            !legacy(call) && call.name == old.name && call.arguments == old.arguments
        };
        if self.tool_calls.iter().any(same) {
            self.tool_calls.remove(slot);
        }
    }
}

/// How a choice ended, and its message so far. It contains no usage, which arrives later (U14).
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
/// let outcome = demux.result(ChoiceIndex(0)).unwrap()?;
/// assert_eq!(outcome.finish_reason.unwrap().as_str(), "stop");
/// assert!(outcome.role_inferred);
/// # Ok::<(), unbraid_core::ChoiceError>(())
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ChoiceOutcome {
    /// The choice.
    pub choice: ChoiceIndex,
    /// How it ended.
    pub end: ChoiceEnd,
    /// The message, as far as it arrived.
    pub message: Message,
    /// The first finish reason, if one arrived.
    pub finish_reason: Option<FinishReason>,
    /// Every finish reason that arrived, raw, each text once (F5).
    pub finish_reasons: Vec<Arc<str>>,
    /// Unknown fields of the choice beside its deltas, as raw JSON: `stop_reason`, `content_filter_results`, `token_ids`. The lists
    /// `token_ids` are concatenated (M14). Of any other field the last value counts.
    pub extra: Vec<(Arc<str>, Arc<str>)>,
    /// Whether no role arrived and `assistant` was assumed.
    pub role_inferred: bool,
    /// The deviations that were tolerated on this choice.
    pub warnings: Vec<Warning>,
    /// Whether the caller discarded the choice, so that its message is empty.
    pub discarded: bool,
}

impl AsRef<Self> for Message {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl AsRef<Message> for ChoiceOutcome {
    fn as_ref(&self) -> &Message {
        &self.message
    }
}

impl ChoiceOutcome {
    /// Whether the message is the complete answer: its end [is complete](ChoiceEnd::is_complete), and the caller did not
    /// discard the choice.
    ///
    /// Without an error alone, the answer may also be one that `length` or a filter cut, or that ended without a reason. A
    /// complete answer can want its calls answered, and its calls can have faults: each has its [`CallStatus`].
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Config, Demux};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"It is\"},\"finish_reason\":\"length\"}]}\n\n");
    /// demux.feed(b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"It is 42.\"},\"finish_reason\":\"stop\"}]}\n\n");
    /// demux.finish();
    /// let is_complete = |choice| demux.result(ChoiceIndex(choice)).unwrap().is_ok_and(|outcome| outcome.is_complete());
    /// assert!(!is_complete(0) && is_complete(1));
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.end.is_complete() && !self.discarded
    }

    /// The finish reason that fits the message (F5, F9).
    ///
    /// Some servers report `stop` although there are tool calls, or `tool_calls` although there is none. If the raw reason
    /// is `stop` and at least one call is usable, this is `ToolCalls`. If it is `tool_calls` and there is no call, this is
    /// `Stop`. Otherwise it is the raw reason.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Config, Demux, FinishReason};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"now","arguments":"{}"}}]},"finish_reason":"stop"}]}
    ///
    /// data: [DONE]
    ///
    /// "#);
    /// let outcome = demux.result(ChoiceIndex(0)).unwrap()?;
    /// assert_eq!(outcome.finish_reason, Some(FinishReason::Stop));
    /// assert_eq!(outcome.derived_reason(), Some(FinishReason::ToolCalls));
    /// # Ok::<(), unbraid_core::ChoiceError>(())
    /// ```
    #[must_use]
    pub fn derived_reason(&self) -> Option<FinishReason> {
        let usable = |call: &ToolCall| {
            matches!(
                call.status,
                Some(CallStatus::Complete | CallStatus::EmptyAsObject | CallStatus::Repaired)
            )
        };
        match self.finish_reason.as_ref()? {
            FinishReason::Stop if self.message.tool_calls.iter().any(usable) => {
                Some(FinishReason::ToolCalls)
            }
            FinishReason::ToolCalls if self.message.tool_calls.is_empty() => {
                Some(FinishReason::Stop)
            }
            raw => Some(raw.clone()),
        }
    }
}
