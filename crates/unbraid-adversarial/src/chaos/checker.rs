//! What a client received, compared with the answer that is known in advance.

mod violation;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
pub(super) use violation::{Kind, Violation};

use super::answer::{Answer, Expected, View};

/// One event as a client got it.
#[derive(Debug, Clone)]
pub(super) struct Got {
    /// The ordinal of the client's connection, from 0.
    pub(super) connection: usize,
    /// The gateway that sent it.
    pub(super) gateway: usize,
    pub(super) id: Option<u64>,
    pub(super) data: String,
}

/// How a client's reading ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    /// With the last event of the view.
    Ended,
    /// With 204 although the client had no last event: there is nothing after its cursor.
    NothingLeft,
    /// With a status that says that the stream is not kept.
    Gone(u16),
    /// The harness ended it.
    Hung,
}

/// What the faults of a run excuse.
#[derive(Debug, Clone, Default)]
pub(super) struct Allowed {
    /// Choices for which somebody requested a cancel.
    pub(super) cancelled: BTreeSet<u32>,
    /// Somebody requested that the stream is erased.
    pub(super) erased: bool,
    /// The producer died or slept past its lease, or was as long without contact with the log.
    pub(super) producer_lost: bool,
    /// The log was emptied after the end of the stream, or while its producer was dead.
    pub(super) log_lost: bool,
    /// Log and producer failed together, so that a reader may have more than the log.
    pub(super) beyond_log: bool,
}

/// How a view ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ViewEnd {
    /// With `[DONE]`.
    Done,
    /// With an error event of this code.
    Error(String),
    /// Not with an event.
    None,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) violations: Vec<Violation>,
    pub(super) end: ViewEnd,
}

/// Compares what one client received over all its connections with the projection of the answer.
pub(super) fn check(
    answer: &Answer,
    view: View,
    got: &[Got],
    finish: Finish,
    allowed: &Allowed,
) -> Verdict {
    let expected = answer.projection(view);
    let mut check = Check::new(&expected, view, allowed);
    for event in got {
        check.event(event);
    }
    check.finish(finish);
    Verdict {
        violations: check.violations,
        end: check.end,
    }
}

struct Check<'a> {
    expected: &'a [Expected],
    positions: HashMap<&'a str, usize>,
    view: View,
    allowed: &'a Allowed,
    /// The position after the last event that was received.
    next: usize,
    last_id: u64,
    /// Choices of which events were left out, because they were cancelled.
    omitted: BTreeSet<u32>,
    /// Choices that ended with the chunk of a cancel.
    closed: BTreeSet<u32>,
    end: ViewEnd,
    violations: Vec<Violation>,
}

impl<'a> Check<'a> {
    fn new(expected: &'a [Expected], view: View, allowed: &'a Allowed) -> Self {
        let positions = expected.iter().enumerate();
        Self {
            expected,
            positions: positions
                .map(|(position, event)| (&*event.data, position))
                .collect(),
            view,
            allowed,
            next: 0,
            last_id: 0,
            omitted: BTreeSet::new(),
            closed: BTreeSet::new(),
            end: ViewEnd::None,
            violations: Vec::new(),
        }
    }

    fn report(&mut self, kind: Kind, detail: String) {
        self.violations.push(Violation::new(kind, detail));
    }

    fn event(&mut self, event: &Got) {
        if self.end != ViewEnd::None {
            let detail = format!("{} after the last event", describe(event));
            return self.report(Kind::AfterEnd, detail);
        }
        if event.data == "[DONE]" {
            self.id(event, false);
            self.end = ViewEnd::Done;
        } else if let Some(&position) = self.positions.get(&*event.data) {
            self.chunk(event, position);
        } else {
            self.foreign(event);
        }
    }

    /// The ids increase strictly. The error of a log that ends before what a reader has is the exception.
    fn id(&mut self, event: &Got, is_error: bool) {
        match event.id {
            None => self.report(Kind::NoId, describe(event)),
            Some(id) if id <= self.last_id && !(is_error && self.allowed.beyond_log) => {
                let detail = format!("{} after id {}", describe(event), self.last_id);
                self.report(Kind::IdNotGreater, detail);
            }
            Some(id) => self.last_id = id,
        }
    }

    fn chunk(&mut self, event: &Got, position: usize) {
        if position < self.next {
            let bytes = event.data.len();
            let detail = format!(
                "{} is event {position} again, {} was next",
                describe(event),
                self.next
            );
            self.violations
                .push(Violation::of_bytes(Kind::Twice, bytes, detail));
            return;
        }
        self.id(event, false);
        self.skip(position, &describe(event));
        let choice = self.expected.get(position).map(|expected| expected.choice);
        if choice
            .is_some_and(|choice| self.omitted.contains(&choice) || self.closed.contains(&choice))
        {
            let detail = format!("{} follows a cancelled part of its choice", describe(event));
            self.report(Kind::AfterCancel, detail);
        }
        self.next = position + 1;
    }

    /// Events may be missing only where their choice was cancelled.
    fn skip(&mut self, position: usize, before: &str) {
        let missing = self.expected.get(self.next..position).unwrap_or_default();
        let (cancelled, lost): (Vec<_>, Vec<_>) = missing
            .iter()
            .partition(|event| self.allowed.cancelled.contains(&event.choice));
        self.omitted
            .extend(cancelled.iter().map(|event| event.choice));
        if !lost.is_empty() {
            let bytes = lost.iter().map(|event| event.data.len()).sum();
            let detail = format!(
                "events {}..{position} are missing before {before}",
                self.next
            );
            self.violations
                .push(Violation::of_bytes(Kind::Lost, bytes, detail));
        }
    }

    /// An event that the upstream did not send.
    fn foreign(&mut self, event: &Got) {
        let json: Value = serde_json::from_str(&event.data).unwrap_or_default();
        if let Some(code) = json.pointer("/error/code").and_then(Value::as_str) {
            self.id(event, true);
            self.end = ViewEnd::Error(code.to_owned());
            return;
        }
        self.id(event, false);
        let choice = json.pointer("/choices/0");
        let reason = choice.and_then(|choice| choice.get("finish_reason")?.as_str());
        let index = choice.and_then(|choice| choice.get("index")?.as_u64());
        let (Some("cancelled"), Some(index)) = (reason, index) else {
            return self.report(
                Kind::Foreign,
                format!("{}: {}", describe(event), start(&event.data)),
            );
        };
        let choice = match self.view {
            View::Combined => index as u32,
            View::Choice(choice) => choice,
        };
        if !self.allowed.cancelled.contains(&choice) {
            self.report(
                Kind::Cancelled,
                format!("{}: choice {choice}", describe(event)),
            );
        }
        if !self.closed.insert(choice) {
            let detail = format!("{} cancels choice {choice} again", describe(event));
            self.violations
                .push(Violation::of_bytes(Kind::Twice, event.data.len(), detail));
        }
    }

    fn finish(&mut self, finish: Finish) {
        match finish {
            Finish::Hung => self.report(Kind::Hung, format!("after id {}", self.last_id)),
            Finish::Gone(410) if self.allowed.erased => {}
            Finish::Gone(404) if self.allowed.log_lost => {}
            Finish::Gone(status) => {
                self.report(Kind::Gone, format!("{status} after id {}", self.last_id))
            }
            Finish::NothingLeft if self.allowed.beyond_log => {}
            Finish::NothingLeft => {
                self.report(Kind::NoEnd, format!("204 after id {}", self.last_id))
            }
            Finish::Ended => self.ended(),
        }
    }

    fn ended(&mut self) {
        let open = self.open_choices();
        match &self.end {
            ViewEnd::None => self.report(Kind::NoEnd, format!("after id {}", self.last_id)),
            ViewEnd::Done if open.is_empty() => {}
            ViewEnd::Done => {
                let rest = self.expected.iter().skip(self.next);
                let bytes = rest
                    .filter(|event| open.contains(&event.choice))
                    .map(|event| event.data.len())
                    .sum();
                let detail = format!("[DONE] although the choices {open:?} are not complete");
                self.violations
                    .push(Violation::of_bytes(Kind::TruncatedDone, bytes, detail));
            }
            ViewEnd::Error(code) if code == "producer_lost" => {
                let is_finished_choice = matches!(self.view, View::Choice(_)) && open.is_empty();
                if is_finished_choice && !self.allowed.beyond_log {
                    self.report(Kind::ErrorAfterFinish, format!("at id {}", self.last_id));
                }
                if !self.allowed.producer_lost {
                    self.report(Kind::ProducerLost, format!("at id {}", self.last_id));
                }
            }
            ViewEnd::Error(code) => {
                let detail = format!("{} at id {}", start(code), self.last_id);
                self.report(Kind::Error, detail);
            }
        }
    }

    /// The choices of which the reader has neither all events nor the chunk of a cancel.
    fn open_choices(&self) -> BTreeSet<u32> {
        let rest = self.expected.get(self.next..).unwrap_or_default();
        let missing = rest.iter().map(|event| event.choice);
        let missing = missing.chain(self.omitted.iter().copied());
        missing
            .filter(|choice| !self.closed.contains(choice))
            .collect()
    }
}

/// Compares what different clients received of the same views: an id is the same event everywhere.
pub(super) fn compare<'a>(
    readers: impl Iterator<Item = (View, &'a [Got])>,
    allowed: &Allowed,
) -> Vec<Violation> {
    let mut events: BTreeMap<(View, u64), &Got> = BTreeMap::new();
    let mut violations = Vec::new();
    for (view, got) in readers {
        for event in got {
            let Some(id) = event.id else { continue };
            let first = *events.entry((view, id)).or_insert(event);
            let is_error = |event: &Got| event.data.starts_with(r#"{"error""#);
            let excused = allowed.beyond_log && (is_error(first) || is_error(event));
            if first.data != event.data && !excused {
                let detail = format!("{view:?}: {} and {}", describe(first), describe(event));
                violations.push(Violation::new(Kind::Disagree, detail));
            }
        }
    }
    violations
}

fn describe(event: &Got) -> String {
    let id = event
        .id
        .map_or_else(|| "no id".into(), |id| format!("id {id}"));
    format!(
        "{id} (connection {}, gateway {})",
        event.connection, event.gateway
    )
}

fn start(text: &str) -> String {
    text.chars().take(120).collect()
}
