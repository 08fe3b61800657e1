//! What only the whole stream shows of its choices, said once it is over.

use super::{Route, Router, Sink};
use crate::{
    ChoiceIndex, StreamError, Update, Warning,
    event::{Event, Place},
};

/// Choices that the limit refused: only what shows whether their index counted tokens.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    count: usize,
    first: Option<ChoiceIndex>,
    last: Option<ChoiceIndex>,
    /// Whether an index came again with a delta, or a lower one came.
    returned: bool,
    /// Whether a finish reason came, and whether a delta came after it.
    reason: bool,
    after_reason: bool,
}

impl Beyond {
    pub(super) fn note(&mut self, index: ChoiceIndex, update: &Update<'_>) {
        let delta = update.has_delta();
        match self.last {
            Some(last) if index < last || (index == last && delta) => self.returned = true,
            Some(last) if index == last => {}
            Some(_) | None => self.count += 1,
        }
        self.first = self.first.or(Some(index));
        self.after_reason |= self.reason && delta;
        self.reason |= update.finish_reason.is_some();
        self.last = Some(index);
    }
}

impl Router {
    pub(super) fn summarise(
        &mut self,
        result: &Result<(), StreamError>,
        place: Place,
        sink: &mut impl Sink,
    ) {
        if self.counted_tokens(result) {
            let message = "the index seems to count tokens, not choices: with --expect-choices 1 they are one answer";
            self.warn_of_all("E12", message.into(), place, sink);
        }
        if let Some(choices) = self.folded.interleaved() {
            let message = format!("--expect-choices 1 folded {choices} interleaved choices");
            self.warn_of_all("E13", message, place, sink);
        }
        if let Some(expected) = self.too_few(result) {
            let plural = if expected == 1 { "" } else { "s" };
            let message = format!(
                "expected {expected} choice{plural}, got {}",
                self.routes.len()
            );
            self.warn_of_all("E30", message, place, sink);
        }
    }

    /// These are never crowded out by what was warned of in each event.
    fn warn_of_all(
        &mut self,
        code: &'static str,
        message: String,
        place: Place,
        sink: &mut impl Sink,
    ) {
        let warning = Warning::new(code, self.next_at.saturating_sub(1), message);
        let max = self.options.limits.warnings;
        if self.warnings.keep_summary(&warning, max) {
            self.tell(Event::Warning(warning), place, sink);
        }
    }

    /// E30: how many choices were asked for, if fewer came. Where the caller or the connection ended the stream the
    /// server is not to blame; where none came at all an error of the stream says more.
    fn too_few(&self, result: &Result<(), StreamError>) -> Option<u32> {
        let came = self.routes.len();
        let asked = match result {
            Ok(()) => true,
            Err(StreamError::Server(_)) => came > 0,
            Err(_) => false,
        };
        let expected = self.options.expect_choices?;
        (asked && came < expected as usize).then_some(expected)
    }

    /// E12: each index higher than the one before, with one delta each, and a finish reason for the last one at most.
    ///
    /// Answers that stand side by side look the same at first, so this is known at the end only; one that was cut is
    /// believed only where more came than a completion may have.
    fn counted_tokens(&self, result: &Result<(), StreamError>) -> bool {
        const FEWEST: usize = 5; // two or three answers of one token each are nothing special
        let Self { routes, beyond, .. } = self;
        let total = routes.len() + beyond.count;
        let asked = self.options.expect_choices.map_or(0, |n| n as usize);
        let over = result.is_ok() || beyond.count > 0;
        if total < FEWEST || total <= asked || !over || beyond.returned || beyond.after_reason {
            return false;
        }
        // No two choices have the same index, so that sorted is rising.
        let indices = routes.iter().map(|route| route.index);
        indices.chain(beyond.first).is_sorted()
            && routes
                .iter()
                .enumerate()
                .all(|(at, route)| one_token(route, at == 0, at + 1 == total))
    }
}

/// Whether so much came of a choice as of a token: the first one may have its role apart, and the last one its reason.
fn one_token(route: &Route, first: bool, last: bool) -> bool {
    let apart = first || last;
    let deltas = route.deltas == 1 || (apart && route.deltas == 0);
    deltas && (apart || route.bare == 0) && (last || !route.reason)
}
