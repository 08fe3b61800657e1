//! `ReadyPolicy`, and the state machine that decides when a call may be run.
//!
//! ```text
//!   Waiting --a moment that the policy allows--> Ready --more of its arguments--> Late
//! ```
//!
//! Before the end of the choice a moment counts only if the arguments are whole at that moment.

use super::CallKind;
use crate::json::{Scanner, Verdict, feed_scanner};

/// When a call may be run: at the end of its choice, or earlier.
///
/// No server marks the end of a call, so every earlier moment relies on a habit of servers. Each policy includes the
/// moments of the one before it, and the call is ready at the first of them. Before the end of the choice, a moment counts
/// only if the arguments are whole at that moment: JSON that shows its own end, or any text of a custom tool. A call
/// without arguments is whole at a finish reason that does not mean a cut, and not before. A call that is not whole waits
/// for the next moment.
///
/// If more of the arguments arrives after the moment, that is
/// [`JsonErrorKind::LateFragment`](crate::JsonErrorKind::LateFragment), and a warning at the end of the choice (T27, T28).
/// White space after whole JSON changes nothing and is not late.
/// [function-calls.md](https://github.com/unbraid/unbraid/blob/main/docs/function-calls.md) lists which servers break which
/// policy.
///
/// # Examples
///
/// ```
/// use unbraid_core::{CallIndex, ChoiceIndex, Config, Demux, ReadyCursor, ReadyPolicy};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}}]}"#);
/// demux.feed(b"\n\n");
/// let is_ready = |demux: &Demux, policy| {
///     let mut cursor = ReadyCursor::new(CallIndex(0), policy);
///     cursor.poll(demux.choice(ChoiceIndex(0)).unwrap()).is_some()
/// };
/// assert!(is_ready(&demux, ReadyPolicy::ValidJson));
/// assert!(!is_ready(&demux, ReadyPolicy::NextCall));
///
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n");
/// assert!(is_ready(&demux, ReadyPolicy::NextCall));
/// assert!(!is_ready(&demux, ReadyPolicy::AtEnd), "the choice is still open");
///
/// demux.feed(b"data: [DONE]\n\n");
/// assert!(is_ready(&demux, ReadyPolicy::default()));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReadyPolicy {
    /// At the end of the choice: the only moment after which nothing of the call can follow on any server that was seen.
    #[default]
    AtEnd,
    /// Also when the name of a later call of the choice arrives, and at the finish reason: servers write one call after the
    /// other.
    NextCall,
    /// Also when the arguments are one whole JSON object other than `{}`, which may be a placeholder (T22). It never makes the
    /// call of a custom tool ready.
    ValidJson,
}

impl ReadyPolicy {
    /// Whether calls may be ready before the end of the choice.
    pub(crate) fn is_early(self) -> bool {
        match self {
            Self::AtEnd => false,
            Self::NextCall | Self::ValidJson => true,
        }
    }
}

/// What happens to a call, as far as its readiness is concerned.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'t> {
    Arguments(&'t str),
    /// The name of a later call arrives.
    NextCall,
    /// The finish reason, and whether it means that the choice was cut.
    Finish {
        cut: bool,
    },
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadyState {
    Waiting,
    Ready,
    Late,
}

/// Decides when one call is ready. Its memory does not grow with the arguments.
#[derive(Debug, Clone)]
pub(crate) struct ReadyMachine {
    policy: ReadyPolicy,
    kind: CallKind,
    scanner: Scanner,
    /// Bytes of the arguments until the call was ready.
    bytes: usize,
    /// Whether the finish reason means a cut, if the call is ready by it.
    is_cut: bool,
    state: ReadyState,
}

impl ReadyMachine {
    pub(crate) fn new(policy: ReadyPolicy, kind: CallKind) -> Self {
        Self {
            policy,
            kind,
            scanner: Scanner::default(),
            bytes: 0,
            is_cut: false,
            state: ReadyState::Waiting,
        }
    }

    pub(crate) fn state(&self) -> ReadyState {
        self.state
    }

    /// Bytes of the arguments until the call was ready.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the call is ready by a finish reason that means a cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Marks a call that is ready as changed.
    pub(crate) fn change(&mut self) {
        self.state = ReadyState::Late;
    }

    pub(crate) fn apply(&mut self, input: Input<'_>) {
        self.state = match (self.state, input) {
            (ReadyState::Waiting, Input::Arguments(text)) => self.read(text),
            (ReadyState::Waiting, Input::NextCall) => self.ready_if(self.is_whole_at_next_call()),
            (ReadyState::Waiting, Input::Finish { cut }) => {
                self.is_cut = cut;
                self.ready_if(self.is_whole_at_finish(cut))
            }
            (ReadyState::Waiting, Input::End) => ReadyState::Ready,
            (ReadyState::Ready, Input::Arguments(text)) if !self.ignores(text) => ReadyState::Late,
            (
                state @ (ReadyState::Ready | ReadyState::Late),
                Input::Arguments(_) | Input::NextCall | Input::Finish { .. } | Input::End,
            ) => state,
        };
    }

    fn ready_if(&self, is_whole: bool) -> ReadyState {
        if self.policy.is_early() && is_whole {
            ReadyState::Ready
        } else {
            ReadyState::Waiting
        }
    }

    fn read(&mut self, text: &str) -> ReadyState {
        self.bytes += text.len();
        if self.policy.is_early() && self.is_json() {
            feed_scanner(&mut self.scanner, text);
        }
        let is_object = match self.policy {
            ReadyPolicy::AtEnd | ReadyPolicy::NextCall => false,
            ReadyPolicy::ValidJson => self.is_json() && self.scanner.is_one_object(),
        };
        self.ready_if(is_object)
    }

    fn is_whole_at_next_call(&self) -> bool {
        if self.is_json() {
            is_whole(self.scanner.verdict_if_cut())
        } else {
            self.bytes > 0
        }
    }

    fn is_whole_at_finish(&self, cut: bool) -> bool {
        match (self.is_json(), cut) {
            (true, true) => is_whole(self.scanner.verdict_if_cut()),
            (true, false) => is_whole(self.scanner.verdict()),
            (false, cut) => !cut,
        }
    }

    /// Whether this text after the call was ready changes nothing. Of the kinds of white space JSON allows four.
    fn ignores(&self, text: &str) -> bool {
        self.is_json()
            && text
                .bytes()
                .all(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
    }

    fn is_json(&self) -> bool {
        match self.kind {
            CallKind::Function | CallKind::LegacyFunction => true,
            CallKind::Custom => false,
        }
    }
}

fn is_whole(verdict: Verdict) -> bool {
    match verdict {
        Verdict::Complete | Verdict::EmptyAsObject | Verdict::Repaired => true,
        Verdict::Truncated
        | Verdict::Concatenated { .. }
        | Verdict::Invalid { .. }
        | Verdict::TooDeep { .. } => false,
    }
}

#[cfg(test)]
mod tests;
