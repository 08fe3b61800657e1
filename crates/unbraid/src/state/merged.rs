//! The sources of a completion: what each has brought, and how their ends make up the end of the whole.

use smallvec::{SmallVec, smallvec};
use unbraid_core::{
    ChoiceIndex, Event, Metadata, StreamError, Usage, Warning, internal::sum_across_dialects,
};

use super::{choice_log::ChoiceLog, stream_event::StreamEvent};

/// How a stream closed.
#[derive(Debug, Clone)]
pub(crate) struct Closed {
    pub(crate) result: Result<(), StreamError>,
    /// Whether `choices()` reports the error: it ended a choice, kept one from appearing, or no choice had appeared.
    pub(crate) reported_by_choices: bool,
    /// The number of events that were read.
    pub(crate) events: u64,
    /// The stream's own warnings that were not kept.
    pub(crate) warnings_dropped: u64,
}

impl Closed {
    /// The error that `choices()` reports, if any.
    pub(crate) fn reported_error(&self) -> Option<StreamError> {
        let error = self.result.as_ref().err();
        error.filter(|_| self.reported_by_choices).cloned()
    }
}

/// What one source has brought so far.
#[derive(Debug, Default)]
pub(crate) struct SourceState {
    pub(crate) logs: SmallVec<[ChoiceLog; 1]>,
    pub(crate) metadata: Metadata,
    /// The usage that it reported, once it has closed. That of the only source is in its event.
    usage: Option<Box<Usage>>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) warnings_dropped: u64,
    pub(crate) closed: Option<Closed>,
}

impl SourceState {
    pub(super) fn usage(&self) -> Usage {
        self.usage.as_deref().cloned().unwrap_or_default()
    }
}

/// The sources of a completion. A completion that is read from one stream is a merge of one source.
#[derive(Debug)]
pub(crate) struct Sources {
    sources: SmallVec<[SourceState; 1]>,
    merge: Merge,
}

#[derive(Debug)]
enum Merge {
    /// The only source is the completion: everything that it brings is passed on unchanged.
    One,
    /// Any number of sources make up the completion, and some of what each brings concerns that source only.
    Several {
        /// Whether sources may still be added.
        accepts_sources: bool,
        /// The source whose metadata are those of the completion.
        metadata_source: Option<usize>,
        /// How many choices all sources together may bring.
        expected_choices: u32,
    },
}

impl Sources {
    pub(crate) fn one() -> Self {
        Self {
            sources: smallvec![SourceState::default()],
            merge: Merge::One,
        }
    }

    pub(crate) fn several() -> Self {
        Self {
            sources: SmallVec::new(),
            merge: Merge::Several {
                accepts_sources: true,
                metadata_source: None,
                expected_choices: 0,
            },
        }
    }

    pub(crate) fn get(&self, source: usize) -> Option<&SourceState> {
        self.sources.get(source)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SourceState> {
        self.sources.iter()
    }

    pub(crate) fn is_one(&self) -> bool {
        matches!(self.merge, Merge::One)
    }

    /// Adds a source whose choices have indices below `end`, and returns its number.
    pub(crate) fn add(&mut self, end: u32) -> usize {
        if let Merge::Several {
            expected_choices, ..
        } = &mut self.merge
        {
            *expected_choices = end.max(*expected_choices);
        }
        self.sources.push(SourceState::default());
        self.sources.len() - 1
    }

    /// Notes that no further source will be added.
    pub(crate) fn stop_accepting(&mut self) {
        if let Merge::Several {
            accepts_sources, ..
        } = &mut self.merge
        {
            *accepts_sources = false;
        }
    }

    /// How many choices the sources together may bring, if that is checked for the whole.
    pub(crate) fn expected_choices(&self) -> Option<u32> {
        match self.merge {
            Merge::One => None,
            Merge::Several {
                expected_choices, ..
            } => Some(expected_choices),
        }
    }

    /// The metadata of the completion: those of the first source that brought any.
    pub(crate) fn metadata(&self) -> Option<&Metadata> {
        let source = match self.merge {
            Merge::One => 0,
            Merge::Several {
                metadata_source, ..
            } => metadata_source?,
        };
        Some(&self.sources.get(source)?.metadata)
    }

    /// Whether the sources that have brought something are in different dialects.
    pub(crate) fn dialects_differ(&self) -> bool {
        let mut dialects = self
            .sources
            .iter()
            .filter_map(|source| source.metadata.dialect());
        let first = dialects.next();
        dialects.any(|dialect| Some(dialect) != first)
    }

    /// What sources in different dialects have in common. A kind would be a dialect.
    pub(crate) fn common_metadata(&self) -> Metadata {
        let mut common = Metadata::default();
        let metadata = || self.sources.iter().map(|source| &source.metadata);
        let mut models = metadata().filter(|one| one.dialect().is_some());
        let model = models.next().and_then(|one| one.model.clone());
        if models.all(|one| one.model == model) {
            common.model = model;
        }
        common
    }

    /// The source that brought a choice.
    pub(crate) fn of_choice(&self, choice: ChoiceIndex) -> Option<&SourceState> {
        let has = |source: &&SourceState| source.logs.iter().any(|log| log.index() == choice);
        self.sources.iter().find(has)
    }

    /// Takes the metadata and warnings of a source, and the logs of its new choices.
    pub(crate) fn update(
        &mut self,
        number: usize,
        logs: &[ChoiceLog],
        metadata: &Metadata,
        warnings: (Vec<Warning>, u64),
    ) {
        let Some(source) = self.sources.get_mut(number) else {
            return;
        };
        source.logs.extend(logs.iter().cloned());
        source.metadata = metadata.clone();
        // The list is replaced, not appended to: a reader always publishes all warnings that it keeps.
        (source.warnings, source.warnings_dropped) = warnings;
        if let Merge::Several {
            metadata_source, ..
        } = &mut self.merge
        {
            source
                .warnings
                .retain(|warning| !is_missing_choices(warning));
            // The metadata stay those of one source, because each request of a fan-out has an id of its own.
            if metadata_source.is_none() && *metadata != Metadata::default() {
                *metadata_source = Some(number);
            }
        }
    }

    /// Takes the end of a source; the first one wins.
    pub(crate) fn close(&mut self, number: usize, closed: Closed, usage: Option<Box<Usage>>) {
        let Some(source) = self.sources.get_mut(number) else {
            return;
        };
        if source.closed.is_none() {
            // A source that is lost closes with 0, and what it had published before still counts.
            source.warnings_dropped = source.warnings_dropped.max(closed.warnings_dropped);
            source.closed = Some(closed);
            source.usage = usage;
            if let Merge::Several { .. } = self.merge {
                assign_to_only_choice(source);
            }
        }
    }

    /// Whether an event of a source is one of the completion, too. The usage and the error of one source of several are not
    /// those of the whole.
    pub(crate) fn passes_on(&self, event: &StreamEvent) -> bool {
        self.is_one()
            || match event.event() {
                Event::Usage(_) | Event::Error(_) => false,
                Event::Warning(warning) => !is_missing_choices(warning),
                _ => true,
            }
    }

    /// How the completion closed, once all of its sources have.
    pub(crate) fn closed(&self) -> Option<Closed> {
        let accepts_sources = match self.merge {
            Merge::One => return self.sources.first()?.closed.clone(),
            Merge::Several {
                accepts_sources, ..
            } => accepts_sources,
        };
        let closed: Vec<&Closed> = self
            .sources
            .iter()
            .map_while(|source| source.closed.as_ref())
            .collect();
        // `map_while` stops at the first source that is open, so this is cheap while the sources run.
        let all_have = closed.len() == self.sources.len();
        (all_have && !accepts_sources).then(|| merge_closed(&closed))
    }

    /// The usage of a completion of several sources: the sum over those that answered.
    pub(crate) fn usage(&self) -> Usage {
        let usages = self.answered().map(SourceState::usage);
        sum_usage(self.dialects_differ(), usages)
    }

    /// The sources that brought an event. Any other has cost nothing that could be known.
    pub(crate) fn answered(&self) -> impl Iterator<Item = &SourceState> {
        self.sources.iter().filter(|source| {
            let closed = source.closed.as_ref();
            self.is_one() || closed.is_some_and(|closed| closed.events > 0)
        })
    }
}

/// Adds up the usage of sources whose dialects may differ.
pub(crate) fn sum_usage(dialects_differ: bool, usages: impl Iterator<Item = Usage>) -> Usage {
    if dialects_differ {
        sum_across_dialects(usages)
    } else {
        Usage::sum(usages)
    }
}

/// The completion fails only if every source has failed.
fn merge_closed(sources: &[&Closed]) -> Closed {
    let events = sources.iter().map(|closed| closed.events).sum();
    let errors = || {
        sources
            .iter()
            .filter_map(|closed| closed.result.as_ref().err())
    };
    // A source that was cancelled was cancelled in favour of another one, so its error says least.
    let failure = errors()
        .find(|error| !matches!(error, StreamError::Cancelled))
        .or_else(|| errors().next());
    let result = match failure {
        _ if sources.is_empty() => Err(StreamError::Empty { events }),
        Some(error) if errors().count() == sources.len() => Err(error.clone()),
        _ => Ok(()),
    };
    Closed {
        result,
        reported_by_choices: sources.is_empty()
            || sources.iter().any(|closed| closed.reported_by_choices),
        events,
        warnings_dropped: sources.iter().map(|closed| closed.warnings_dropped).sum(),
    }
}

/// Whether one source brought fewer choices than it may (E30). Another source may make up for it, so this is decided for
/// the whole completion when it closes.
fn is_missing_choices(warning: &Warning) -> bool {
    warning.code == "E30"
}

/// The sum that a source with one choice reported is that choice's.
fn assign_to_only_choice(source: &mut SourceState) {
    let Some(usage) = source.usage.as_deref_mut() else {
        return;
    };
    if let ([log], [], Some(tokens)) = (
        source.logs.as_slice(),
        usage.per_choice.as_slice(),
        usage.completion_tokens,
    ) {
        usage.per_choice.push((log.index(), tokens));
    }
}
