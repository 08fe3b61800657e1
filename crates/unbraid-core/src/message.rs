//! What a choice adds up to: the non-streaming message, and how it ended.

use std::sync::Arc;

use crate::{
    Audio, ChoiceEnd, ChoiceIndex, FinishReason, Warning,
    tool_call::{CallKind, CallStatus, ToolCall},
};

/// The message of a choice, as a non-streaming answer would hold it.
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
/// assert_eq!(message.role.as_deref(), Some("assistant"), "assumed, since none came");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The role; `assistant` where a chat server named none, `None` for text completions.
    pub role: Option<Arc<str>>,
    /// The text; empty if there was none.
    pub content: String,
    /// The reasoning; empty if there was none.
    pub reasoning: String,
    /// The refusal; empty if there was none.
    pub refusal: String,
    /// The calls in order of appearance, a legacy function call included.
    pub tool_calls: Vec<ToolCall>,
    /// The audio, if any came (M11).
    pub audio: Option<Audio>,
    /// Other fields of the deltas, as raw JSON (C20). The lists `annotations`, `images`, `reasoning_details`, and
    /// `content_parts` (parts of the content that are neither text nor reasoning) are concatenated; of others the
    /// last value counts.
    pub extra: Vec<(Arc<str>, Arc<str>)>,
}

impl Message {
    /// T37: some bridges send one call twice, in the old form and in the new.
    pub(crate) fn drop_repeated_function_call(&mut self) {
        let legacy = |call: &ToolCall| call.kind == CallKind::LegacyFunction;
        let Some(at) = self.tool_calls.iter().position(legacy) else {
            return;
        };
        let Some(old) = self.tool_calls.get(at) else {
            return;
        };
        let same = |call: &ToolCall| {
            !legacy(call) && call.name == old.name && call.arguments == old.arguments
        };
        if self.tool_calls.iter().any(same) {
            self.tool_calls.remove(at);
        }
    }
}

/// What is known of a choice at its end. It holds no usage: that arrives later (U14).
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
/// let finished = demux.result(ChoiceIndex(0)).unwrap()?;
/// assert_eq!(finished.finish_reason.unwrap().as_str(), "stop");
/// assert!(finished.role_inferred);
/// # Ok::<(), unbraid_core::ChoiceError>(())
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct ChoiceOutcome {
    /// The choice.
    pub choice: ChoiceIndex,
    /// How it ended.
    pub end: ChoiceEnd,
    /// What had arrived.
    pub message: Message,
    /// The first finish reason, if one came.
    pub finish_reason: Option<FinishReason>,
    /// Every finish reason that came, raw, each text once (F5).
    pub finish_reasons: Vec<Arc<str>>,
    /// Whether no role came and `assistant` was assumed (C5).
    pub role_inferred: bool,
    /// What was tolerated on this choice.
    pub warnings: Vec<Warning>,
    /// Whether the caller discarded the choice, so that nothing is left of its message.
    pub discarded: bool,
}

impl ChoiceOutcome {
    /// The finish reason that the message itself speaks for (F5, F8, F9).
    ///
    /// Servers say `stop` beside tool calls and `tool_calls` without one. Where the raw reason is `stop` and at least one
    /// call is usable this is `ToolCalls`; where it is `tool_calls` and there is no call, `Stop`; else the raw reason.
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
