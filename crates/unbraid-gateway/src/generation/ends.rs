//! How a generation ends, and what its log is sealed with.

use serde_json::Value;
use unbraid_core::{ChoiceIndex, ServerError};
use unbraid_log::{End, Event, LogError, StreamEnd};

use super::{
    Generation,
    part::Part,
    rewrite,
    tracker::{Role, TrackedChoice},
};
use crate::{upstream_error, view::error_object};

impl Generation {
    /// All choices that have appeared.
    pub(super) fn choices(&self) -> impl Iterator<Item = &TrackedChoice> {
        self.parts.iter().flat_map(|part| part.tracker.choices())
    }

    /// The choices that may still grow, by index: those without an end, and those that were requested and have not appeared.
    pub(super) fn open_choices(&self) -> Vec<ChoiceIndex> {
        let mut open: Vec<ChoiceIndex> = self
            .choices()
            .filter(|choice| choice.end.is_none())
            .map(|choice| choice.index)
            .collect();
        let unseen = (0..self.expected).map(ChoiceIndex).filter(|index| {
            !self.cancelled_unseen.contains(index)
                && !self.choices().any(|choice| choice.index == *index)
        });
        open.extend(unseen);
        open.sort_unstable();
        open
    }

    /// Writes what was held back until it was known whether other bodies follow: none does.
    pub(super) fn release_held(&mut self) {
        for part in &mut self.parts {
            part.tracker.resolve_held(true, &mut self.keeper.events);
        }
    }

    /// Writes the ends of the choices of a fan-out that failed before any had a chunk, once one has, or none can.
    pub(super) fn write_late_ends(&mut self, is_forced: bool) {
        if !self.is_fan_out {
            return;
        }
        if is_forced || self.identity.has_chunks || self.parts.iter().all(Part::is_closed) {
            for part in &mut self.parts {
                let log = &mut self.keeper.events;
                part.tracker.write_late_ends(&self.identity, log);
            }
        }
    }

    /// Writes the last events, and seals the log.
    pub(super) async fn close(&mut self) {
        self.write_late_ends(true);
        let usage = self.usage();
        let is_whole = |end| matches!(end, End::Finished | End::DoneWithoutFinish);
        let has_usage = self.wants_usage && !usage.is_null();
        if self.is_fan_out && has_usage && self.end.is_none_or(is_whole) {
            let chunk = rewrite::usage_chunk(&self.identity.metadata, &usage);
            self.keeper
                .events
                .push(&Event::chunk(&[], chunk.as_bytes()));
        }
        let mut end = self.end.unwrap_or_else(|| self.natural_end());
        if let (End::Refused, Some(on_refused)) = (end, self.on_refused.take()) {
            on_refused.await;
        }
        if let Err(error) = self.keeper.flush().await {
            tracing::warn!(
                id = %self.id(),
                %error,
                "the last events of a generation could not be appended"
            );
            // What the log has is cut, and must not end like an answer that is complete.
            if !end.is_error() {
                end = end_of_log(&error);
            }
        }
        self.registration.end = end;
        let error = match self.refused.take() {
            Some(error) => Some(error.0),
            None => end.is_error().then(|| self.error_of(end).to_string()),
        };
        let usage = (!usage.is_null()).then(|| usage.to_string());
        let end = StreamEnd::new(end).with_error(error).with_usage(usage);
        // Another gateway may have declared this one lost.
        if let Some(end) = self.keeper.seal(end).await {
            self.registration.end = end;
        }
    }

    /// The error of the status. Without a fan-out, the upstream's own is an event of the log.
    fn error_of(&self, end: End) -> Value {
        let reported = self.server_error();
        let mut error = error_object(end, reported);
        let details = reported.filter(|_| self.is_fan_out && end == End::ServerError);
        if let (Some(details), Some(fields)) = (
            details.and_then(upstream_error::details),
            error.as_object_mut(),
        ) {
            fields.insert(upstream_error::MEMBER.into(), details);
        }
        error
    }

    /// What an upstream reported inside its answer. Of a fan-out it is the first request's that did.
    fn server_error(&self) -> Option<&ServerError> {
        let mut parts = self.parts.iter();
        parts.find_map(|part| part.tracker.server_error())
    }

    /// The usage of all bodies.
    fn usage(&self) -> Value {
        let mut sum = Value::Null;
        for usage in self.parts.iter().filter_map(|part| part.tracker.usage()) {
            rewrite::sum_usage(&mut sum, &usage);
        }
        sum
    }

    /// The end that follows from the bodies.
    fn natural_end(&self) -> End {
        let whole = self
            .parts
            .iter()
            .find(|part| !matches!(part.tracker.role, Role::Single(_)));
        match whole {
            Some(part) if !self.is_fan_out => part.tracker.end(),
            _ => self.merged_end(),
        }
    }

    /// The end that follows from those of the choices. A stream has failed, or was cancelled, only if no choice has finished:
    /// it does not matter which of them was the last.
    pub(super) fn merged_end(&self) -> End {
        let ends = || self.choices().filter_map(|choice| choice.end);
        let best = ends().find(|end| *end == End::Finished);
        let best = best.or_else(|| ends().find(|end| *end == End::DoneWithoutFinish));
        best.or_else(|| ends().find(|end| end.is_error()))
            .or_else(|| ends().next())
            .unwrap_or(End::Interrupted)
    }
}

/// The end of a generation whose log refuses its events.
pub(super) fn end_of_log(error: &LogError) -> End {
    match error {
        // Another gateway has declared this one lost.
        LogError::Sealed | LogError::Fenced { .. } => End::ProducerLost,
        // It was erased, and nobody can read its end.
        LogError::Expired | LogError::Unknown => End::Cancelled,
        _ => End::ServerError,
    }
}
