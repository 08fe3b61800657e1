//! Everything that came of one choice: one growing text, a record for each event, and the little that is not text.
//!
//! No delta costs an allocation of its own. [`ChoiceMachine`](crate::choice::ChoiceMachine) is the only writer; readers see
//! records `0..visible()`, which are the choice's events, and the message that they add up to.

mod call_entry;
mod fields;
mod gather;
mod message;
mod write;

use std::sync::Arc;

pub(crate) use call_entry::CallEntry;
pub(crate) use fields::{Field, Level, list_inside, raw_pairs};
pub use gather::{EventFilter, TextKind};

use crate::{
    CallIndex, ChoiceEnd, ChoiceError, ChoiceIndex, CompletionKind, Event, EventIndex,
    FinishReason, Sequenced, Warning, event::Position, message::ChoiceOutcome, warning::Warnings,
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

/// One event: its kind, where its text ends (it begins where the last one ended), and a number that the kind explains.
#[derive(Debug, Clone, Copy)]
struct Record {
    event: EventIndex,
    update: u32,
    text_end: u32,
    number: u32,
    kind: Kind,
}

/// The record of one choice.
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
#[derive(Clone)]
pub struct Transcript {
    index: ChoiceIndex,
    shape: CompletionKind,
    text: String,
    records: Vec<Record>,
    warnings: Warnings,
    pub(crate) calls: Vec<CallEntry>,
    role: Option<Arc<str>>,
    finish: Option<FinishReason>,
    finish_raw: Vec<Arc<str>>,
    extra: Vec<Field>,
    /// What was last told of the deltas' fields; their values stand in the records.
    delta_extra: Vec<Field>,
    end: Option<(ChoiceEnd, usize)>,
    discarded: bool,
    /// Bytes of what the model wrote that were discarded: all that usage needs of them.
    discarded_bytes: u64,
}

impl Transcript {
    /// An empty record.
    #[must_use]
    pub fn new(index: ChoiceIndex, shape: CompletionKind) -> Self {
        Self {
            index,
            shape,
            text: String::new(),
            records: Vec::new(),
            warnings: Warnings::default(),
            calls: Vec::new(),
            role: None,
            finish: None,
            finish_raw: Vec::new(),
            extra: Vec::new(),
            delta_extra: Vec::new(),
            end: None,
            discarded: false,
            discarded_bytes: 0,
        }
    }

    /// The choice.
    #[must_use]
    pub fn index(&self) -> ChoiceIndex {
        self.index
    }

    /// Chat or text completion.
    #[must_use]
    pub fn kind(&self) -> CompletionKind {
        self.shape
    }

    /// The role, once it is known; text completions have none (C1, C5).
    #[must_use]
    pub fn role(&self) -> Option<&Arc<str>> {
        self.role.as_ref()
    }

    /// The first finish reason.
    #[must_use]
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        self.finish.as_ref()
    }

    /// How the choice ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<&ChoiceEnd> {
        self.end.as_ref().map(|(end, _)| end)
    }

    /// How many events there are to read; it never shrinks.
    #[must_use]
    pub fn event_count(&self) -> usize {
        self.end
            .as_ref()
            .map_or(self.records.len(), |(_, visible)| *visible)
    }

    /// The event of a number, counted from 0; `None` where it has not happened (or was discarded).
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
    #[inline(never)] // inlined, it is built piece by piece and copied, which takes longer than the call
    pub fn event(&self, seq: usize) -> Option<Sequenced<&str>> {
        let record = self.records.get(seq).filter(|_| seq < self.event_count())?;
        let text = self.text_of(seq);
        let stamped = |event| Sequenced {
            choice: Some(self.index),
            seq: seq as u64,
            position: Position {
                event: record.event,
                update: record.update,
            },
            event,
        };
        // Nearly all events are of these two kinds; the others are made elsewhere, and moved.
        Some(match record.kind {
            Kind::Content => stamped(Event::Content(text)),
            Kind::CallArguments => stamped(Event::ToolCallArguments {
                call_index: CallIndex(record.number),
                text,
            }),
            _ => stamped(self.event_of(record, text)?),
        })
    }

    /// The text deltas so far, borrowed: for a look that copies nothing.
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

    /// What was tolerated on this choice while it was open.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        self.warnings.kept()
    }

    /// How many warnings found no room among [`warnings`](Self::warnings).
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        self.warnings.dropped()
    }

    /// Other fields of the choice, the last value of each, as raw JSON. Those of its deltas are the message's:
    /// [`Message::extra`](crate::Message::extra).
    #[must_use]
    pub fn extra(&self) -> &[(Arc<str>, Arc<str>)] {
        &self.extra
    }

    /// Every finish reason that came, in order, each text once (F5).
    #[must_use]
    pub fn finish_reasons(&self) -> &[Arc<str>] {
        &self.finish_raw
    }

    /// What the choice came to, once it has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<ChoiceOutcome> {
        let (end, _) = self.end.as_ref()?;
        Some(ChoiceOutcome {
            choice: self.index,
            end: end.clone(),
            message: self.message(),
            finish_reason: self.finish.clone(),
            finish_reasons: self.finish_raw.clone(),
            role_inferred: self.role.is_none() && self.shape == CompletionKind::Chat,
            warnings: self.warnings.kept().to_vec(),
            discarded: self.discarded,
        })
    }

    /// Whether [`discard`](Self::discard) has dropped what had come.
    #[must_use]
    pub fn is_discarded(&self) -> bool {
        self.discarded
    }

    /// What the choice came to, once it has ended: the value, or the error that holds it.
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
        let finished = self.outcome()?;
        Some(if finished.end.is_error() || finished.discarded {
            Err(ChoiceError::new(finished))
        } else {
            Ok(finished)
        })
    }

    /// Forgets the text and the events; what follows is not kept either. How many bytes there were is kept, for usage.
    pub fn discard(&mut self) {
        self.discarded = true;
        self.discarded_bytes += self.written_bytes();
        self.text = String::new();
        self.records = Vec::new();
        self.calls = Vec::new();
        self.extra = Vec::new();
        self.delta_extra = Vec::new();
        if let Some((_, visible)) = &mut self.end {
            *visible = 0;
        }
    }
}
