//! What the board knows of each source, and what that makes of the whole.

use unbraid_core::{Event, Metadata, Position, Sequenced, StreamError, Usage, Warning};

use crate::{
    state::choice_log::Log,
    state::completion::{Closed, Listing, News},
};

/// What is known of the sources of a joined completion.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) parts: Vec<Known>,
    /// Whether sources may still be added.
    pub(crate) growing: bool,
    /// The source whose metadata stand for all.
    speaker: Option<usize>,
    /// How many choices all sources together may bring.
    expected: u32,
}

/// What is known of one source.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) logs: Vec<Log>,
    pub(crate) metadata: Metadata,
    pub(crate) usage: Usage,
    pub(crate) closed: Option<Closed>,
    warnings: Vec<Warning>,
}

impl Joined {
    pub(crate) fn new() -> Self {
        Self {
            parts: Vec::new(),
            growing: true,
            speaker: None,
            expected: 0,
        }
    }

    /// Adds a source whose choices have indices below `end`.
    pub(crate) fn begin(&mut self, end: u32) -> usize {
        self.expected = self.expected.max(end);
        self.parts.push(Known::default());
        self.parts.len() - 1
    }

    /// How all of them closed, once they have.
    fn closed(&self) -> Option<Closed> {
        let parts: Vec<&Closed> = self
            .parts
            .iter()
            .map_while(|part| part.closed.as_ref())
            .collect();
        if self.growing || parts.len() < self.parts.len() {
            return None;
        }
        let events = parts.iter().map(|part| part.events).sum();
        let errors = || parts.iter().filter_map(|part| part.result.as_ref().err());
        // Those that were cancelled were so for the sake of another one.
        let gravest = || errors().find(|error| !matches!(error, StreamError::Cancelled));
        let result = if parts.is_empty() {
            Err(StreamError::Empty { events })
        } else if errors().count() < parts.len() {
            Ok(())
        } else {
            gravest()
                .or_else(|| errors().next())
                .map_or(Ok(()), |error| Err(error.clone()))
        };
        Some(Closed {
            result,
            told_by_choices: parts.is_empty() || parts.iter().any(|part| part.told_by_choices),
            events,
        })
    }

    /// A source that gave nothing has cost nothing that anyone could know.
    pub(crate) fn spoke(&self) -> impl Iterator<Item = &Known> {
        let events = |part: &&Known| part.closed.as_ref().is_some_and(|closed| closed.events > 0);
        self.parts.iter().filter(events)
    }
}

impl Listing {
    pub(crate) fn part(&self, number: usize) -> Option<&Known> {
        self.joined.as_ref()?.parts.get(number)
    }

    /// Takes the news of one source.
    pub(crate) fn tell_part(&mut self, number: usize, news: News<'_>) {
        let Some(joined) = &mut self.joined else {
            return;
        };
        let Some(part) = joined.parts.get_mut(number) else {
            return;
        };
        part.logs.extend(news.choices.iter().cloned());
        part.metadata = news.metadata.clone();
        part.warnings = news.warnings;
        part.warnings.retain(|warning| !is_missing_choices(warning));
        if joined.speaker.is_none() && *news.metadata != Metadata::default() {
            joined.speaker = Some(number);
        }
        if joined.speaker == Some(number) {
            self.metadata = news.metadata.clone();
        }
        let warnings = joined.parts.iter().flat_map(|part| &part.warnings);
        self.warnings = warnings.cloned().collect();
        self.choices.extend(news.choices);
        for stamped in news.events {
            // The usage and the error of one source are not those of the whole.
            let own = match &stamped.event {
                Event::Usage(_) | Event::Error(_) => true,
                Event::Warning(warning) => is_missing_choices(warning),
                _ => false,
            };
            if !own {
                self.tell(stamped.position, stamped.event);
            }
        }
    }

    /// Takes the end of one source; the first one wins.
    pub(crate) fn close_part(&mut self, number: usize, closed: Closed, usage: Usage) {
        let joined = self.joined.as_mut();
        if let Some(part) = joined.and_then(|joined| joined.parts.get_mut(number))
            && part.closed.is_none()
        {
            part.closed = Some(closed);
            part.usage = usage;
            tell_apart(part);
        }
        self.close_if_all_have();
    }

    pub(crate) fn close_if_all_have(&mut self) {
        let Some(joined) = self.joined.as_ref().filter(|_| self.closed.is_none()) else {
            return;
        };
        let Some(closed) = joined.closed() else {
            return;
        };
        let expected = joined.expected;
        self.usage = Usage::sum(joined.spoke().map(|part| part.usage.clone()));
        let place = Position {
            event: closed.events,
            update: u32::MAX,
        };
        let got = self.choices.len();
        if closed.result.is_ok() && got > 0 && got < expected as usize {
            let message = format!("expected {expected} choices, got {got}");
            let last = closed.events.saturating_sub(1);
            let warning = Warning::new("E30", last, message);
            self.warnings.push(warning.clone());
            self.tell(place, Event::Warning(warning));
        }
        if !self.usage.raw.is_null() {
            self.tell(place, Event::Usage(Box::new(self.usage.clone())));
        }
        if let Err(error) = &closed.result {
            self.tell(place, Event::Error(error.clone()));
        }
        self.closed = Some(closed);
    }

    fn tell(&mut self, place: Position, event: Event) {
        self.events.push(Sequenced {
            choice: None,
            seq: self.events.len() as u64,
            position: place,
            event,
        });
    }
}

/// Whether one source brought fewer choices than it may (E30): another source may make up for it, so that this is decided
/// for the whole completion when it closes.
fn is_missing_choices(warning: &Warning) -> bool {
    warning.code == "E30"
}

/// The sum of a source with a single choice is that choice's.
fn tell_apart(part: &mut Known) {
    if let ([log], [], Some(tokens)) = (
        part.logs.as_slice(),
        part.usage.per_choice.as_slice(),
        part.usage.completion_tokens,
    ) {
        part.usage.per_choice.push((log.index(), tokens));
    }
}
