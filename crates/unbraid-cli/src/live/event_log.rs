//! The newest raw events of one choice, as lines of JSON.

use std::collections::VecDeque;

use unbraid::Sequenced;

use crate::{json, printable::printable};

/// How many events are kept: more than any terminal has rows.
const MAX_EVENTS: usize = 300;

/// How much of an event is kept: more than any terminal has columns.
const MAX_CHARS: usize = 400;

#[derive(Debug, Default)]
pub(super) struct EventLog {
    lines: VecDeque<EventLine>,
}

#[derive(Debug)]
pub(super) struct EventLine {
    /// The ordinal of the event among those of all choices.
    pub(super) number: u64,
    pub(super) text: String,
}

impl EventLog {
    pub(super) fn push(&mut self, number: u64, event: &Sequenced) {
        let json = json::text(event);
        let mut shown: String = json.chars().take(MAX_CHARS).collect();
        if shown.len() < json.len() {
            shown.push('\u{2026}');
        }
        if self.lines.len() == MAX_EVENTS {
            self.lines.pop_front();
        }
        self.lines.push_back(EventLine {
            number,
            text: printable(&shown),
        });
    }

    /// The last lines, in order.
    pub(super) fn last(&self, count: usize) -> impl Iterator<Item = &EventLine> {
        let skipped = self.lines.len().saturating_sub(count);
        self.lines.iter().skip(skipped)
    }
}
