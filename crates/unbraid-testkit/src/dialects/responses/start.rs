//! The arguments of calls: in the start, in fragments, and complete (D13).

use serde_json::{Map, Value};

use super::{
    Reader,
    texts::{missing, unrepeated},
};
use crate::dialects::{arguments, text};

impl Reader {
    /// The start of a call, which may have a placeholder, its first fragment, or all of its arguments.
    pub(super) fn start_arguments(&mut self, at: usize, item: &Value) {
        let call = self.call(at);
        let first = arguments(&item["arguments"]);
        if self.initial.as_ref().is_some_and(|(held, _)| *held == call) || first.trim() == "{}" {
            return;
        }
        if is_object(&first) && self.choice.calls[call].arguments.is_empty() {
            self.initial = Some((call, first));
        } else {
            self.whole_call(at, item);
        }
    }

    /// A fragment. White space replaces nothing.
    pub(super) fn arguments(&mut self, call: usize, piece: &str) {
        let is_held = self.initial.as_ref().is_some_and(|(held, _)| *held == call);
        if is_held && piece.trim().is_empty() {
            return;
        }
        self.initial = self.initial.take().filter(|_| !is_held);
        let piece = unrepeated(self.calls_ahead.entry(call).or_default(), piece);
        self.choice.calls[call].arguments += &piece;
    }

    /// No fragment has replaced the arguments of a start before something else happened.
    pub(super) fn flush_initial(&mut self, except: Option<usize>) {
        let held = self.initial.take_if(|(call, _)| Some(*call) != except);
        if let Some((call, whole)) = held {
            self.complete_arguments(call, whole);
        }
    }

    pub(super) fn whole_call(&mut self, at: usize, item: &Value) {
        let call = self.call(at);
        let held = self.initial.take_if(|(held, _)| *held == call);
        if let Some((_, start)) = held {
            self.complete_arguments(call, start);
        }
        let whole = ["arguments", "input"].map(|key| text(item, key)).concat();
        self.complete_arguments(call, whole);
    }

    fn complete_arguments(&mut self, call: usize, whole: String) {
        let known = &mut self.choice.calls[call].arguments;
        if let Some(rest) = missing(&whole, known) {
            *known = whole;
            self.calls_ahead.entry(call).or_default().push_str(&rest);
        }
    }
}

/// Whether a text is a complete object.
pub(in crate::dialects) fn is_object(text: &str) -> bool {
    serde_json::from_str::<Map<String, Value>>(text).is_ok()
}
