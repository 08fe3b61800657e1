//! How far one call is: what its records and the names of later calls make of it.

use super::super::{Kind, Moment, Record, Transcript};
use crate::{
    CallIndex, CallKind, CallStatus, ChoiceError, EventIndex, JsonErrorKind, ReadyPolicy, ToolCall,
    tool_call::{Input, ReadyMachine, ReadyState, reason_cuts},
};

/// How far one call is.
#[derive(Debug, Clone)]
pub(super) struct CallProgress {
    pub(super) call_index: CallIndex,
    pub(super) machine: ReadyMachine,
    /// The last moment up to which the names of later calls were applied.
    applied: Moment,
    /// The first name of a later call after that.
    next_call: Option<Moment>,
    ready: Option<ReadyAt>,
    /// The event that brought more of it.
    pub(super) late_event: EventIndex,
}

/// When a call was ready.
#[derive(Debug, Clone, Copy)]
struct ReadyAt {
    moment: Moment,
    /// How many records belong to what was ready.
    records: usize,
    is_end: bool,
}

impl CallProgress {
    /// The call whose start is this record.
    pub(super) fn new(
        transcript: &Transcript,
        seq: usize,
        start: &Record,
        policy: ReadyPolicy,
    ) -> Self {
        let entry = transcript.calls.get(start.number as usize);
        let kind = entry.map_or(CallKind::Function, |entry| entry.announced_kind);
        let mut progress = Self {
            call_index: CallIndex(start.number),
            machine: ReadyMachine::new(policy, kind),
            applied: after(seq),
            next_call: None,
            ready: None,
            late_event: EventIndex::default(),
        };
        progress.find_next_call(transcript);
        progress
    }

    /// Finds the first name of a later call that was not applied. Only a name that has arrived since can change the result.
    pub(super) fn find_next_call(&mut self, transcript: &Transcript) {
        let later = transcript.calls.iter().skip(self.call_index.0 as usize + 1);
        let names = later.filter_map(|entry| entry.named);
        self.next_call = names.filter(|named| *named > self.applied).min();
    }

    /// Applies the names of later calls that arrived before record `seq`.
    pub(super) fn apply_next_calls(&mut self, transcript: &Transcript, seq: usize) {
        while let Some(named) = self.next_call.filter(|named| named.records <= seq) {
            let ready = ReadyAt {
                moment: named,
                records: named.records,
                is_end: false,
            };
            self.input(Input::NextCall, ready);
            self.applied = named;
            self.find_next_call(transcript);
        }
    }

    /// Applies a record after the call's start, and returns how many bytes were read.
    pub(super) fn apply(&mut self, transcript: &Transcript, seq: usize, record: &Record) -> usize {
        self.apply_next_calls(transcript, seq);
        let mut read = 0;
        let input = match record.kind {
            Kind::CallArguments if record.number == self.call_index.0 => {
                let text = transcript.text_of(seq);
                read = text.len();
                Input::Arguments(text)
            }
            Kind::Finish => Input::Finish {
                cut: transcript.finish_reason().is_some_and(reason_cuts),
            },
            Kind::End => Input::End,
            Kind::CallArguments | Kind::CallStart | Kind::CallDone => return 0,
            Kind::Start | Kind::Role | Kind::Content | Kind::Reasoning | Kind::Refusal => return 0,
            Kind::ContentDone | Kind::ReasoningDone | Kind::RefusalDone => return 0,
            Kind::Audio | Kind::Logprobs | Kind::Metadata | Kind::Warning => return 0,
        };
        let ready = ReadyAt {
            moment: after(seq),
            records: seq + 1,
            is_end: record.kind == Kind::End,
        };
        let was_late = self.machine.state() == ReadyState::Late;
        self.input(input, ready);
        if !was_late && self.machine.state() == ReadyState::Late {
            self.late_event = record.event;
        }
        read
    }

    fn input(&mut self, input: Input<'_>, ready: ReadyAt) {
        self.machine.apply(input);
        if self.machine.state() == ReadyState::Ready {
            self.ready.get_or_insert(ready);
        }
    }

    /// A name that changed after the call was ready makes it another call.
    pub(super) fn note_rename(&mut self, transcript: &Transcript) {
        let entry = transcript.calls.get(self.call_index.0 as usize);
        let renamed = entry.and_then(|entry| entry.renamed);
        if let (Some(renamed), Some(ready), ReadyState::Ready) =
            (renamed, self.ready, self.machine.state())
            && renamed > ready.moment
        {
            self.late_event = renamed.event;
            self.machine.change();
        }
    }

    pub(super) fn late_fragment(&self) -> JsonErrorKind {
        JsonErrorKind::LateFragment {
            bytes: self.machine.bytes(),
            event_index: self.late_event,
        }
    }

    /// The call as of the moment at which it was ready.
    pub(super) fn call(&self, transcript: &Transcript) -> Result<ToolCall, JsonErrorKind> {
        let ready = self.ready.ok_or(JsonErrorKind::Truncated { bytes: 0 })?;
        if ready.is_end
            && let Some(error) = transcript.end_error()
        {
            return Err(error.into());
        }
        let is_cut = transcript.is_cut(self.call_index);
        let is_cut = is_cut.filter(|_| ready.is_end);
        let is_cut = is_cut.unwrap_or_else(|| self.machine.is_cut());
        let call = transcript.call_until(self.call_index, ready.records, is_cut);
        let call = call.ok_or(JsonErrorKind::Truncated { bytes: 0 })?;
        match call.status {
            Some(CallStatus::Truncated | CallStatus::Concatenated | CallStatus::Invalid) => {
                Err(call.fault_kind())
            }
            Some(CallStatus::MissingName) => Err(JsonErrorKind::MissingName),
            Some(
                CallStatus::Complete
                | CallStatus::EmptyAsObject
                | CallStatus::Repaired
                | CallStatus::MissingId,
            )
            | None => Ok(call),
        }
    }
}

/// The moment after a record: before every name that arrives later, and after every name that arrived before.
fn after(seq: usize) -> Moment {
    Moment {
        records: seq,
        event: EventIndex(u64::MAX),
    }
}

impl Transcript {
    /// The error that the end of the choice is, if it is one.
    fn end_error(&self) -> Option<ChoiceError> {
        let is_error = self.end().is_some_and(crate::ChoiceEnd::is_error);
        (is_error || self.discarded)
            .then(|| self.result()?.err())
            .flatten()
    }

    /// A call with the arguments of the first `count` records.
    fn call_until(&self, call_index: CallIndex, count: usize, is_cut: bool) -> Option<ToolCall> {
        let entry = self.calls.get(call_index.0 as usize)?;
        let is_own =
            |record: &Record| record.kind == Kind::CallArguments && record.number == call_index.0;
        let records = self.records.iter().enumerate().take(count);
        let texts = records.filter(|(_, record)| is_own(record));
        let arguments: String = texts.map(|(seq, _)| self.text_of(seq)).collect();
        let status = entry.check(&arguments, is_cut);
        let mut call = entry.call(call_index, arguments, None);
        call.status = Some(status);
        Some(call)
    }
}
