//! `ToolCall`, and the status of its arguments.

mod cut;
mod problem;
mod ready;

use std::{fmt, sync::Arc};

pub(crate) use cut::{Cut, cut_of, reason_cuts};
pub use problem::CallProblem;
pub use ready::ReadyPolicy;
pub(crate) use ready::{Input, ReadyMachine, ReadyState};

use crate::{
    CallIndex,
    json::{Verdict, check, check_cut},
};

/// The kind of a tool call.
///
/// # Examples
///
/// ```
/// use unbraid_core::{CallKind, CallStatus};
///
/// // The input of a custom tool is text, so it need not be JSON.
/// let text = "SELECT 1";
/// assert_eq!(CallStatus::check(CallKind::Custom, Some("c1"), "sql", text), CallStatus::Complete);
/// assert_eq!(CallStatus::check(CallKind::Function, Some("c1"), "sql", text), CallStatus::Invalid);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallKind {
    /// A function with JSON arguments.
    #[default]
    Function,
    /// A custom tool with raw text input.
    Custom,
    /// The `function_call` of 2023, without an id and at most one per choice (T36).
    LegacyFunction,
}

impl CallKind {
    /// The wire's `type`.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::CallKind::Function.as_str(), "function");
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Function => "function",
            Self::Custom => "custom",
            Self::LegacyFunction => "function_call",
        }
    }
}

/// The status of a call at the end of its choice. The arguments themselves are never repaired or replaced.
///
/// # Examples
///
/// ```
/// use unbraid_core::{CallKind, CallStatus};
///
/// let status = |arguments| CallStatus::check(CallKind::Function, Some("c1"), "add", arguments);
/// assert_eq!(status(r#"{"a":1}"#), CallStatus::Complete);
/// assert_eq!(status(""), CallStatus::EmptyAsObject);
/// assert_eq!(status(r#"{"a":1}{"a":2}"#), CallStatus::Concatenated);
/// assert_eq!(status("").as_str(), "empty_as_object");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallStatus {
    /// One JSON value (or a custom tool's text).
    Complete,
    /// Nothing or white space, in a choice that was not cut, or before the text or call at which the limit on tokens cut it: a
    /// call without arguments (T23, D14).
    EmptyAsObject,
    /// JSON, except for raw control characters (J1 to J3) or halves of surrogate pairs (J17) in its strings, or after a `{}`
    /// placeholder (T22).
    Repaired,
    /// The text ends inside the value (J6, J7), or the choice was cut and the text may be incomplete: it is empty, a bare
    /// number, or a custom tool's text.
    Truncated,
    /// Several values in a row (J12).
    Concatenated,
    /// Not JSON.
    Invalid,
    /// The call has no name.
    MissingName,
    /// The call has no id.
    MissingId,
}

impl CallStatus {
    /// One lower-case word, as the command prints it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::EmptyAsObject => "empty_as_object",
            Self::Repaired => "repaired",
            Self::Truncated => "truncated",
            Self::Concatenated => "concatenated",
            Self::Invalid => "invalid",
            Self::MissingName => "missing_name",
            Self::MissingId => "missing_id",
        }
    }

    /// The status of a call in a choice that was not cut.
    ///
    /// In a choice that was cut (by `length`, an error, the end of the stream ..) a call without arguments is
    /// [`Truncated`](Self::Truncated). The status of a [`ToolCall`] takes that into account.
    ///
    /// If several statuses apply, the gravest is returned: a missing name, then a fault of the arguments, then a missing id.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{CallKind, CallStatus};
    ///
    /// assert_eq!(CallStatus::check(CallKind::Function, Some("id"), "f", "{\"a\":1}"), CallStatus::Complete);
    /// assert_eq!(CallStatus::check(CallKind::Function, Some("id"), "f", "{\"a\":"), CallStatus::Truncated);
    /// ```
    #[must_use]
    pub fn check(kind: CallKind, id: Option<&str>, name: &str, arguments: &str) -> Self {
        Self::check_at_end(kind, id, name, arguments, false)
    }

    /// The status of a call; `cut` says whether the choice's end cut it.
    pub(crate) fn check_at_end(
        kind: CallKind,
        id: Option<&str>,
        name: &str,
        arguments: &str,
        cut: bool,
    ) -> Self {
        if name.is_empty() {
            return Self::MissingName;
        }
        match check_arguments(kind, arguments, cut).into() {
            fault @ (Self::Truncated | Self::Concatenated | Self::Invalid) => fault,
            _ if id.is_none() && kind != CallKind::LegacyFunction => Self::MissingId,
            status => status,
        }
    }
}

/// Checks arguments. If the choice was cut, only text that shows its own end is complete.
fn check_arguments(kind: CallKind, arguments: &str, cut: bool) -> Verdict {
    match (kind, cut) {
        (CallKind::Custom, true) => Verdict::Truncated,
        (CallKind::Custom, false) => Verdict::Complete, // T31: its input is text
        (CallKind::Function | CallKind::LegacyFunction, true) => check_cut(arguments),
        (CallKind::Function | CallKind::LegacyFunction, false) => check(arguments),
    }
}

impl ToolCall {
    /// The verdict on its arguments, given how the choice ended.
    pub(crate) fn verdict(&self) -> Verdict {
        check_arguments(self.kind, &self.arguments, self.may_be_cut())
    }

    /// Whether the choice has not ended, or its end cut the call.
    fn may_be_cut(&self) -> bool {
        matches!(self.status, None | Some(CallStatus::Truncated))
    }

    /// Whether the arguments are a value by themselves, but may be incomplete because the choice was cut.
    pub(crate) fn lacks_arguments(&self) -> bool {
        self.verdict() == Verdict::Truncated && check(&self.arguments) != Verdict::Truncated
    }
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A tool call, at the end of its choice or so far.
///
/// # Examples
///
/// ```
/// use unbraid_core::{CallStatus, ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"add","arguments":"{\"a\":"}}]}}]}
///
/// data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}
///
/// data: [DONE]
///
/// "#);
/// let call = &demux.choice(ChoiceIndex(0)).unwrap().message().tool_calls[0];
/// assert_eq!((&*call.name, &*call.arguments), ("add", r#"{"a":1}"#));
/// assert_eq!(call.status, Some(CallStatus::Complete));
/// assert!(call.problem().is_none());
/// ```
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolCall {
    /// Its ordinal within the choice, as in the events.
    pub call_index: CallIndex,
    /// The wire's index, if the call has one.
    pub wire_index: Option<i64>,
    /// The server's id.
    pub id: Option<Arc<str>>,
    /// The tool's name.
    pub name: Arc<str>,
    /// Function, custom tool or legacy function call.
    pub kind: CallKind,
    /// The raw text, unchanged.
    pub arguments: String,
    /// The status; `None` while the choice is open.
    pub status: Option<CallStatus>,
    /// Unknown fields of the call, as raw JSON.
    pub extra: Vec<(Arc<str>, Arc<str>)>,
    /// Whether the server gives no ids, so that none is missing (D15).
    pub(crate) without_id: bool,
}

impl From<Verdict> for CallStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Complete => Self::Complete,
            Verdict::EmptyAsObject => Self::EmptyAsObject,
            Verdict::Repaired => Self::Repaired,
            Verdict::Truncated => Self::Truncated,
            Verdict::Concatenated { .. } => Self::Concatenated,
            Verdict::Invalid { .. } | Verdict::TooDeep { .. } => Self::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CallKind, CallStatus};

    #[track_caller]
    fn check(arguments: &str, expected: CallStatus) {
        assert_eq!(
            CallStatus::check(CallKind::Function, Some("id"), "f", arguments),
            expected
        );
    }

    #[test]
    fn the_status_follows_from_the_text() {
        check("{\"a\":1}", CallStatus::Complete);
        check("", CallStatus::EmptyAsObject);
        check(" \n", CallStatus::EmptyAsObject);
        check("{\"a\":\"x\ny\"}", CallStatus::Repaired);
        check("{\"a\":\"x\\\ny\"}", CallStatus::Repaired);
        check("{\"a\":\"x\ny", CallStatus::Truncated);
        check("{\"a\":1", CallStatus::Truncated);
        check("{\"a\":1}{\"b\":2}", CallStatus::Concatenated);
        check("{}{\"b\":2}", CallStatus::Repaired);
        check("{\"a\":1}<think>", CallStatus::Invalid);
        check("not json", CallStatus::Invalid);
        check("false", CallStatus::Complete);
        check("{\"a\":\"\\d\"}", CallStatus::Invalid);
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        check(&deep(127), CallStatus::Complete);
        check(&deep(128), CallStatus::Invalid);
        check(&format!("[\"{}\"]", "[".repeat(500)), CallStatus::Complete);
    }

    #[test]
    fn t18_a_missing_name_or_id_is_a_status() {
        assert_eq!(
            CallStatus::check(CallKind::Function, Some("id"), "", "{}"),
            CallStatus::MissingName
        );
        assert_eq!(
            CallStatus::check(CallKind::Function, None, "f", "{}"),
            CallStatus::MissingId
        );
        assert_eq!(
            CallStatus::check(CallKind::Function, None, "f", "{"),
            CallStatus::Truncated
        );
        assert_eq!(
            CallStatus::check(CallKind::LegacyFunction, None, "f", "{}"),
            CallStatus::Complete
        );
        assert_eq!(
            CallStatus::check(CallKind::Custom, Some("id"), "f", "free { text"),
            CallStatus::Complete
        );
    }
}
