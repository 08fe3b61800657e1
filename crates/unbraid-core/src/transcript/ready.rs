//! When a call is ready to be run, read from the records of its choice.
//!
//! Readiness is a function of what the transcript keeps anyway: pieces of arguments, the finish reason and the end are
//! records, and a call notes when its name arrived. So a delta costs nothing more, and a cursor that starts late finds the
//! same moment.

mod late;
mod progress;

use super::{Kind, Transcript};
use crate::{CallIndex, JsonErrorKind, ReadyPolicy, ToolCall, tool_call::ReadyState};
use progress::CallProgress;

/// Follows one call of a transcript until it is ready to be run, and after that, until more of it arrives.
///
/// Each poll reads only what is new. A cursor that is created late finds the same moment as one that was polled after each
/// event, except that a call of which more has arrived since is an error at once.
///
/// # Examples
///
/// ```
/// use unbraid_core::{CallIndex, ChoiceIndex, Config, Demux, JsonErrorKind, ReadyCursor, ReadyPolicy};
///
/// let mut demux = Demux::new(Config::default());
/// let mut cursor = ReadyCursor::new(CallIndex(0), ReadyPolicy::NextCall);
/// let call = |rest: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{{rest}}}]}}}}]}}\n\n");
///
/// demux.feed(call(r#""index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}"#).as_bytes());
/// assert!(cursor.poll(demux.choice(ChoiceIndex(0)).unwrap()).is_none());
///
/// demux.feed(call(r#""index":1,"id":"b","function":{"name":"g","arguments":"{}"}"#).as_bytes());
/// let ready = cursor.poll(demux.choice(ChoiceIndex(0)).unwrap()).unwrap()?;
/// assert_eq!((&*ready.name, &*ready.arguments), ("f", r#"{"x":1}"#));
///
/// demux.feed(call(r#""index":0,"function":{"arguments":"{\"x\":2}"}"#).as_bytes()); // the server is not done with it
/// let error = cursor.poll(demux.choice(ChoiceIndex(0)).unwrap()).unwrap().unwrap_err();
/// assert!(matches!(error, JsonErrorKind::LateFragment { bytes: 7, .. }));
/// # Ok::<(), JsonErrorKind>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReadyCursor {
    call_index: CallIndex,
    policy: ReadyPolicy,
    /// The next record to read.
    next: usize,
    /// `None` until the call has started.
    progress: Option<CallProgress>,
    reported: Reported,
}

/// What a cursor has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    Nothing,
    Ready,
    /// An error, after which nothing follows.
    Error,
}

impl ReadyCursor {
    /// A cursor at the start of a call, which may not have started yet.
    #[must_use]
    pub fn new(call_index: CallIndex, policy: ReadyPolicy) -> Self {
        Self {
            call_index,
            policy,
            next: 0,
            progress: None,
            reported: Reported::Nothing,
        }
    }

    /// Reads on. Every call of this method must pass the transcript of the same choice.
    ///
    /// It returns the call once, when it is ready: with its arguments as of that moment, and with the status that they
    /// have. An id that arrives later (T12) is missing. Then it returns `None`, or once an error if more of the call
    /// arrives. `None` before that means that the call is not ready. A call that starts after the end of its choice (F6) is
    /// never ready.
    ///
    /// # Errors
    ///
    /// Once, and then nothing follows:
    ///
    /// - [`JsonErrorKind::LateFragment`] if more of the call arrived after it was ready;
    /// - at the end of the choice, for a call that was not ready before: [`JsonErrorKind::Choice`] if the end is an error
    ///   or the choice was discarded, otherwise what is wrong with the call: it has no name, or its arguments are
    ///   truncated, concatenated or invalid.
    ///
    /// A call without an id, and one that needs a repair, are not errors: their status reports it.
    ///
    /// # Examples
    ///
    /// See [`ReadyCursor`].
    pub fn poll(&mut self, transcript: &Transcript) -> Option<Result<ToolCall, JsonErrorKind>> {
        while !self.advance(transcript, usize::MAX) {}
        self.report(transcript)
    }

    /// Reads on until all is read or until more than `max` bytes of arguments were read; true if all is read.
    pub(crate) fn advance(&mut self, transcript: &Transcript, max: usize) -> bool {
        let mut read = 0;
        if let Some(progress) = &mut self.progress {
            progress.find_next_call(transcript);
        }
        for seq in self.next..transcript.records.len() {
            if read > max {
                return false;
            }
            self.next = seq + 1;
            let Some(record) = transcript.records.get(seq) else {
                break;
            };
            if record.kind == Kind::CallStart && record.number == self.call_index.0 {
                self.progress = Some(CallProgress::new(transcript, seq, record, self.policy));
            } else if let Some(progress) = &mut self.progress {
                read += progress.apply(transcript, seq, record);
            }
        }
        if let Some(progress) = &mut self.progress {
            progress.apply_next_calls(transcript, transcript.records.len());
        }
        true
    }

    /// What is to be returned, once all is read.
    pub(crate) fn report(
        &mut self,
        transcript: &Transcript,
    ) -> Option<Result<ToolCall, JsonErrorKind>> {
        if self.reported == Reported::Error {
            return None;
        }
        if transcript.is_discarded() && self.reported == Reported::Nothing {
            let error = transcript.result()?.err()?;
            self.reported = Reported::Error;
            return Some(Err(error.into()));
        }
        let progress = self.progress.as_mut()?;
        progress.note_rename(transcript);
        let result = match (progress.machine.state(), self.reported) {
            (ReadyState::Late, _) => Err(progress.late_fragment()),
            (ReadyState::Ready, Reported::Nothing) => progress.call(transcript),
            (ReadyState::Ready | ReadyState::Waiting, _) => return None,
        };
        self.reported = match result {
            Ok(_) => Reported::Ready,
            Err(_) => Reported::Error,
        };
        Some(result)
    }
}

#[cfg(test)]
mod tests;
