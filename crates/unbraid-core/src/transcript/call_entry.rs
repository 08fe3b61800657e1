//! A tool call of a choice that is open.

use std::sync::Arc;

use crate::{
    CallIndex,
    tool_call::{CallKind, CallStatus, ToolCall},
};

/// A call's state while its choice is open; its arguments stand in the transcript's text.
#[derive(Clone, Default)]
pub(crate) struct CallEntry {
    pub(crate) key: Option<i64>,
    pub(crate) index: Option<i64>,
    /// Whether the entry that opened it had an index on the wire.
    pub(crate) came_with_index: bool,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) name: String,
    pub(crate) kind: CallKind,
    pub(crate) waiting: String,
    pub(crate) high: Option<u16>,
    pub(crate) announced: bool,
    /// The index, id and kind that were told: what comes later changes the call, not the event.
    pub(crate) announced_index: Option<i64>,
    pub(crate) announced_id: Option<Arc<str>>,
    pub(crate) announced_kind: CallKind,
    /// The judgement that was told at the end.
    pub(crate) status: Option<CallStatus>,
    /// Whether something came behind the end, so that the message's judgement is another one.
    pub(crate) late: bool,
    pub(crate) extra: Vec<(Arc<str>, Arc<str>)>,
}

impl CallEntry {
    pub(crate) fn judge(&self, arguments: &str, cut: bool) -> CallStatus {
        CallStatus::judge_at_end(self.kind, self.id.as_deref(), &self.name, arguments, cut)
    }

    /// The call so far; `cut` says whether the choice's end cut it, and is `None` while the choice is open.
    pub(super) fn call(
        &self,
        call_index: CallIndex,
        arguments: String,
        cut: Option<bool>,
    ) -> ToolCall {
        // A choice that was lost has an end, but nobody was there to judge its calls.
        let status = match (self.status.filter(|_| !self.late), cut) {
            (Some(status), _) => Some(status),
            (None, Some(cut)) => Some(self.judge(&arguments, cut)),
            (None, None) => None,
        };
        ToolCall {
            call_index,
            wire_index: self.index,
            id: self.id.clone(),
            name: self.name.as_str().into(),
            kind: self.kind,
            arguments,
            status,
            extra: self.extra.clone(),
        }
    }
}
