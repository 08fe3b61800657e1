//! Updates of a choice that has ended.
//!
//! The router warns of them, because the choice's own events are over. It warns of what the choice itself would have reported
//! (`choice/end.rs`).

use super::{ChoiceSink, Route, Router};
use crate::{
    Update, Warning,
    choice::{DIFFERENT_REASON, SHARED_INDEX},
    event::Position,
};

/// What has arrived since the first finish reason of a choice, or since its end without one. A role, and a payload without one,
/// are parts of a second answer (E13); some servers name the role in each chunk.
#[derive(Debug, Default)]
pub(super) struct SecondAnswer {
    has_role: bool,
    is_role_less: bool,
}

impl SecondAnswer {
    pub(super) fn note(&mut self, update: &Update<'_>) {
        self.has_role |= update.names_role();
        self.is_role_less |= !update.names_role() && update.has_payload();
    }

    /// Whether this finish reason is that of a second answer, which names no role.
    fn ends_with(&self, update: &Update<'_>) -> bool {
        self.has_role && self.is_role_less && !update.names_role()
    }
}

impl Router {
    /// Gives an update to a choice that has ended; its message still contains it (F6).
    pub(super) fn late_update(
        &mut self,
        slot: usize,
        update: &Update<'_>,
        position: Position,
        sink: &mut impl ChoiceSink,
    ) {
        sink.late_update(slot, update, position);
        let Some(route) = self.routes.get_mut(slot) else {
            return;
        };
        let (index, warnings) = (route.index, route.late_warnings(update));
        for (code, message) in warnings.into_iter().flatten() {
            let warning = Warning::new(code, position.event, message).with_choice(index);
            self.warn(warning, position, sink);
        }
    }

    /// Notes that the server has finished a choice which had ended here: its position decides whose usage comes next.
    pub(super) fn note_finish(&mut self, slot: usize, update: &Update<'_>) {
        let reason = update.finish_reason.as_deref().unwrap_or_default();
        let route = self.routes.get_mut(slot);
        if let Some(route) = route.filter(|route| !reason.is_empty() && !route.has_finish_reason) {
            route.has_finish_reason = true;
            self.finishes.finish(route.index);
        }
    }
}

impl Route {
    /// The codes and the messages of the warnings about an update that came after the end.
    fn late_warnings(&mut self, update: &Update<'_>) -> [Option<(&'static str, &'static str)>; 3] {
        self.second.note(update);
        let is_late = update.has_delta();
        let reason = update.finish_reason.as_deref();
        let reason = reason.filter(|raw| !raw.is_empty());
        let reasons = reason.zip(self.first_reason.as_ref());
        let is_shared = reasons.is_some() && self.second.ends_with(update);
        let differs = reasons.is_some_and(|(raw, first)| first.as_str() != raw);
        [
            is_late.then_some(("F6", "text or calls after the choice had ended")),
            is_shared.then_some(SHARED_INDEX),
            differs.then_some(DIFFERENT_REASON),
        ]
    }
}
