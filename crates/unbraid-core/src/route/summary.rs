//! Warnings that need the whole stream, emitted when it closes.

use super::{ChoiceSink, Route, Router};
use crate::{
    ChoiceIndex, StreamError, Update, Warning,
    event::{Event, Position},
};

/// The choices that the limit refused, as far as it takes to see whether their indices counted tokens.
#[derive(Debug, Default)]
pub(super) struct RefusedChoices {
    count: usize,
    first: Option<ChoiceIndex>,
    last: Option<ChoiceIndex>,
    /// Whether an index returned with a delta, or a lower one appeared.
    returned: bool,
    /// Whether a finish reason arrived, and whether a delta arrived after it.
    reason: bool,
    after_reason: bool,
}

impl RefusedChoices {
    pub(super) fn record(&mut self, index: ChoiceIndex, update: &Update<'_>) {
        let delta = update.has_delta();
        match self.last {
            Some(last) if index < last || (index == last && delta) => self.returned = true,
            Some(last) if index == last => {}
            Some(_) | None => self.count += 1,
        }
        self.first = self.first.or(Some(index));
        // Before the reason of this update is recorded: a delta may share its update with the reason.
        self.after_reason |= self.reason && delta;
        self.reason |= update.finish_reason.is_some();
        self.last = Some(index);
    }
}

impl Router {
    pub(super) fn warn_at_close(
        &mut self,
        result: &Result<(), StreamError>,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        if self.counted_tokens(result) {
            let message = "the index seems to count tokens, not choices: with --expect-choices 1 they are one answer";
            self.warn_about_stream("E12", message.into(), position, sink);
        }
        if let Some(choices) = self.folded.interleaved() {
            let message = format!("--expect-choices 1 folded {choices} interleaved choices");
            self.warn_about_stream("E13", message, position, sink);
        }
        if let Some(expected) = self.too_few(result) {
            let plural = if expected == 1 { "" } else { "s" };
            let message = format!(
                "expected {expected} choice{plural}, got {}",
                self.routes.len()
            );
            self.warn_about_stream("E30", message, position, sink);
        }
    }

    /// Emits a warning that is kept even if the warnings of single events have filled the list.
    fn warn_about_stream(
        &mut self,
        code: &'static str,
        message: String,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        let warning = Warning::new(code, self.next_event.previous(), message);
        let max = self.config.limits.warnings;
        if self.warnings.keep_summary(&warning, max) {
            self.emit(Event::Warning(warning), position, sink);
        }
    }

    /// E30: how many choices were requested, if fewer appeared.
    ///
    /// If the caller or the connection ended the stream, the server is not to blame. If none appeared at all, the stream's
    /// error says more.
    fn too_few(&self, result: &Result<(), StreamError>) -> Option<u32> {
        let count = self.routes.len();
        let is_servers_fault = match result {
            Ok(()) => true,
            Err(StreamError::Server(_)) => count > 0,
            Err(_) => false,
        };
        let expected = self.config.expect_choices?;
        (is_servers_fault && count < expected as usize).then_some(expected)
    }

    /// E12: each index is higher than the one before and has one delta, and at most the last one has a finish reason.
    ///
    /// Interleaved answers may start in the same way, so this is decided at the end. A stream that was cut counts only if it
    /// had more indices than a completion may have choices.
    fn counted_tokens(&self, result: &Result<(), StreamError>) -> bool {
        const FEWEST: usize = 5; // two or three answers of one token each are common
        let Self {
            routes,
            refused_choices: refused,
            ..
        } = self;
        let total = routes.len() + refused.count;
        let requested = self.config.expect_choices.map_or(0, |n| n as usize);
        let is_judged = result.is_ok() || refused.count > 0;
        if total < FEWEST
            || total <= requested
            || !is_judged
            || refused.returned
            || refused.after_reason
        {
            return false;
        }
        // No two choices have the same index, so a sorted list is a rising one.
        let indices = routes.iter().map(|route| route.index);
        indices.chain(refused.first).is_sorted()
            && routes
                .iter()
                .enumerate()
                .all(|(n, route)| is_one_token(route, n == 0, n + 1 == total))
    }
}

/// Whether a choice had as much as one token: the first one may have a separate role, the last one a separate reason.
fn is_one_token(route: &Route, first: bool, last: bool) -> bool {
    let may_be_separate = first || last;
    let deltas = route.deltas == 1 || (may_be_separate && route.deltas == 0);
    deltas && (may_be_separate || route.bare_updates == 0) && (last || !route.has_finish_reason)
}
