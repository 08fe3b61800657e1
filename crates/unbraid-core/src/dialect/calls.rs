//! Calls of a message: their ordinals, and which of them have arguments.

use std::borrow::Cow;

use super::{
    reader::{Output, is_cut},
    seen::{Rest, Seen},
};
use crate::{
    Fragment, ToolCallUpdate,
    json::{Verdict, check},
    limits::{MAX_ENTRIES, MAX_NAME_BYTES},
};

/// Gives the calls of a choice their ordinals, which are the index in their updates (D12).
#[derive(Default)]
pub(crate) struct Calls {
    count: i64,
    /// Calls that ended without arguments.
    empty: Vec<i64>,
}

/// One call.
#[derive(Clone, Default)]
pub(crate) struct Call {
    pub(crate) ordinal: i64,
    /// What its start said about it; `None` if a fragment of its arguments came first.
    pub(crate) start: Option<CallStart>,
    /// What has arrived of the arguments.
    pub(crate) arguments: Seen,
    /// The complete arguments that the start of the call brought. They count if no fragment follows (A07, D13).
    initial: Option<String>,
}

/// Longer arguments of a start are reported at once, because many calls may hold theirs.
const MAX_INITIAL: usize = 64 * 1024;

/// A block with a call, of the client or the server, that has stopped.
pub(crate) enum Stopped {
    /// A call, which goes on with the next fragment of its arguments.
    Call(Call),
    /// A tool that the server ran, which the message already has.
    Object,
}

/// The start of a call.
#[derive(Clone)]
pub(crate) struct CallStart {
    /// The id, by which a second start of the same call is recognized.
    id: Option<String>,
    name: Option<String>,
}

impl CallStart {
    pub(crate) fn new(id: Option<&str>, name: Option<&Fragment<'_>>) -> Self {
        let id = id.and_then(Self::kept);
        let name = name.and_then(|name| Self::kept(&name.text));
        Self { id, name }
    }

    /// A text to compare others with, unless it is empty or too long to keep.
    fn kept(text: &str) -> Option<String> {
        let is_kept = !text.is_empty() && text.len() <= MAX_NAME_BYTES;
        is_kept.then(|| text.to_owned())
    }
}

impl Calls {
    pub(crate) fn open(&mut self) -> Call {
        let ordinal = self.count;
        self.count += 1;
        Call {
            ordinal,
            ..Call::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The call is complete. Without arguments it waits for the finish reason, which says whether they were cut (D14).
    pub(crate) fn close(&mut self, choice: u32, call: &mut Call, output: &mut Output<'_>) {
        call.flush(choice, output);
        if call.arguments.is_empty() && self.empty.len() < MAX_ENTRIES {
            self.empty.push(call.ordinal);
        }
    }

    /// The call that goes on with a delta after its stop; `None` for a tool of the server, to which nothing can be added.
    pub(crate) fn reopen(&mut self, stopped: Stopped, output: &mut Output<'_>) -> Option<Call> {
        let Stopped::Call(call) = stopped else {
            output.warn(
                "A8",
                "a delta of a tool of the server that had stopped was skipped",
            );
            return None;
        };
        output.warn("A8", "a delta of a block that had stopped");
        self.empty.retain(|ordinal| *ordinal != call.ordinal);
        Some(call)
    }

    /// The choice finishes: calls without arguments have an empty object of them, unless the answer was cut.
    pub(crate) fn finish(&mut self, choice: u32, reason: &str, output: &mut Output<'_>) {
        let empty = std::mem::take(&mut self.empty);
        if is_cut(reason) {
            return;
        }
        for ordinal in empty {
            output.arguments(choice, ordinal, Some("{}".into()));
        }
    }
}

impl Call {
    /// Reports what the start of the call says.
    pub(crate) fn begin<'a>(
        &mut self,
        choice: u32,
        header: ToolCallUpdate<'a>,
        output: &mut Output<'a>,
    ) {
        self.start = Some(CallStart::new(header.id.as_deref(), header.name.as_ref()));
        let wire_index = Some(self.ordinal);
        output.call(
            choice,
            ToolCallUpdate {
                wire_index,
                ..header
            },
        );
    }

    /// Whether a start with this id, at the index of this open call, is its own start: one that comes after a fragment of the
    /// arguments, or a second time.
    pub(crate) fn has_start(&self, id: Option<&str>) -> bool {
        match &self.start {
            None => true,
            Some(start) => id.is_some() && start.id.as_deref() == id,
        }
    }

    /// The id, if its start has said it.
    pub(crate) fn id(&self) -> Option<&str> {
        self.start.as_ref().and_then(|start| start.id.as_deref())
    }

    /// Whether an id, with the name beside it, is that of another call: one with another id, or another name where this call has
    /// no id (T7).
    pub(crate) fn is_other(&self, id: Option<&str>, name: Option<&str>) -> bool {
        let own_name = self.start.as_ref().and_then(|start| start.name.as_deref());
        match (self.id(), id) {
            (Some(own), Some(id)) => own != id,
            (None, Some(_)) => own_name.zip(name).is_some_and(|(own, name)| own != name),
            (_, None) => false,
        }
    }

    /// Takes the id from a later event of the call, if its start had none.
    pub(crate) fn fill_id<'a>(
        &mut self,
        choice: u32,
        id: Option<Cow<'a, str>>,
        output: &mut Output<'a>,
    ) {
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return;
        };
        if let Some(start) = self.start.as_mut().filter(|start| start.id.is_none()) {
            start.id = CallStart::kept(&id);
            let wire_index = Some(self.ordinal);
            let id = Some(id);
            output.call(
                choice,
                ToolCallUpdate {
                    wire_index,
                    id,
                    ..ToolCallUpdate::default()
                },
            );
        }
    }

    /// Takes the name from a later event of the call, if its start had none.
    pub(crate) fn fill_name<'a>(
        &mut self,
        choice: u32,
        name: Option<Fragment<'a>>,
        output: &mut Output<'a>,
    ) {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return;
        };
        if let Some(start) = self.start.as_mut().filter(|start| start.name.is_none()) {
            start.name = CallStart::kept(&name.text);
            let update = ToolCallUpdate::default().with_wire_index(self.ordinal);
            output.call(choice, update.with_name(name));
        }
    }

    /// Takes what the start of the call has of its arguments. An empty object is a placeholder. A complete one waits: if fragments
    /// follow, these count (D13). They may also repeat another complete value, as which the text of a custom tool counts.
    pub(crate) fn append_of_start<'a>(
        &mut self,
        choice: u32,
        first: Option<Fragment<'a>>,
        is_custom: bool,
        output: &mut Output<'a>,
    ) {
        let is_placeholder = |first: &Fragment<'_>| !is_custom && first.text.trim() == "{}";
        let Some(first) = first.filter(|first| !is_placeholder(first)) else {
            return;
        };
        let is_whole = is_custom || check(&first.text) == Verdict::Complete;
        let can_wait = !is_custom && is_object(&first.text) && first.len() <= MAX_INITIAL;
        match (is_whole, can_wait) {
            (true, true) => self.initial = Some(first.text.into_owned()),
            (true, false) => self.append_whole(choice, first, output),
            (false, _) => self.append(choice, Some(first), output),
        }
    }

    /// Appends arguments that fragments may repeat.
    fn append_whole<'a>(&mut self, choice: u32, whole: Fragment<'a>, output: &mut Output<'a>) {
        self.append(choice, Some(whole.clone()), output);
        self.arguments.note_ahead(&whole);
    }

    /// Holds the arguments that the start of the call has, unless others have arrived (A07).
    pub(crate) fn hold_initial(&mut self, first: Option<Fragment<'_>>) {
        if !self.has_arguments() {
            self.initial = first.map(|first| first.text.into_owned());
        }
    }

    /// Whether arguments have arrived, in fragments or in the start of the call.
    pub(crate) fn has_arguments(&self) -> bool {
        !self.arguments.is_empty() || self.initial.is_some()
    }

    /// Whether the next fragment has to be compared with what a complete value has brought.
    pub(crate) fn compares_next(&self) -> bool {
        self.initial.is_some() || self.arguments.is_ahead()
    }

    /// Appends a piece to the arguments.
    pub(crate) fn append<'a>(
        &mut self,
        choice: u32,
        piece: Option<Fragment<'a>>,
        output: &mut Output<'a>,
    ) {
        let Some(mut piece) = piece.filter(|piece| !piece.is_empty()) else {
            return;
        };
        if self.initial.is_some() && piece.text.trim_ascii().is_empty() {
            return; // white space replaces no arguments
        }
        self.initial = None;
        if self.arguments.is_ahead() {
            let Some(rest) = self.arguments.unrepeated(piece) else {
                return;
            };
            piece = rest;
            output.warn("D13", "a complete value differs from its fragments");
        }
        self.arguments.push(&piece);
        output.arguments(choice, self.ordinal, Some(piece));
    }

    /// Takes a piece of the arguments, which are reported elsewhere.
    pub(crate) fn note(&mut self, piece: &str) {
        self.arguments.push(&Fragment::from(piece));
    }

    /// Reports the arguments of the call's start, if no fragment followed.
    pub(crate) fn flush(&mut self, choice: u32, output: &mut Output<'_>) {
        if let Some(initial) = self.initial.take() {
            self.append_whole(choice, initial.into(), output);
        }
    }

    /// Compares the complete arguments with those of the start or of the fragments, and reports what was lost (D13); true if
    /// something was.
    pub(crate) fn complete(&mut self, choice: u32, whole: &str, output: &mut Output<'_>) -> bool {
        self.flush(choice, output);
        match self.arguments.rest(whole) {
            Rest::Nothing => false,
            Rest::Missing(rest) => {
                let rest = rest.into_owned();
                self.arguments.push(&rest);
                self.arguments.note_ahead(&rest);
                output.arguments(choice, self.ordinal, Some(rest));
                true
            }
            Rest::Differs => {
                output.warn("D13", "a complete value differs from its fragments");
                false
            }
        }
    }
}

/// Whether complete JSON is an object.
fn is_object(json: &str) -> bool {
    json.trim_ascii_start().starts_with('{')
}

#[cfg(test)]
mod tests;
