//! `CallProblem`: what a call lacks, and where its arguments are invalid.

use std::fmt;

use serde::{Serialize, Serializer, ser::SerializeStruct};

use super::{CallKind, CallStatus, ToolCall};
use crate::{CallIndex, json::Verdict};

/// What is wrong with a call whose choice has ended. It names every missing field, and never contains payload.
///
/// # Examples
///
/// ```
/// use unbraid_core::{CallIndex, ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}
///
/// data: [DONE]
///
/// "#);
/// let call = demux.choice(ChoiceIndex(0)).unwrap().call(CallIndex(0)).unwrap();
/// assert_eq!(call.problem().unwrap().to_string(), "tool call 0 has arguments but no name and no id");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallProblem {
    /// The call, as in the events.
    pub call_index: CallIndex,
    /// The missing fields: `name`, `id`.
    pub missing: Vec<&'static str>,
    /// The call's status.
    pub status: CallStatus,
    /// The byte of the raw arguments at which they are invalid: their end, the second value, or the first byte that is not
    /// JSON.
    pub offset: Option<usize>,
    /// What is wrong with the arguments.
    fault: Option<&'static str>,
    has_arguments: bool,
}

impl ToolCall {
    /// What is wrong with the call; `None` while its choice is open, and if its arguments can be used.
    ///
    /// [`Repaired`](CallStatus::Repaired) is not a problem, but a caller that parses the raw text has to repair it first.
    #[must_use]
    pub fn problem(&self) -> Option<CallProblem> {
        let status = self.status?;
        let name = self.name.is_empty().then_some("name");
        let needs_id = !self.without_id && self.kind != CallKind::LegacyFunction;
        let id = (needs_id && self.id.is_none()).then_some("id");
        let missing: Vec<_> = name.into_iter().chain(id).collect();
        let arguments = self.verdict();
        let offset = match arguments {
            Verdict::Truncated => Some(self.arguments.len()),
            Verdict::Concatenated { offset }
            | Verdict::Invalid { offset }
            | Verdict::TooDeep { offset } => Some(offset),
            Verdict::Complete | Verdict::EmptyAsObject | Verdict::Repaired => None,
        };
        let problem = CallProblem {
            call_index: self.call_index,
            missing,
            status,
            offset,
            fault: self.fault(arguments),
            has_arguments: !self.arguments.is_empty(),
        };
        (!problem.missing.is_empty() || problem.fault.is_some()).then_some(problem)
    }

    fn fault(&self, arguments: Verdict) -> Option<&'static str> {
        match arguments {
            Verdict::Truncated if self.arguments.trim().is_empty() => {
                Some("the choice was cut before any arguments arrived")
            }
            Verdict::Truncated if self.kind == CallKind::Custom => {
                Some("the choice was cut, so the input may be incomplete")
            }
            Verdict::Truncated if self.lacks_arguments() => {
                Some("the choice was cut, so the arguments may be incomplete")
            }
            Verdict::Truncated => Some("the arguments end inside their JSON"),
            Verdict::Concatenated { .. } => Some("the arguments are several JSON values"),
            Verdict::Invalid { .. } => Some("the arguments are no JSON"),
            Verdict::TooDeep { .. } => Some("the arguments are nested too deeply"),
            Verdict::Complete | Verdict::EmptyAsObject | Verdict::Repaired => None,
        }
    }
}

/// An object with `message`, `missing` and `offset`.
impl Serialize for CallProblem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("CallProblem", 3)?;
        object.serialize_field("message", &self.to_string())?;
        object.serialize_field("missing", &self.missing)?;
        object.serialize_field("offset", &self.offset)?;
        object.end()
    }
}

impl fmt::Display for CallProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool call {}", self.call_index)?;
        for (field, word) in self.missing.iter().zip(["no ", " and no "]) {
            let lead = match (word, self.has_arguments) {
                ("no ", false) => " has ",
                ("no ", true) => " has arguments but ",
                _ => "",
            };
            write!(f, "{lead}{word}{field}")?;
        }
        if let Some(fault) = self.fault {
            let lead = if self.missing.is_empty() {
                ": "
            } else {
                ", and "
            };
            write!(f, "{lead}{fault}")?;
        }
        match self.offset {
            Some(offset) => write!(f, " (at byte {offset})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for CallProblem {}

#[cfg(test)]
mod tests {
    use super::{CallIndex, CallKind, CallStatus, ToolCall};

    fn call(id: Option<&str>, name: &str, arguments: &str) -> ToolCall {
        let kind = CallKind::Function;
        ToolCall {
            call_index: CallIndex(1),
            wire_index: Some(0),
            id: id.map(Into::into),
            name: name.into(),
            kind,
            arguments: arguments.into(),
            status: Some(CallStatus::check(kind, id, name, arguments)),
            extra: Vec::new(),
            without_id: false,
        }
    }

    #[track_caller]
    fn check(id: Option<&str>, name: &str, arguments: &str, expected: &str) {
        let problem = call(id, name, arguments).problem();
        assert_eq!(
            problem.map_or_else(String::new, |p| p.to_string()),
            expected
        );
    }

    #[test]
    fn d15_no_id_is_missing_where_calls_have_none() {
        let without_id = |arguments| ToolCall {
            without_id: true,
            ..call(None, "f", arguments)
        };
        assert_eq!(without_id("{}").problem(), None);
        let problem = without_id("{").problem().unwrap();
        assert!(problem.missing.is_empty(), "{problem}");
    }

    #[test]
    fn every_missing_field_is_named() {
        check(
            None,
            "",
            "{}",
            "tool call 1 has arguments but no name and no id",
        );
        check(None, "", "", "tool call 1 has no name and no id");
        check(None, "f", "", "tool call 1 has no id");
        check(Some("c"), "", "", "tool call 1 has no name");
        check(
            None,
            "f",
            "{\"a\":",
            "tool call 1 has arguments but no id, and the arguments end inside their JSON (at byte 5)",
        );
    }

    #[test]
    fn a_fault_names_its_byte_and_never_the_payload() {
        let check = |arguments, expected| check(Some("c"), "f", arguments, expected);
        check("{\"a\":1}", "");
        check("", "");
        check("{\"a\":\"x\ny\"}", "");
        check(
            "{\"a\":\"se",
            "tool call 1: the arguments end inside their JSON (at byte 8)",
        );
        check(
            "{\"a\":1} {\"b\":2}",
            "tool call 1: the arguments are several JSON values (at byte 8)",
        );
        check(
            "{\"a\":1}<b>",
            "tool call 1: the arguments are no JSON (at byte 7)",
        );
        check(
            "secret",
            "tool call 1: the arguments are no JSON (at byte 0)",
        );
        check(
            "{\"a\":\"\\d\"}",
            "tool call 1: the arguments are no JSON (at byte 7)",
        );
        check(
            "{\"a\":\"\n\n\",\n!}",
            "tool call 1: the arguments are no JSON (at byte 11)",
        );
        check(
            &"[".repeat(200),
            "tool call 1: the arguments are nested too deeply (at byte 127)",
        );
    }

    #[test]
    fn an_open_call_has_no_problem_and_its_json_is_complete() {
        let mut cut = call(None, "f", "{");
        let json = r#"{"message":"tool call 1 has arguments but no id, and the arguments end inside their JSON (at byte 1)","missing":["id"],"offset":1}"#;
        let problem = cut.problem().expect("a problem");
        assert_eq!(serde_json::to_string(&problem).expect("JSON"), json);
        cut.status = None;
        assert_eq!(cut.problem(), None);
        assert_eq!(call(Some("c"), "f", "{}").problem(), None);
    }
}
