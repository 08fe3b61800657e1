//! The calls of one choice as lines: indented JSON, one call behind the other, although they stream in parallel.

use unbraid::{Call, CallKind, CallStatus};

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
    pub(crate) fn push(&mut self, call: u32, fragment: &str) -> Vec<Line> {
        if let Some(typed) = self.calls.get_mut(call as usize) {
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
    pub(crate) fn end(&mut self, calls: &[Call], text: Option<Line>) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut text = text.into_iter();
        for (ordinal, typed) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if ordinal > self.front {
                lines.extend(text.by_ref());
            }
            // One that is told twice is left out of the message, and of these lines (T37).
            let told = calls.iter().find(|call| call.call as usize == ordinal);
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
