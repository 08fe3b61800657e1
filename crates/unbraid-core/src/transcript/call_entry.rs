//! The state of one tool call.

use std::sync::Arc;

use crate::{
    CallIndex, EventIndex, ToolCallUpdate,
    limits::{MAX_FIELDS, MAX_NAME_BYTES},
    tool_call::{CallKind, CallStatus, ToolCall},
    transcript::is_void,
};

/// A moment between two records: how many records there were, and the event. Moments are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) records: usize,
    pub(crate) event: EventIndex,
}

/// The state of one tool call. Its arguments are in the transcript's text.
#[derive(Clone, Default)]
pub(crate) struct CallEntry {
    /// The wire's index, or the position in its chunk for a call without one: what later entries refer to.
    pub(crate) key: Option<i64>,
    pub(crate) index: Option<i64>,
    /// Whether the entry that opened the call had an index on the wire.
    pub(crate) came_with_index: bool,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) name: String,
    pub(crate) kind: CallKind,
    /// Arguments that arrived before the name (T18).
    pub(crate) waiting: String,
    /// Whether any arguments arrived.
    pub(crate) has_arguments: bool,
    /// A high surrogate at the end of the arguments so far.
    pub(crate) high: Option<u16>,
    /// Whether the start of the call was emitted.
    pub(crate) announced: bool,
    /// The index, id and kind as they were emitted. A later value changes the call, not the event.
    pub(crate) announced_index: Option<i64>,
    pub(crate) announced_id: Option<Arc<str>>,
    pub(crate) announced_kind: CallKind,
    /// When its name arrived, or the first piece of it.
    pub(crate) named: Option<Moment>,
    /// When its name changed last, after the call was announced.
    pub(crate) renamed: Option<Moment>,
    /// The status that was emitted at the end of the choice.
    pub(crate) status: Option<CallStatus>,
    /// Whether updates arrived after the end, so that the message needs a new status.
    pub(crate) late: bool,
    /// Whether the call needs no id (D15).
    pub(crate) without_id: bool,
    pub(crate) extra: Vec<(Arc<str>, Arc<str>)>,
}

/// Whether a type is that of a function's call, in any of the spellings of other interfaces.
fn is_function(kind: &str) -> bool {
    let names = ["function", "function_call", "tool_call", "tool_use", "tool"];
    names.iter().any(|name| kind.eq_ignore_ascii_case(name))
}

impl CallEntry {
    /// Takes over everything but the name and the arguments. The first index and id count, and the last value of a field.
    pub(crate) fn absorb(&mut self, entry: &ToolCallUpdate<'_>) {
        let position = || entry.position.map(i64::from);
        self.key = self.key.or(entry.wire_index).or_else(position);
        self.index = self.index.or(entry.wire_index);
        if let (None, Some(id)) = (&self.id, entry.id.as_deref().filter(|id| !id.is_empty())) {
            self.id = Some(id.into());
        }
        self.without_id |= entry.without_id;
        match entry.kind.as_deref() {
            None | Some("") => {}
            Some("custom") => self.kind = CallKind::Custom,
            Some(kind) if is_function(kind) => {}
            // A tool that the server runs keeps its type, because the message is sent back: `builtin_function`.
            Some(other) if other.len() <= MAX_NAME_BYTES => {
                self.set_extra("type", &serde_json::Value::from(other).to_string());
            }
            Some(_) => {}
        }
        for (key, raw) in &entry.extra {
            self.set_extra(key, raw);
        }
    }

    /// Sets an unknown field; an empty value does not replace another one.
    fn set_extra(&mut self, key: &str, raw: &str) {
        let is_full = self.extra.len() >= MAX_FIELDS;
        match self.extra.iter_mut().find(|(known, _)| **known == *key) {
            Some((_, value)) if is_void(raw) && !is_void(value) => {}
            Some((_, value)) => *value = raw.into(),
            None if is_full => {}
            None => self.extra.push((key.into(), raw.into())),
        }
    }

    /// Marks the call as announced; the name and the arguments to emit, or `None` if it was announced before.
    pub(crate) fn announce(&mut self) -> Option<(String, String)> {
        if self.announced {
            return None;
        }
        self.announced = true;
        self.announced_index = self.index;
        self.announced_id = self.id.clone();
        self.announced_kind = self.kind;
        Some((self.name.clone(), std::mem::take(&mut self.waiting)))
    }

    /// The status for these arguments; `is_cut` says whether the choice's end cut the call.
    pub(crate) fn check(&self, arguments: &str, is_cut: bool) -> CallStatus {
        // Where there are no ids, none is missing.
        let id = self.id.as_deref().or_else(|| self.without_id.then_some(""));
        CallStatus::check_at_end(self.kind, id, &self.name, arguments, is_cut)
    }

    /// Whether more of the call may have arrived after it was whole. The status is known; text after the finish reason is not
    /// considered.
    pub(crate) fn may_be_late(&self) -> bool {
        let is_faulty = matches!(
            self.status,
            Some(
                CallStatus::Repaired
                    | CallStatus::Truncated
                    | CallStatus::Concatenated
                    | CallStatus::Invalid
            )
        );
        is_faulty || self.kind == CallKind::Custom || self.renamed.is_some()
    }

    /// The call so far; `is_cut` is `None` while the choice is open.
    pub(super) fn call(
        &self,
        call_index: CallIndex,
        arguments: String,
        is_cut: Option<bool>,
    ) -> ToolCall {
        // A choice that was lost has an end, but no statuses were emitted.
        let status = match (self.status.filter(|_| !self.late), is_cut) {
            (Some(status), _) => Some(status),
            (None, Some(is_cut)) => Some(self.check(&arguments, is_cut)),
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
            without_id: self.without_id,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Demux};

    #[test]
    fn t31_a_type_is_kept_only_if_it_names_another_tool() {
        for (sent, kept) in [
            ("function", "function"),
            ("Function", "function"),
            ("tool_call", "function"),
            ("custom", "custom"),
            ("builtin_function", "builtin_function"),
        ] {
            let mut demux = Demux::new(Config::default());
            let call = format!(
                r#"{{"id":"t","type":"{sent}","function":{{"name":"f","arguments":"{{}}"}}}}"#
            );
            let choice = format!(r#"{{"index":0,"delta":{{"tool_calls":[{call}]}}}}"#);
            demux.feed(format!("data: {{\"choices\":[{choice}]}}\n\n").as_bytes());
            demux.finish();
            let aggregate = demux.aggregate();
            let call = &aggregate["choices"][0]["message"]["tool_calls"][0];
            assert_eq!(call["type"], kept, "{sent}");
        }
    }
}
