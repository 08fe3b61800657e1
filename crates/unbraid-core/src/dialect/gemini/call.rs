//! Calls: whole parts, and calls whose arguments are streamed by path (G08, G09).

use super::{
    Candidate,
    partial_args::{self, PartialArgs},
};
use crate::{
    ToolCallUpdate,
    dialect::reader::{Output, arguments_of, entries, fragment, other_fields, text},
    node::Node,
};

/// A call whose arguments arrive by path.
#[derive(Default)]
pub(super) struct StreamedCall {
    ordinal: i64,
    arguments: PartialArgs,
}

impl Candidate {
    pub(super) fn function_call<'a>(
        &mut self,
        part: &Node<'a>,
        call: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let continues = call.get("willContinue").and_then(Node::as_bool) == Some(true);
        let pieces = entries(call.get("partialArgs"));
        let has_name = text(call, "name").is_some();
        // Beside a name, no arguments are a call without any. Without one, they stand for absent ones.
        let has_args = call.get("args").is_some_and(Node::is_set);
        if has_name || has_args {
            // The next call ends the one before.
            self.close_streamed(output);
            let ordinal = self.open(part, call, output);
            if !continues && pieces.is_empty() {
                let whole = arguments_of(call.get("args"));
                let whole = whole.unwrap_or_else(|| "{}".into());
                return output.arguments(self.index, ordinal, Some(whole));
            }
            self.streamed = Some(StreamedCall::new(ordinal));
        } else if self.streamed.is_none() && !pieces.iter().all(partial_args::is_empty) {
            output.warn("A8", "arguments of a call that was not started");
            let ordinal = self.open(part, call, output);
            self.streamed = Some(StreamedCall::new(ordinal));
        }
        let Some(streamed) = &mut self.streamed else {
            return; // an empty piece, or the empty object that ends a call which had ended
        };
        for piece in pieces {
            if !streamed.arguments.add(piece) {
                output.warn(
                    "G9",
                    "a piece of arguments with an invalid path was skipped",
                );
            }
        }
        if !continues {
            self.close_streamed(output);
        }
    }

    fn open<'a>(&mut self, part: &Node<'a>, call: &Node<'a>, output: &mut Output<'a>) -> i64 {
        const KNOWN: [&str; 5] = ["id", "name", "args", "partialArgs", "willContinue"];
        let ordinal = self.calls;
        self.calls += 1;
        let mut extra = other_fields(part, &["functionCall", "text"]);
        extra.append(&mut other_fields(call, &KNOWN));
        output.call(
            self.index,
            ToolCallUpdate {
                wire_index: Some(ordinal),
                id: text(call, "id"),
                name: fragment(call, "name"),
                without_id: true,
                extra,
                ..ToolCallUpdate::default()
            },
        );
        ordinal
    }

    fn close_streamed(&mut self, output: &mut Output<'_>) {
        if let Some(call) = self.streamed.take() {
            call.close(self.index, true, output);
        }
    }
}

impl StreamedCall {
    fn new(ordinal: i64) -> Self {
        Self {
            ordinal,
            arguments: PartialArgs::default(),
        }
    }

    /// Reports the arguments. Those of a call that was cut have no end (D14).
    pub(super) fn close(self, choice: u32, is_whole: bool, output: &mut Output<'_>) {
        let mut json = self.arguments.to_json();
        if !is_whole {
            json.pop();
        }
        output.arguments(choice, self.ordinal, Some(json.into()));
    }
}
