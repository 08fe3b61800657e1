//! The calls of one choice as lines: indented JSON, one call behind the other, although they stream in parallel.

use unbraid::{CallIndex, CallKind, CallStatus, ToolCall};

use super::lines::{Line, Lines, Voice};
use crate::{indent::Indenter, printable::printable};

/// Lays out the calls of one choice. The first call's lines are there as they are typed, those of a further call when
/// the ones before it are whole, and whatever is held back when the choice ends.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// In order of appearance.
    calls: Vec<Typed>,
    /// The call whose lines are printed now.
    front: usize,
}

#[derive(Debug)]
struct Typed {
    kind: CallKind,
    indenter: Indenter,
    /// Its name, and behind it what has come of its arguments.
    lines: Lines,
    begun: bool,
    /// Complete lines that wait for their turn.
    ready: Vec<Line>,
}

impl Typed {
    fn new(name: &str, kind: CallKind) -> Self {
        let mut lines = Lines::default();
        let name = if name.is_empty() { "?" } else { name };
        Self {
            kind,
            indenter: Indenter::new(kind),
            ready: lines.push(Voice::Call, &printable(name)),
            lines,
            begun: false,
        }
    }

    /// Whether no further line is expected. Whether it is told a second time shows at the end only (T37).
    fn is_over(&self) -> bool {
        self.kind != CallKind::LegacyFunction && self.indenter.is_whole()
    }

    fn push(&mut self, fragment: &str) {
        let mut text = String::new();
        self.indenter.push(fragment, &mut text);
        if !self.begun && !text.is_empty() {
            self.begun = true;
            self.add(" ");
        }
        self.add(&text);
    }

    fn add(&mut self, text: &str) {
        self.ready.extend(self.lines.push(Voice::Call, text));
    }

    /// The rest of it, with its status where that is worth a word.
    fn end(mut self, status: Option<CallStatus>) -> Vec<Line> {
        let status = match status {
            None | Some(CallStatus::Complete | CallStatus::EmptyAsObject) => None,
            Some(status) => Some(status),
        };
        if let Some(status) = status {
            self.add(&format!(" ({status})"));
        }
        let mut lines = self.ready;
        lines.extend(self.lines.end());
        lines
    }
}

impl Calls {
    /// A call has begun; gives the lines that are complete with it.
    pub(crate) fn start(&mut self, name: &str, kind: CallKind) -> Vec<Line> {
        self.calls.push(Typed::new(name, kind));
        self.release()
    }

    /// Takes the next fragment of a call's arguments.
    pub(crate) fn push(&mut self, call: CallIndex, fragment: &str) -> Vec<Line> {
        if let Some(typed) = self.calls.get_mut(call.0 as usize) {
            typed.push(fragment);
        }
        self.release()
    }

    /// Text follows: a call that is whole is printed to its end.
    pub(crate) fn pass(&mut self) -> Vec<Line> {
        let mut lines = self.release();
        if let Some(front) = self.calls.get_mut(self.front).filter(|f| f.is_over()) {
            lines.extend(front.lines.end());
            self.front += 1;
            lines.extend(self.release());
        }
        lines
    }

    /// The choice has ended with these calls; gives all lines that are left, and the text's where it began.
    pub(crate) fn end(&mut self, calls: &[ToolCall], text: Option<Line>) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut text = text.into_iter();
        for (ordinal, typed) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if ordinal > self.front {
                lines.extend(text.by_ref());
            }
            // One that is told twice is left out of the message, and of these lines (T37).
            let told = calls
                .iter()
                .find(|call| call.call_index.0 as usize == ordinal);
            lines.extend(
                told.map(|call| typed.end(call.status))
                    .into_iter()
                    .flatten(),
            );
        }
        lines.extend(text);
        lines
    }

    fn release(&mut self) -> Vec<Line> {
        let count = self.calls.len();
        let mut released = Vec::new();
        while let Some(front) = self.calls.get_mut(self.front) {
            if front.kind == CallKind::LegacyFunction {
                break;
            }
            released.append(&mut front.ready);
            if !front.is_over() || self.front + 1 == count {
                break;
            }
            released.extend(front.lines.end());
            self.front += 1;
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use unbraid::{CallIndex, CallKind, Config, Demux};

    use super::{Calls, Line, Voice};

    const FUNCTION: CallKind = CallKind::Function;

    #[track_caller]
    fn check(lines: Vec<Line>, expected: &[&str]) {
        let lines: Vec<String> = lines.into_iter().map(|line| line.text).collect();
        assert_eq!(lines, expected);
    }

    /// The calls of a choice that ends with these deltas.
    fn told(deltas: &[&str]) -> Vec<unbraid::ToolCall> {
        let mut demux = Demux::new(Config::default());
        for delta in deltas {
            demux.feed(format!("data: {{\"choices\":[{{\"delta\":{delta}}}]}}\n\n").as_bytes());
        }
        demux.finish();
        let choice = demux.choices().next().unwrap();
        choice.message().tool_calls
    }

    #[test]
    fn lines_come_as_they_are_complete() {
        let mut calls = Calls::default();
        check(calls.start("f", FUNCTION), &[]);
        check(calls.push(CallIndex(0), "{\"a\""), &["f {"]);
        check(calls.push(CallIndex(0), ":1,"), &[]);
        check(
            calls.push(CallIndex(0), "\"b\":2}"),
            &["  \"a\": 1,", "  \"b\": 2"],
        );
    }

    #[test]
    fn a_parallel_call_waits_until_the_one_before_it_is_whole() {
        let mut calls = Calls::default();
        calls.start("f", FUNCTION);
        check(calls.push(CallIndex(0), "{\"a\":"), &["f {"]);
        check(calls.start("g", FUNCTION), &[]);
        check(calls.push(CallIndex(1), "{\"b\":2,"), &[]);
        check(calls.push(CallIndex(0), "1}"), &["  \"a\": 1", "}", "g {"]);
        check(calls.push(CallIndex(1), "\"c\":3"), &["  \"b\": 2,"]);
    }

    #[test]
    fn text_behind_a_call_comes_behind_its_lines() {
        let text = |text: &str| {
            Some(Line {
                voice: Voice::Content,
                text: text.into(),
            })
        };
        let mut calls = Calls::default();
        calls.start("f", FUNCTION);
        check(calls.push(CallIndex(0), "[1]"), &["f [", "  1"]);
        check(calls.pass(), &["]"]);
        calls.start("g", FUNCTION);
        calls.push(CallIndex(1), "[2");
        calls.start("h", FUNCTION);
        let ends = told(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"[1]"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"[2"}}]}"#,
            r#"{"tool_calls":[{"index":2,"id":"c","function":{"name":"h"}}]}"#,
        ]);
        check(
            calls.end(&ends, text("so")),
            &["  2 (truncated)", "so", "h (truncated)"],
        );
        check(Calls::default().end(&[], text("so")), &["so"]);
    }

    #[test]
    fn a_call_that_is_told_twice_is_printed_once() {
        let ends = told(&[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"f","arguments":"{}"}}"#,
        ]);
        assert_eq!(ends.len(), 1);
        let mut calls = Calls::default();
        calls.start("f", FUNCTION);
        calls.start("f", CallKind::LegacyFunction);
        calls.push(CallIndex(0), "{}");
        check(calls.push(CallIndex(1), "{}"), &[]);
        check(calls.end(&ends, None), &[]); // its one line was there when it was whole
    }

    #[test]
    fn names_and_no_json_are_printed_as_they_can_be() {
        let mut calls = Calls::default();
        check(calls.start("a\nb", FUNCTION), &[]);
        check(calls.push(CallIndex(0), "ls -l\nrm"), &["a\\nb ls -l"]);
        check(calls.start("", FUNCTION), &[]);
    }
}
