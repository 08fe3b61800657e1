//! The message that the events add up to.

use std::sync::Arc;

use super::{CallEntry, Kind, Level, Record, Transcript};
use crate::{
    CallIndex, ChoiceEnd, CompletionKind, ToolCall,
    message::Message,
    tool_call::{Cut, cut_of},
};

impl Kind {
    /// The bytes of an event's text that the model wrote as text.
    pub(super) fn model_bytes(self, text: &str) -> u64 {
        match self {
            Self::Content
            | Self::Reasoning
            | Self::Refusal
            | Self::CallStart
            | Self::CallArguments => text.len() as u64,
            Self::Start | Self::Role | Self::CallDone => 0,
            Self::ReasoningDone | Self::ContentDone | Self::RefusalDone => 0,
            // The bytes of audio say nothing about its tokens.
            Self::Audio => 0,
            Self::Logprobs | Self::Metadata | Self::Finish | Self::Warning | Self::End => 0,
        }
    }
}

impl Transcript {
    /// The message so far, including updates after the end (F6).
    #[must_use]
    pub fn message(&self) -> Message {
        let mut message = Message {
            role: self.role_or_default(),
            ..Message::default()
        };
        for (seq, record) in self.records.iter().enumerate() {
            let text = self.text_of(seq);
            match record.kind {
                Kind::Content => message.content.push_str(text),
                Kind::Reasoning => message.reasoning.push_str(text),
                Kind::Refusal => message.refusal.push_str(text),
                Kind::CallArguments
                | Kind::Start
                | Kind::Role
                | Kind::ReasoningDone
                | Kind::ContentDone
                | Kind::RefusalDone
                | Kind::CallStart
                | Kind::CallDone => {}
                Kind::Audio => {
                    // The machine has already warned about data that is not base64.
                    let _decoded: bool = message.audio.get_or_insert_default().absorb(text);
                }
                Kind::Logprobs | Kind::Metadata | Kind::Finish | Kind::Warning | Kind::End => {}
            }
        }
        self.replace_late_halves(&mut message);
        let entries = (0..).zip(&self.calls).zip(self.arguments());
        let calls = entries.map(|((call, entry), arguments)| {
            let is_cut = self.is_cut(CallIndex(call));
            entry.call(CallIndex(call), arguments, is_cut)
        });
        message.tool_calls = calls.collect();
        message.drop_repeated_function_call();
        // A source may be known although its text was dropped: of a full message that repeats the deltas (E21).
        let source = self.reasoning_source.clone();
        message.reasoning_source = source.filter(|_| !message.reasoning.is_empty());
        message.extra = self.fields(Level::Message);
        message
    }

    /// One call so far, also a call that the message leaves out because it arrived in two forms (T37).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{CallIndex, ChoiceIndex, Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":7,\"function\":{\"name\":\"add\"}}]}}]}\n\n");
    /// let choice = demux.choice(ChoiceIndex(0)).unwrap();
    /// assert_eq!(&*choice.call(CallIndex(0)).unwrap().name, "add");
    /// assert!(choice.call(CallIndex(7)).is_none(), "7 is the server's index");
    /// ```
    #[must_use]
    pub fn call(&self, call_index: CallIndex) -> Option<ToolCall> {
        let entry = self.calls.get(call_index.0 as usize)?;
        let mut arguments: String = self
            .texts(|r| r.kind == Kind::CallArguments && r.number == call_index.0)
            .collect();
        arguments.push_str(&entry.waiting);
        arguments.extend(self.late_half(entry));
        Some(entry.call(call_index, arguments, self.is_cut(call_index)))
    }

    /// Whether the end of the choice may have cut a call; `None` while it is open.
    pub(super) fn is_cut(&self, call: CallIndex) -> Option<bool> {
        self.end().map(|_| call >= self.first_cut)
    }

    /// The first call that may be incomplete if this ends the choice, and with it all later ones. What the machine has held back
    /// until the end is not written yet.
    pub(crate) fn first_cut_by(&self, end: &ChoiceEnd) -> CallIndex {
        let next = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        CallIndex(match cut_of(end) {
            Cut::None => u32::MAX,
            Cut::Last => self.last_call().unwrap_or(next),
            Cut::Any => 0,
        })
    }

    /// The call that the model wrote last, if it wrote nothing after it but white space.
    fn last_call(&self) -> Option<u32> {
        let records = self.records.iter().enumerate().rev();
        let mut written = records.filter_map(|(seq, record)| match record.kind {
            Kind::CallStart | Kind::CallArguments => Some(Some(record.number)),
            Kind::Content | Kind::Reasoning | Kind::Refusal => {
                let is_blank = self.text_of(seq).trim().is_empty();
                (!is_blank).then_some(None)
            }
            Kind::Start | Kind::Role | Kind::CallDone | Kind::Audio | Kind::Logprobs => None,
            Kind::ReasoningDone | Kind::ContentDone | Kind::RefusalDone => None,
            Kind::Metadata | Kind::Finish | Kind::Warning | Kind::End => None,
        });
        written.next().flatten()
    }

    /// The id of a call, once it has arrived. The cost does not depend on the length of the arguments.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{CallIndex, ChoiceIndex, Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":7,\"id\":\"c1\",\"function\":{\"name\":\"add\"}}]}}]}\n\n");
    /// let choice = demux.choice(ChoiceIndex(0)).unwrap();
    /// assert_eq!(choice.call_id(CallIndex(0)).map(|id| &**id), Some("c1"));
    /// ```
    #[must_use]
    pub fn call_id(&self, call_index: CallIndex) -> Option<&Arc<str>> {
        self.calls.get(call_index.0 as usize)?.id.as_ref()
    }

    /// C5: servers that name no role mean an assistant.
    fn role_or_default(&self) -> Option<Arc<str>> {
        let default = || (self.kind == CompletionKind::Chat).then(|| Arc::from("assistant"));
        self.role.clone().or_else(default)
    }

    /// The raw arguments of every call so far.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        self.add_arguments(0, &mut arguments);
        arguments
    }

    /// Adds the raw arguments of the calls that a list does not have yet, whose first record is this one or follows it. Returns how
    /// many records there are.
    pub(crate) fn add_arguments(&self, from: usize, arguments: &mut Vec<String>) -> usize {
        let known = arguments.len();
        arguments.resize(self.calls.len(), String::new());
        let records = self.records.iter().enumerate().skip(from);
        let is_new = |r: &Record| r.kind == Kind::CallArguments && r.number as usize >= known;
        for (seq, record) in records.filter(|(_, record)| is_new(record)) {
            if let Some(arguments) = arguments.get_mut(record.number as usize) {
                arguments.push_str(self.text_of(seq));
            }
        }
        let new = arguments.iter_mut().zip(&self.calls).skip(known);
        for (arguments, entry) in new {
            arguments.push_str(&entry.waiting);
            arguments.extend(self.late_half(entry));
        }
        self.records.len()
    }

    /// Half a character that came after the end is replaced, unless its other half follows (C14).
    fn replace_late_halves(&self, message: &mut Message) {
        let texts = [
            Some(&mut message.reasoning),
            Some(&mut message.content),
            Some(&mut message.refusal),
            message.audio.as_mut().map(|audio| &mut audio.transcript),
        ];
        let texts = texts.into_iter().zip(self.late_halves);
        for (text, is_half) in texts.filter_map(|(text, is_half)| Some((text?, is_half))) {
            text.extend(is_half.then_some(char::REPLACEMENT_CHARACTER));
        }
    }

    /// The same of a call's arguments: a half before the end was replaced there.
    fn late_half(&self, entry: &CallEntry) -> Option<char> {
        let is_half = self.end.is_some() && entry.high.is_some();
        is_half.then_some(char::REPLACEMENT_CHARACTER)
    }

    /// The half of a character at the end of a call's arguments.
    pub(crate) fn waiting_half_of_call(&self, call: CallIndex) -> Option<u16> {
        let entry = self.calls.get(call.0 as usize)?;
        entry.high.filter(|_| self.end.is_none())
    }

    /// How many bytes that the model wrote were discarded.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Config, Demux};
    /// # let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// let mut copy = demux.choice(ChoiceIndex(0)).unwrap().clone();
    /// copy.discard();
    /// assert_eq!(copy.discarded_bytes(), 2);
    /// ```
    #[must_use]
    pub fn discarded_bytes(&self) -> u64 {
        self.discarded_bytes
    }

    /// The bytes that the model wrote.
    pub(super) fn model_bytes(&self) -> u64 {
        let records = self.records.iter().enumerate();
        let emitted: u64 = records
            .map(|(seq, record)| record.kind.model_bytes(self.text_of(seq)))
            .sum();
        let waiting = self.calls.iter().map(|entry| entry.waiting.len() as u64);
        emitted + waiting.sum::<u64>()
    }

    fn texts(&self, wanted: impl Fn(&Record) -> bool) -> impl Iterator<Item = &str> {
        self.records
            .iter()
            .enumerate()
            .filter(move |(_, r)| wanted(r))
            .map(|(seq, _)| self.text_of(seq))
    }

    /// The raw log probabilities, one JSON object for each delta.
    pub(crate) fn logprobs(&self) -> impl Iterator<Item = &str> {
        self.texts(|r| r.kind == Kind::Logprobs)
    }

    /// Whether the choice has an event of this kind.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.records.iter().any(|r| r.kind == kind)
    }
}

#[cfg(test)]
mod tests;
