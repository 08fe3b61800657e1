//! Calls: whole parts, and calls whose arguments are streamed by path (G08, G09).

use super::{
    Candidate,
    partial_args::{self, PartialArgs},
};
use crate::{
    ToolCallUpdate,
    dialect::reader::{Output, arguments_of, entries, fragment, other_fields, text},
    limits::MAX_EVENT_BYTES,
    node::Node,
};

/// A call whose arguments arrive in several parts.
pub(super) struct StreamedCall {
    ordinal: i64,
    id: Option<String>,
    name: String,
    arguments: PartialArgs,
    /// Whether a piece was skipped, so that the arguments are not what the server has sent.
    is_damaged: bool,
}

/// How many calls may be open at once.
const MAX_OPEN: usize = 64;

impl Candidate {
    pub(super) fn function_call<'a>(
        &mut self,
        part: &Node<'a>,
        call: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let continues = call.get("willContinue").and_then(Node::as_bool) == Some(true);
        let pieces = entries(call.get("partialArgs"));
        let (id, name) = (text(call, "id"), text(call, "name"));
        // Beside a name, no arguments are a call without any. Without one, they stand for absent ones.
        let args = call.get("args").filter(|args| args.is_set());
        let mut open = self.open_call(id.as_deref(), name.as_deref());
        if open.is_none() {
            let has_pieces = !pieces.iter().all(partial_args::is_empty);
            if name.is_none() && args.is_none() && !has_pieces {
                return; // an empty piece, or the empty object that ends a call which had ended
            }
            if name.is_none() && args.is_none() {
                output.warn("A8", "arguments of a call that was not started");
            }
            self.close_before(id.as_deref(), output);
            let ordinal = self.open(part, call, output);
            if !continues && pieces.is_empty() {
                let whole = arguments_of(call.get("args"));
                let whole = whole.unwrap_or_else(|| "{}".into());
                return output.arguments(self.index, ordinal, Some(whole));
            }
            open = Some(self.streamed.len());
            self.streamed.push(StreamedCall {
                ordinal,
                id: id.map(Into::into),
                name: name.unwrap_or_default().into_owned(),
                arguments: PartialArgs::default(),
                is_damaged: false,
            });
        }
        let held: usize = self.streamed.iter().map(|call| call.arguments.len()).sum();
        let Some((at, streamed)) = open.and_then(|at| Some((at, self.streamed.get_mut(at)?)))
        else {
            return;
        };
        streamed.read(args, pieces, held <= MAX_EVENT_BYTES, output);
        if !continues {
            let call = self.streamed.remove(at);
            let is_whole = !call.is_damaged;
            call.close(self.index, is_whole, output);
        }
    }

    /// The open call to which a part belongs: the one with its id, or without an id and a name the last one.
    fn open_call(&self, id: Option<&str>, name: Option<&str>) -> Option<usize> {
        let last = self.streamed.len().checked_sub(1);
        let Some(id) = id else {
            return last.filter(|_| name.is_none());
        };
        let has_id = |call: &StreamedCall| call.id.as_deref() == Some(id);
        match self.streamed.iter().rposition(has_id) {
            Some(at) => {
                let known = self.streamed.get(at)?;
                Some(at).filter(|_| name.is_none_or(|name| name == known.name))
            }
            // The part that has started the call had no id.
            None => last
                .filter(|at| self.streamed.get(*at).is_some_and(|call| call.id.is_none()))
                .filter(|_| name.is_none()),
        }
    }

    /// The next call ends those before it, unless their ids differ.
    fn close_before(&mut self, id: Option<&str>, output: &mut Output<'_>) {
        let is_other = |call: &StreamedCall| match (&call.id, id) {
            (Some(known), Some(id)) => known != id,
            _ => false,
        };
        let mut at = 0;
        while let Some(call) = self.streamed.get(at) {
            if is_other(call) && self.streamed.len() - at < MAX_OPEN {
                at += 1;
                continue;
            }
            self.streamed.remove(at).end(self.index, true, output);
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
}

impl StreamedCall {
    /// Adds the arguments of a part.
    fn read<'a>(
        &mut self,
        args: Option<&Node<'a>>,
        pieces: &[Node<'a>],
        has_room: bool,
        output: &mut Output<'a>,
    ) {
        let mut are_set = args.is_none_or(|args| self.arguments.set_all(args));
        for piece in pieces {
            are_set &= has_room && self.arguments.add(piece);
        }
        if !are_set {
            self.is_damaged = true;
            output.warn(
                "G9",
                "a piece of arguments with an invalid path, or beyond the limits, was skipped",
            );
        }
    }

    /// The call ends without a part that says so.
    pub(super) fn end(self, choice: u32, is_whole: bool, output: &mut Output<'_>) {
        let is_whole = is_whole && !self.is_damaged && !self.arguments.has_open_string();
        self.close(choice, is_whole, output);
    }

    /// Reports the arguments. Those of a call that was cut have no end (D14).
    fn close(self, choice: u32, is_whole: bool, output: &mut Output<'_>) {
        let mut json = self.arguments.to_json();
        if !is_whole {
            json.pop();
        }
        output.arguments(choice, self.ordinal, Some(json.into()));
    }
}
