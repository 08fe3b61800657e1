//! Prints the calls of one choice as lines of indented JSON, one call after the other, although they stream in parallel.

use unbraid::{CallIndex, CallKind, CallStatus, ToolCall};

use super::cut::{Line, LineCutter, LineKind};
use crate::{json::StreamIndenter, printable::printable};

/// The lines of the calls of one choice.
///
/// The first call is printed as it streams. A further call waits until those before it are complete. The end of the choice
/// releases everything that still waits.
#[derive(Debug, Default)]
pub(crate) struct CallLines {
    /// Whether long lines are cut at a width.
    wraps: bool,
    /// In order of appearance.
    calls: Vec<PendingCall>,
    /// The position of the call that is printed now.
    current: usize,
}

/// A call whose lines are not all printed yet.
#[derive(Debug)]
struct PendingCall {
    kind: CallKind,
    indenter: StreamIndenter,
    /// The name, followed by the indented arguments.
    cutter: LineCutter,
    has_arguments: bool,
    /// Complete lines that wait for the calls before this one.
    ready: Vec<Line>,
}

impl PendingCall {
    fn new(name: &str, kind: CallKind, wraps: bool) -> Self {
        let mut cutter = LineCutter::wrapping(wraps);
        let name = if name.is_empty() { "?" } else { name };
        Self {
            kind,
            indenter: StreamIndenter::new(kind),
            // Escaped here already, because a line end in the name would begin a new line.
            ready: cutter.push(LineKind::ToolCall, &printable(name)),
            cutter,
            has_arguments: false,
        }
    }

    /// Whether no further line is expected. Only the end of the choice shows whether a legacy call repeats another one
    /// (T37), so a legacy call waits for it.
    fn is_complete(&self) -> bool {
        self.kind != CallKind::LegacyFunction && self.indenter.is_complete()
    }

    fn push(&mut self, fragment: &str) {
        let mut text = String::new();
        self.indenter.push(fragment, &mut text);
        if !self.has_arguments && !text.is_empty() {
            self.has_arguments = true;
            self.push_text(" ");
        }
        self.push_text(&text);
    }

    fn push_text(&mut self, text: &str) {
        self.ready
            .extend(self.cutter.push(LineKind::ToolCall, text));
    }

    /// Returns the remaining lines, with the status if the arguments are not complete as they are.
    fn finish(mut self, status: Option<CallStatus>) -> Vec<Line> {
        let status = match status {
            None | Some(CallStatus::Complete | CallStatus::EmptyAsObject) => None,
            Some(status) => Some(status),
        };
        if let Some(status) = status {
            self.push_text(&format!(" ({status})"));
        }
        let mut lines = self.ready;
        lines.extend(self.cutter.finish());
        lines
    }
}

impl CallLines {
    /// Creates the lines of a choice without calls. Long lines are cut at a width if it `wraps`.
    pub(crate) fn wrapping(wraps: bool) -> Self {
        Self {
            wraps,
            ..Self::default()
        }
    }

    /// Starts a call, and returns the lines that can be printed.
    pub(crate) fn start(&mut self, name: &str, kind: CallKind) -> Vec<Line> {
        let call = PendingCall::new(name, kind, self.wraps);
        self.calls.push(call);
        self.release()
    }

    /// Adds the next fragment of a call's arguments, and returns the lines that can be printed.
    pub(crate) fn push(&mut self, call_index: CallIndex, fragment: &str) -> Vec<Line> {
        if let Some(call) = self.calls.get_mut(call_index.0 as usize) {
            call.push(fragment);
        }
        self.release()
    }

    /// Returns the rest of the current call if it is complete, because text follows it.
    pub(crate) fn finish_current(&mut self) -> Vec<Line> {
        let mut lines = self.release();
        if let Some(call) = self.calls.get_mut(self.current).filter(|c| c.is_complete()) {
            lines.extend(call.cutter.finish());
            self.current += 1;
            lines.extend(self.release());
        }
        lines
    }

    /// Ends the choice with these final calls, and returns all remaining lines.
    ///
    /// `text` is the incomplete line of the choice's text. It began after the current call, and is placed there.
    pub(crate) fn finish(&mut self, calls: &[ToolCall], text: Option<Line>) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut text = text.into_iter();
        for (position, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if position > self.current {
                lines.extend(text.by_ref());
            }
            // The message omits a legacy call that repeats another one (T37), and so do these lines.
            let known = calls
                .iter()
                .find(|known| known.call_index.0 as usize == position);
            if let Some(known) = known {
                lines.extend(call.finish(known.status));
            }
        }
        lines.extend(text);
        lines
    }

    /// Takes the ready lines of the current call, and moves on to the next call while the current one is complete.
    fn release(&mut self) -> Vec<Line> {
        let count = self.calls.len();
        let mut released = Vec::new();
        while let Some(call) = self.calls.get_mut(self.current) {
            // The lines of a legacy call wait for the end of the choice, which shows whether it is a repetition (T37).
            if call.kind == CallKind::LegacyFunction {
                break;
            }
            released.append(&mut call.ready);
            if !call.is_complete() || self.current + 1 == count {
                break;
            }
            released.extend(call.cutter.finish());
            self.current += 1;
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use unbraid::{CallKind, Config, Demux};

    use super::{CallLines, Line, LineKind};
    use unbraid::CallIndex;

    const FUNCTION: CallKind = CallKind::Function;

    #[track_caller]
    fn check(lines: Vec<Line>, expected: &[&str]) {
        let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        assert_eq!(lines, expected);
    }

    /// The final calls of a choice with these deltas.
    fn final_calls(deltas: &[&str]) -> Vec<unbraid::ToolCall> {
        let mut demux = Demux::new(Config::default());
        for delta in deltas {
            demux.feed(format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n").as_bytes());
        }
        demux.finish();
        let choice = demux.choices().next().unwrap();
        choice.message().tool_calls
    }

    #[test]
    fn lines_are_released_when_they_are_complete() {
        let mut calls = CallLines::default();
        check(calls.start("f", FUNCTION), &[]);
        check(calls.push(CallIndex(0), "{\"a\""), &["f {"]);
        check(calls.push(CallIndex(0), ":1,"), &[]);
        check(
            calls.push(CallIndex(0), "\"b\":2}"),
            &["  \"a\": 1,", "  \"b\": 2"],
        );
    }

    #[test]
    fn a_parallel_call_waits_for_the_call_before_it() {
        let mut calls = CallLines::default();
        calls.start("f", FUNCTION);
        check(calls.push(CallIndex(0), "{\"a\":"), &["f {"]);
        check(calls.start("g", FUNCTION), &[]);
        check(calls.push(CallIndex(1), "{\"b\":2,"), &[]);
        check(calls.push(CallIndex(0), "1}"), &["  \"a\": 1", "}", "g {"]);
        check(calls.push(CallIndex(1), "\"c\":3"), &["  \"b\": 2,"]);
    }

    #[test]
    fn text_after_a_call_is_printed_after_its_lines() {
        let text = |text: &str| {
            Some(Line {
                kind: LineKind::Content,
                text: text.into(),
            })
        };
        let mut calls = CallLines::default();
        calls.start("f", FUNCTION);
        check(calls.push(CallIndex(0), "[1]"), &["f [", "  1"]);
        check(calls.finish_current(), &["]"]);
        calls.start("g", FUNCTION);
        calls.push(CallIndex(1), "[2");
        calls.start("h", FUNCTION);
        let known = final_calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"[2"}}]}"#,
            r#"{"tool_calls":[{"index":2,"id":"c","function":{"name":"h"}}]}"#,
        ]);
        check(
            calls.finish(&known, text("so")),
            &["  2 (truncated)", "so", "h (truncated)"],
        );
        check(CallLines::default().finish(&[], text("so")), &["so"]);
    }

    #[test]
    fn a_repeated_legacy_call_is_printed_once() {
        let known = final_calls(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"f","arguments":"{}"}}"#,
        ]);
        assert_eq!(known.len(), 1);
        let mut calls = CallLines::default();
        calls.start("f", FUNCTION);
        calls.start("f", CallKind::LegacyFunction);
        calls.push(CallIndex(0), "{}");
        check(calls.push(CallIndex(1), "{}"), &[]);
        check(calls.finish(&known, None), &[]); // its only line was released when it was complete
    }

    #[test]
    fn control_characters_in_names_and_arguments_that_are_not_json_are_printable() {
        let mut calls = CallLines::default();
        check(calls.start("a\nb", FUNCTION), &[]);
        check(calls.push(CallIndex(0), "ls -l\nrm"), &["a\\nb ls -l"]);
        check(calls.start("", FUNCTION), &[]);
    }
}
