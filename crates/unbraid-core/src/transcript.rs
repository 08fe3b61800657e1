//! `Transcript`: the events of one choice, as one growing text and a record for each event.
//!
//! A delta costs no allocation of its own. [`ChoiceMachine`](crate::choice::ChoiceMachine) is the only writer. Readers see the
//! first `event_count()` records as events, and the message that all records add up to.

mod call_entry;
mod fields;
mod gather;
mod message;
mod objects;
mod ready;
mod reasons;
mod write;

use std::sync::Arc;

pub(crate) use call_entry::{CallEntry, Moment};
pub(crate) use fields::{Field, Level};
pub use gather::{EventFilter, TextKind};
pub(crate) use objects::{is_void, merged, raw_pairs};
pub use ready::ReadyCursor;
use reasons::Reasons;

use crate::{
    CallIndex, ChoiceEnd, ChoiceError, ChoiceIndex, CompletionKind, Event, EventIndex,
    FinishReason, ReasoningSource, Sequenced, Warning, event::Position, message::ChoiceOutcome,
    prefetch::prefetch, warning::Warnings,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Start,
    Role,
    Content,
    ContentDone,
    Reasoning,
    ReasoningDone,
    Refusal,
    RefusalDone,
    CallStart,
    CallArguments,
    CallDone,
    Audio,
    Logprobs,
    Metadata,
    Finish,
    Warning,
    End,
}

/// One event. Its text begins where the text of the record before it ends.
#[derive(Debug, Clone, Copy)]
struct Record {
    event: EventIndex,
    update: u32,
    text_end: u32,
    /// The ordinal of the call or of the warning, or the count of fields inside the delta.
    number: u32,
    kind: Kind,
}

/// The events of one choice, and everything else that is known about it.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
/// let choice = demux.choice(ChoiceIndex(3)).unwrap();
/// assert_eq!(choice.message().content, "Hi");
/// assert_eq!(choice.event(1).unwrap().event.as_str(), "content.delta");
/// ```
///
/// Its methods return what has arrived so far. The [`outcome`](Self::outcome) exists only after the end:
///
/// ```
/// # use unbraid_core::{ChoiceIndex, CompletionKind, Config, Demux, FinishReason};
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"rank\":1}]}\n\n");
/// let choice = demux.choice(ChoiceIndex(0)).unwrap();
/// assert_eq!((choice.kind(), choice.role().map(|role| &**role)), (CompletionKind::Chat, Some("assistant")));
/// assert_eq!((&*choice.extra()[0].0, &*choice.extra()[0].1), ("rank", "1"));
/// assert!(choice.finish_reason().is_none() && choice.end().is_none() && choice.outcome().is_none());
///
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"eos\"}]}\n\ndata: [DONE]\n\n");
/// let choice = demux.choice(ChoiceIndex(0)).unwrap();
/// assert_eq!(choice.finish_reason(), Some(&FinishReason::Other("eos".into())));
/// assert_eq!(&*choice.finish_reasons()[0], "eos");
/// assert_eq!(choice.end().unwrap(), &choice.outcome().unwrap().end);
/// assert_eq!((choice.warnings().len(), choice.warnings_dropped()), (0, 0));
/// ```
#[derive(Clone)]
// What a delta of text needs comes first, as in the router.
#[repr(C)]
pub struct Transcript {
    text: String,
    records: Vec<Record>,
    finish: Option<FinishReason>,
    role: Option<Arc<str>>,
    /// The end, and how many events readers see: records after it belong to the message only.
    end: Option<(ChoiceEnd, usize)>,
    /// The first call that the end may have cut. The records do not show it any more: what was held back until the end follows them.
    first_cut: CallIndex,
    discarded: bool,
    index: ChoiceIndex,
    kind: CompletionKind,
    warnings: Warnings,
    calls: Vec<CallEntry>,
    reasoning_source: Option<ReasoningSource>,
    reasons: Reasons,
    extra: Vec<Field>,
    /// The last emitted values of the deltas' fields. The records contain all of them.
    delta_extra: Vec<(Box<str>, String)>,
    /// Which texts (reasoning, content, refusal, the transcript of the audio) end in half a character that arrived after the end.
    /// Its other half may still follow.
    late_halves: [bool; 4],
    /// Bytes that the model wrote and that were discarded; an estimate of usage needs them.
    discarded_bytes: u64,
}

impl Transcript {
    /// An empty transcript.
    #[must_use]
    pub fn new(index: ChoiceIndex, kind: CompletionKind) -> Self {
        Self {
            index,
            kind,
            text: String::new(),
            records: Vec::new(),
            warnings: Warnings::default(),
            calls: Vec::new(),
            role: None,
            reasoning_source: None,
            finish: None,
            reasons: Reasons::default(),
            extra: Vec::new(),
            delta_extra: Vec::new(),
            end: None,
            first_cut: CallIndex(u32::MAX),
            late_halves: [false; 4],
            discarded: false,
            discarded_bytes: 0,
        }
    }

    /// Loads where the next event is written.
    #[doc(hidden)]
    #[inline]
    pub fn prefetch(&self) {
        let record = self.records.last().map_or(0, |record| record.text_end);
        let text = self.text.as_bytes().last().copied().unwrap_or_default();
        prefetch(u64::from(record) + u64::from(text));
    }

    /// The choice.
    #[must_use]
    pub fn index(&self) -> ChoiceIndex {
        self.index
    }

    /// Chat or text completion.
    #[must_use]
    pub fn kind(&self) -> CompletionKind {
        self.kind
    }

    /// The role, once it has arrived. Text completions have none.
    #[must_use]
    pub fn role(&self) -> Option<&Arc<str>> {
        self.role.as_ref()
    }

    /// The first finish reason.
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        self.finish.as_ref()
    }

    /// How the choice ended; `None` while it is open.
    #[must_use]
    pub fn end(&self) -> Option<&ChoiceEnd> {
        self.end.as_ref().map(|(end, _)| end)
    }

    /// How many events there are. The count never shrinks, except by [`discard`](Self::discard).
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Config, Demux};
    /// # let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().event_count(), 2, "the start and the text");
    /// ```
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.end
            .as_ref()
            .map_or(self.records.len(), |(_, visible)| *visible)
    }

    /// The event with this number, counted from 0; `None` if it has not happened or was discarded.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// let choice = demux.choice(ChoiceIndex(0)).unwrap();
    /// let names: Vec<&str> = (0..choice.event_count()).filter_map(|seq| Some(choice.event(seq)?.event.as_str())).collect();
    /// assert_eq!(names, ["choice.start", "content.delta", "finish", "content.done", "end"]);
    /// ```
    #[must_use]
    #[inline(never)] // measured: inlined, the event is built field by field and copied, which costs more than the call
    pub fn event(&self, seq: usize) -> Option<Sequenced<&str>> {
        let record = self.records.get(seq).filter(|_| seq < self.event_count())?;
        let text = self.text_of(seq);
        let sequenced = |event| Sequenced {
            choice: Some(self.index),
            seq: seq as u64,
            position: Position {
                event: record.event,
                update: record.update,
            },
            event,
        };
        // Nearly all events are of these two kinds. A cold function builds the others.
        Some(match record.kind {
            Kind::Content => sequenced(Event::Content(text)),
            Kind::CallArguments => sequenced(Event::ToolCallArguments {
                call_index: CallIndex(record.number),
                text,
            }),
            _ => sequenced(self.event_of(record, text)?),
        })
    }

    /// The text deltas so far, without a copy.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// let choice = demux.choice(ChoiceIndex(0)).unwrap();
    /// assert_eq!(choice.content().map(str::len).sum::<usize>(), 2);
    /// ```
    pub fn content(&self) -> impl Iterator<Item = &str> {
        (0..self.event_count()).filter_map(|seq| match self.event(seq)?.event {
            Event::Content(delta) => Some(delta),
            _ => None,
        })
    }

    #[inline]
    fn text_of(&self, seq: usize) -> &str {
        let start = seq
            .checked_sub(1)
            .and_then(|last| self.records.get(last))
            .map_or(0, |r| r.text_end as usize);
        let end = self.records.get(seq).map_or(0, |r| r.text_end as usize);
        self.text.get(start..end).unwrap_or("")
    }

    #[cold]
    fn event_of<'t>(&'t self, record: &Record, text: &'t str) -> Option<Event<&'t str>> {
        let entry = self.calls.get(record.number as usize);
        Some(match record.kind {
            Kind::Start => Event::Start {
                role: Some(text).filter(|role| !role.is_empty()),
            },
            Kind::Role => Event::Role(text),
            Kind::Content => Event::Content(text),
            Kind::ContentDone => Event::ContentDone,
            Kind::Reasoning => Event::Reasoning(text),
            Kind::ReasoningDone => Event::ReasoningDone,
            Kind::Refusal => Event::Refusal(text),
            Kind::RefusalDone => Event::RefusalDone,
            Kind::CallStart => {
                let entry = entry?;
                Event::ToolCallStart {
                    call_index: CallIndex(record.number),
                    wire_index: entry.announced_index,
                    id: entry.announced_id.as_deref(),
                    name: text,
                    kind: entry.announced_kind,
                }
            }
            Kind::CallArguments => Event::ToolCallArguments {
                call_index: CallIndex(record.number),
                text,
            },
            Kind::CallDone => Event::ToolCallDone {
                call_index: CallIndex(record.number),
                status: entry?.status?,
            },
            Kind::Audio => Event::Audio(text),
            Kind::Logprobs => Event::Logprobs(text),
            Kind::Metadata => Event::ExtraFields(text),
            Kind::Finish => Event::Finish(text),
            Kind::Warning => {
                Event::Warning(self.warnings.kept().get(record.number as usize)?.clone())
            }
            Kind::End => Event::End(self.end()?.clone()),
        })
    }

    /// The deviations that were tolerated while the choice was open.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.kept()
    }

    /// How many further warnings there were, beyond [`Limits::warnings`](crate::Limits::warnings).
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        self.warnings.dropped()
    }

    /// Unknown fields of the choice, the last value of each, as raw JSON. [`ChoiceOutcome::extra`] has the whole of those that are
    /// lists or objects, and the fields of the deltas are in [`Message::extra`](crate::Message::extra).
    #[must_use]
    pub fn extra(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.extra
    }

    /// Every finish reason that arrived, in order, each text once (F5).
    #[must_use]
    pub fn finish_reasons(&self) -> &[Arc<str>] {
        self.reasons.as_slice()
    }

    /// The outcome of the choice, once it has ended, with an error or without.
    #[must_use]
    pub fn outcome(&self) -> Option<ChoiceOutcome> {
        let (end, _) = self.end.as_ref()?;
        Some(ChoiceOutcome {
            choice: self.index,
            end: end.clone(),
            message: self.message(),
            finish_reason: self.finish.clone(),
            finish_reasons: self.finish_reasons().to_vec(),
            // Most choices have none, and the fields of others are collected from all events.
            extra: match self.extra.is_empty() {
                true => Vec::new(),
                false => self.fields(Level::Choice),
            },
            role_inferred: self.role.is_none() && self.kind == CompletionKind::Chat,
            warnings: self.warnings.kept().to_vec(),
            discarded: self.discarded,
        })
    }

    /// Whether the choice was [discarded](Self::discard).
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, CompletionKind, Transcript};
    /// let mut transcript = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
    /// assert!(!transcript.is_discarded());
    /// transcript.discard();
    /// assert!(transcript.is_discarded());
    /// ```
    #[must_use]
    pub fn is_discarded(&self) -> bool {
        self.discarded
    }

    /// The outcome of the choice, once it has ended, as a result: the error contains what had arrived.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, ChoiceEnd, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hal\"}}]}\n\n");
    /// demux.finish();
    /// let error = demux.choice(ChoiceIndex(0)).unwrap().result().unwrap().unwrap_err();
    /// assert!(matches!(error.end(), ChoiceEnd::Interrupted));
    /// assert_eq!(error.partial().message.content, "Hal");
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChoiceError`] for every end but `finished` and `done_without_finish`, and for a choice that was discarded.
    #[must_use]
    pub fn result(&self) -> Option<Result<ChoiceOutcome, ChoiceError>> {
        let outcome = self.outcome()?;
        Some(if outcome.end.is_error() || outcome.discarded {
            Err(ChoiceError::new(outcome))
        } else {
            Ok(outcome)
        })
    }

    /// Drops the text and the events, and those that follow. Only their count of bytes is kept, for an estimate of usage.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Config, Demux};
    /// # let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// let mut copy = demux.choice(ChoiceIndex(0)).unwrap().clone();
    /// copy.discard();
    /// assert!(copy.is_discarded() && copy.message().content.is_empty());
    /// assert_eq!(copy.discarded_bytes(), 2);
    /// ```
    pub fn discard(&mut self) {
        self.discarded = true;
        self.discarded_bytes += self.model_bytes();
        self.text = String::new();
        self.records = Vec::new();
        self.calls = Vec::new();
        self.late_halves = [false; 4];
        self.reasoning_source = None;
        self.extra = Vec::new();
        self.delta_extra = Vec::new();
        if let Some((_, visible)) = &mut self.end {
            *visible = 0;
        }
    }
}
