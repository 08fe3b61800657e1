//! Calls of a message: their ordinals, and which of them have arguments.

use super::{
    reader::{Output, is_cut},
    seen::{Rest, Seen},
};
use crate::{Fragment, limits::MAX_ENTRIES};

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
    /// What has arrived of the arguments.
    pub(crate) arguments: Seen,
    /// The complete arguments that the start of the call brought. They count if no fragment follows (A07).
    pub(crate) initial: Option<String>,
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
    pub(crate) fn close(&mut self, choice: u32, mut call: Call, output: &mut Output<'_>) {
        call.flush(choice, output);
        if call.arguments.is_empty() && self.empty.len() < MAX_ENTRIES {
            self.empty.push(call.ordinal);
        }
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
    /// Appends a piece to the arguments.
    pub(crate) fn append<'a>(
        &mut self,
        choice: u32,
        piece: Option<Fragment<'a>>,
        output: &mut Output<'a>,
    ) {
        let Some(piece) = piece.filter(|piece| !piece.is_empty()) else {
            return;
        };
        self.initial = None;
        self.arguments.push(&piece);
        output.arguments(choice, self.ordinal, Some(piece));
    }

    /// Takes a piece of the arguments, which are reported elsewhere.
    pub(crate) fn note(&mut self, piece: &str) {
        self.initial = None;
        self.arguments.push(&Fragment::from(piece));
    }

    /// Reports the arguments of the call's start, if no fragment followed.
    pub(crate) fn flush(&mut self, choice: u32, output: &mut Output<'_>) {
        if let Some(initial) = self.initial.take() {
            self.append(choice, Some(initial.into()), output);
        }
    }

    /// Compares the complete arguments with the fragments, and reports what was lost (D13).
    pub(crate) fn complete(&mut self, choice: u32, whole: &str, output: &mut Output<'_>) {
        match self.arguments.rest(whole) {
            Rest::Nothing => {}
            Rest::Missing(rest) => {
                let rest = rest.into_owned();
                self.append(choice, Some(rest), output);
            }
            Rest::Differs => {
                output.warn("D13", "a complete value differs from its fragments");
            }
        }
    }
}
