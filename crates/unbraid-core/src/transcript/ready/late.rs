//! The calls of which more arrived after they could have been run, for the warnings at the end of a choice.

use super::{
    super::{CallEntry, Kind, Record, Transcript},
    progress::CallProgress,
};
use crate::{CallIndex, EventIndex, ReadyPolicy, Warning, tool_call::ReadyState};

/// A call of which more arrived after a policy could have made it ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LateCall {
    pub(crate) call_index: CallIndex,
    policy: ReadyPolicy,
    event: EventIndex,
}

impl LateCall {
    pub(crate) fn to_warning(self) -> Warning {
        let (code, after) = match self.policy {
            ReadyPolicy::AtEnd | ReadyPolicy::NextCall => {
                ("T28", "the next call or the finish reason")
            }
            ReadyPolicy::ValidJson => ("T27", "whole arguments"),
        };
        let message = format!(
            "more of tool call {} arrived after {after}",
            self.call_index
        );
        Warning::new(code, self.event, message)
    }
}

impl Transcript {
    /// The calls of which more arrived after they could have been run, in order. The statuses are known, and the end is not
    /// written yet.
    ///
    /// Text after whole JSON is never JSON, and text after the finish reason is rare. So nearly every call is ruled out without
    /// reading it again.
    pub(crate) fn late_calls(&self) -> Vec<LateCall> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        let mut candidates: Vec<bool> = self.calls.iter().map(CallEntry::may_be_late).collect();
        let finish = self
            .records
            .iter()
            .rposition(|record| record.kind == Kind::Finish);
        let after_finish = finish.and_then(|finish| self.records.get(finish..));
        for record in after_finish.unwrap_or_default() {
            if let (Kind::CallArguments, Some(call)) =
                (record.kind, candidates.get_mut(record.number as usize))
            {
                *call = true;
            }
        }
        if !candidates.contains(&true) {
            return Vec::new();
        }
        let mut followed: Vec<Option<Followed>> = vec![None; self.calls.len()];
        for (seq, record) in self.records.iter().enumerate() {
            self.follow(seq, record, &candidates, &mut followed);
        }
        let late = followed
            .iter_mut()
            .flatten()
            .filter_map(|call| call.late(self));
        late.collect()
    }

    /// Applies a record to the calls that it concerns.
    fn follow(
        &self,
        seq: usize,
        record: &Record,
        candidates: &[bool],
        followed: &mut [Option<Followed>],
    ) {
        let number = record.number as usize;
        match record.kind {
            Kind::CallStart if candidates.get(number) == Some(&true) => {
                if let Some(call) = followed.get_mut(number) {
                    *call = Some(Followed::new(self, seq, record));
                }
            }
            Kind::CallArguments => {
                if let Some(call) = followed.get_mut(number).and_then(Option::as_mut) {
                    call.apply(self, seq, record);
                }
            }
            Kind::Finish => {
                let calls = followed.iter_mut().flatten();
                calls.for_each(|call| call.apply(self, seq, record));
            }
            Kind::CallStart | Kind::CallDone => {}
            Kind::Start | Kind::Role | Kind::Content | Kind::Reasoning | Kind::Refusal => {}
            Kind::ContentDone | Kind::ReasoningDone | Kind::RefusalDone => {}
            Kind::Audio | Kind::Logprobs | Kind::Metadata | Kind::Warning | Kind::End => {}
        }
    }
}

/// A call that is read again, once for each early policy.
#[derive(Debug, Clone)]
struct Followed {
    next_call: CallProgress,
    valid_json: CallProgress,
}

impl Followed {
    fn new(transcript: &Transcript, seq: usize, start: &Record) -> Self {
        let progress = |policy| CallProgress::new(transcript, seq, start, policy);
        Self {
            next_call: progress(ReadyPolicy::NextCall),
            valid_json: progress(ReadyPolicy::ValidJson),
        }
    }

    fn apply(&mut self, transcript: &Transcript, seq: usize, record: &Record) {
        self.next_call.apply(transcript, seq, record);
        self.valid_json.apply(transcript, seq, record);
    }

    /// T28 if even the safer policy could have run the call too early, otherwise T27.
    fn late(&mut self, transcript: &Transcript) -> Option<LateCall> {
        let policies = [
            (&mut self.next_call, ReadyPolicy::NextCall),
            (&mut self.valid_json, ReadyPolicy::ValidJson),
        ];
        policies.into_iter().find_map(|(progress, policy)| {
            progress.note_rename(transcript);
            (progress.machine.state() == ReadyState::Late).then_some(LateCall {
                call_index: progress.call_index,
                policy,
                event: progress.late_event,
            })
        })
    }
}
