//! The state of a completion: which choices there are, the events of the stream itself, and how it closed.

use std::sync::Arc;

use tokio::sync::OnceCell;
use unbraid_core::{Event, Metadata, Position, Prompt, Sequenced, StreamError, Usage, Warning};

use super::{
    choice_log::ChoiceLog,
    merged::{Closed, SourceState, Sources},
    stream_event::StreamEvent,
    tokenizer::TokenizerSelector,
};
use crate::sync::shared::{ApplyPending, Pending, Shared};

/// What the root handles read.
#[derive(Debug)]
pub(crate) struct CompletionState {
    /// In the order of their first appearance.
    pub(crate) choices: Vec<ChoiceLog>,
    /// The events of the stream itself.
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) sources: Sources,
    /// Warnings about all sources together.
    own_warnings: Vec<Warning>,
    /// What counts the usage that was not reported, if the caller set a tokenizer.
    pub(crate) estimate: Option<Arc<Estimate>>,
    pub(crate) closed: Option<Closed>,
}

impl ApplyPending for CompletionState {
    fn pending(&self) -> Pending {
        Pending::Nothing
    }

    /// Nothing is ever deferred: a reader publishes far less often than it appends to a choice.
    fn apply_pending(&mut self) {}
}

/// How usage that was not reported is counted.
#[derive(Debug)]
pub(crate) struct Estimate {
    pub(crate) tokenizer: TokenizerSelector,
    /// The prompt, which is empty unless the caller provided the request.
    pub(crate) prompt: Arc<Prompt>,
    /// The reported usage with what was missing counted, once it was requested.
    pub(crate) counted: OnceCell<Usage>,
}

/// What a reader publishes after a read.
#[derive(Debug)]
pub(crate) struct Published<'r> {
    pub(crate) choices: Vec<ChoiceLog>,
    pub(crate) events: Vec<StreamEvent>,
    pub(crate) metadata: &'r Metadata,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) warnings_dropped: u64,
}

impl CompletionState {
    fn new(sources: Sources) -> Self {
        Self {
            choices: Vec::new(),
            events: Vec::new(),
            sources,
            own_warnings: Vec::new(),
            estimate: None,
            closed: None,
        }
    }

    /// The state of a completion that is one stream.
    pub(crate) fn of_one_source() -> Self {
        Self::new(Sources::one())
    }

    /// The state of a completion to which sources are added.
    pub(crate) fn of_several_sources() -> Self {
        Self::new(Sources::several())
    }

    /// The events after the first `seq`. They are numbered here and not by their source, because several sources share one
    /// sequence.
    pub(crate) fn events_from(&self, seq: usize) -> impl Iterator<Item = Sequenced> {
        let events = self.events.iter().enumerate().skip(seq);
        events.map(|(seq, event)| event.numbered(seq as u64))
    }

    pub(crate) fn metadata(&self) -> Metadata {
        if self.sources.dialects_differ() {
            return self.sources.common_metadata();
        }
        let mut metadata = self.sources.metadata().cloned().unwrap_or_default();
        if metadata.kind.is_none() {
            // The source of the metadata has brought no choice yet, but another may have.
            metadata.kind = self.sources.iter().find_map(|source| source.metadata.kind);
        }
        metadata
    }

    /// The warnings of the stream itself, by source.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = &Warning> {
        let of_sources = self.sources.iter().flat_map(|source| &source.warnings);
        of_sources.chain(&self.own_warnings)
    }

    pub(crate) fn warnings_dropped(&self) -> u64 {
        let dropped = self.sources.iter().map(|source| source.warnings_dropped);
        dropped.sum()
    }

    fn publish(&mut self, source: usize, published: Published<'_>) {
        let warnings = (published.warnings, published.warnings_dropped);
        let choices = published.choices;
        self.sources
            .update(source, &choices, published.metadata, warnings);
        if self.choices.is_empty() {
            self.choices = choices; // all choices of most streams appear in the same read
        } else {
            self.choices.extend(choices);
        }
        let events = published.events.into_iter();
        self.events
            .extend(events.filter(|event| self.sources.passes_on(event)));
    }

    /// The reported usage, once the stream has closed.
    pub(crate) fn usage(&self) -> Usage {
        match &self.closed {
            Some(_) if self.sources.is_one() => self.usage_of_only(),
            Some(_) => self.sources.usage(),
            None => Usage::default(),
        }
    }

    /// The usage that a source reported, once it has closed.
    pub(crate) fn usage_of(&self, source: &SourceState) -> Usage {
        if self.sources.is_one() {
            self.usage_of_only()
        } else {
            source.usage()
        }
    }

    /// The usage of the only source, which is one of the last events.
    fn usage_of_only(&self) -> Usage {
        let mut events = self.events.iter().rev();
        match events
            .find(|event| event.is_usage())
            .map(StreamEvent::event)
        {
            Some(Event::Usage(usage)) => (**usage).clone(),
            _ => Usage::default(),
        }
    }

    fn close(&mut self, source: usize, closed: Closed, usage: Option<Box<Usage>>) {
        self.sources.close(source, closed, usage);
        self.close_if_all_have();
    }

    /// Closes the completion once every source has closed and no more may be added.
    pub(crate) fn close_if_all_have(&mut self) {
        if self.closed.is_some() {
            return;
        }
        // Everything below happens under one lock: a consumer of the events either finds the last ones, or does not see yet
        // that the completion has closed.
        let Some(closed) = self.sources.closed() else {
            return;
        };
        if let Some(expected) = self.sources.expected_choices() {
            self.emit_last_events(&closed, expected);
        }
        self.closed = Some(closed);
    }

    /// The last events of several sources. A single source has emitted its own.
    fn emit_last_events(&mut self, closed: &Closed, expected: u32) {
        let position = Position::new(closed.events, u32::MAX);
        let got = self.choices.len();
        if closed.result.is_ok() && got > 0 && got < expected as usize {
            let message = format!("expected {expected} choices, got {got}");
            let last = closed.events.saturating_sub(1);
            let warning = Warning::new("E30", last, message);
            self.own_warnings.push(warning.clone());
            self.emit(position, Event::Warning(warning));
        }
        let usage = self.sources.usage();
        if !usage.raw.is_null() {
            self.emit(position, Event::Usage(Box::new(usage)));
        }
        if let Err(error) = &closed.result {
            self.emit(position, Event::Error(error.clone()));
        }
    }

    fn emit(&mut self, position: Position, event: Event) {
        self.events.push(StreamEvent::new(position, event));
    }
}

/// Writes the part of one source to a completion's state. Dropping the writer closes that source as lost.
#[derive(Debug)]
pub(crate) struct CompletionWriter {
    completion: Arc<Shared<CompletionState>>,
    /// The number of the source.
    source: usize,
}

impl CompletionWriter {
    pub(crate) fn new(completion: &Arc<Shared<CompletionState>>, source: usize) -> Self {
        Self {
            completion: Arc::clone(completion),
            source,
        }
    }

    /// Whether these metadata have been published already.
    pub(crate) fn has_published(&self, metadata: &Metadata) -> bool {
        self.completion.read(|state| {
            let source = state.sources.get(self.source);
            source.is_some_and(|source| source.metadata == *metadata)
        })
    }

    pub(crate) fn publish(&self, published: Published<'_>) {
        self.completion
            .modify(|state| state.publish(self.source, published));
    }

    /// Closes the source; only its first end counts.
    pub(crate) fn close(&self, closed: Closed, usage: Option<Box<Usage>>) {
        self.completion
            .modify(|state| state.close(self.source, closed, usage));
    }

    /// Closes a source of which nothing was read and nothing will be.
    pub(crate) fn close_unread(&self, error: StreamError) {
        let closed = Closed {
            result: Err(error),
            reported_by_choices: true,
            events: 0,
            warnings_dropped: 0,
        };
        self.close(closed, None);
    }
}

impl Drop for CompletionWriter {
    fn drop(&mut self) {
        // After a regular close this changes nothing, because the first end of a source counts.
        self.close_unread(StreamError::Lost);
    }
}
