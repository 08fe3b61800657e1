//! Measures the deltas of each choice while a stream is read.

use std::{collections::BTreeMap, io, time::Duration};

use unbraid_core::{ChoiceIndex, Demux, Event, EventIndex, Sequenced};

use super::clock::Clock;
use crate::input::Listener;

/// The measurements of a stream.
#[derive(Debug)]
pub(super) struct Measure {
    clock: Clock,
    /// How many bytes were read.
    pub(super) bytes: u64,
    /// When the last of them arrived.
    pub(super) duration: Option<Duration>,
    /// The last event that said something.
    pub(super) last_event: Option<EventIndex>,
    choices: BTreeMap<ChoiceIndex, ChoiceStats>,
}

/// The measurements of one choice.
#[derive(Debug, Default)]
pub(super) struct ChoiceStats {
    /// How many deltas brought text, a part of a call, or audio.
    pub(super) deltas: u64,
    pub(super) content_bytes: u64,
    pub(super) reasoning_bytes: u64,
    pub(super) refusal_bytes: u64,
    pub(super) first_delta: Option<Duration>,
    /// The last event with a delta, and the number of bytes until its end.
    pub(super) last: Option<(EventIndex, u64)>,
    last_delta: Option<Duration>,
    /// The pauses between deltas of different events, in microseconds: four bytes each, because a stream may have millions.
    pauses: Vec<u32>,
}

/// The distribution of the pauses between the deltas of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pauses {
    pub(super) count: usize,
    pub(super) p50: Duration,
    pub(super) p90: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
}

impl Measure {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            bytes: 0,
            duration: None,
            last_event: None,
            choices: BTreeMap::new(),
        }
    }

    /// The measurements of a choice, unless it had no event.
    pub(super) fn choice(&self, index: ChoiceIndex) -> Option<&ChoiceStats> {
        self.choices.get(&index)
    }

    /// The source of the times, if there are any.
    pub(super) fn times(&self) -> Option<&'static str> {
        self.clock.name()
    }

    fn add(&mut self, event: &Sequenced<&str>, time: Option<Duration>) {
        let position = event.position.event;
        if is_from_wire(&event.event) {
            self.last_event = self.last_event.max(Some(position));
        }
        let Some(index) = event.choice else {
            return;
        };
        let choice = self.choices.entry(index).or_default();
        if choice.add_sizes(&event.event) {
            choice.add_delta(position, self.bytes, time);
        }
    }
}

impl ChoiceStats {
    /// Adds the size of an event. Returns whether it is a delta.
    fn add_sizes(&mut self, event: &Event<&str>) -> bool {
        match event {
            Event::Content(text) => self.content_bytes += text.len() as u64,
            Event::Reasoning(text) => self.reasoning_bytes += text.len() as u64,
            Event::Refusal(text) => self.refusal_bytes += text.len() as u64,
            Event::ToolCallStart { .. } | Event::ToolCallArguments { .. } | Event::Audio(_) => {}
            _ => return false,
        }
        true
    }

    /// Adds a delta. One event may have several of them, without a pause between them.
    fn add_delta(&mut self, event: EventIndex, bytes: u64, time: Option<Duration>) {
        self.deltas += 1;
        let is_same_event = self.last.is_some_and(|(last, _)| last == event);
        self.last = Some((event, bytes));
        let Some(time) = time else {
            return;
        };
        self.first_delta.get_or_insert(time);
        if let Some(last) = self.last_delta.replace(time)
            && !is_same_event
        {
            let pause = time.saturating_sub(last).as_micros();
            self.pauses.push(u32::try_from(pause).unwrap_or(u32::MAX));
        }
    }

    /// The pauses between its deltas, or `None` if there are none or they are unknown.
    pub(super) fn pauses(&self) -> Option<Pauses> {
        let mut sorted = self.pauses.clone();
        sorted.sort_unstable();
        let max = *sorted.last()?;
        let time = |micros: u32| Duration::from_micros(micros.into());
        let percentile = |percent| time(nearest_rank(&sorted, percent).unwrap_or(max));
        Some(Pauses {
            count: sorted.len(),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: time(max),
        })
    }
}

/// Whether the server sent this, unlike the ends, which also follow from the end of the stream.
fn is_from_wire(event: &Event<&str>) -> bool {
    matches!(
        event,
        Event::Start { .. }
            | Event::Role(_)
            | Event::Content(_)
            | Event::Reasoning(_)
            | Event::Refusal(_)
            | Event::ToolCallStart { .. }
            | Event::ToolCallArguments { .. }
            | Event::Audio(_)
            | Event::Logprobs(_)
            | Event::ExtraFields(_)
            | Event::Finish(_)
    )
}

/// The smallest value that is not less than this percentage of the sorted values.
fn nearest_rank(sorted: &[u32], percent: usize) -> Option<u32> {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied()
}

impl Listener for Measure {
    fn handle_bytes(&mut self, count: u64) {
        self.bytes += count;
        self.duration = self.clock.time(self.bytes);
    }

    fn handle_events(&mut self, demux: &mut Demux) -> io::Result<()> {
        let time = self.clock.time(self.bytes);
        while let Some(event) = demux.next_event() {
            self.add(&event, time);
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{ChoiceStats, Duration, EventIndex, nearest_rank};

    #[test]
    fn percentiles_are_values_of_the_list() {
        let hundred: Vec<u32> = (1..=100).collect();
        let at = |percent| nearest_rank(&hundred, percent);
        assert_eq!((at(50), at(90), at(99)), (Some(50), Some(90), Some(99)));
        assert_eq!(nearest_rank(&[7], 50), Some(7));
        assert_eq!(nearest_rank(&[1, 9], 50), Some(1));
        assert_eq!(nearest_rank(&[1, 9], 90), Some(9));
        assert_eq!(nearest_rank(&[], 90), None);
    }

    #[test]
    fn deltas_of_one_event_have_no_pause_between_them() {
        let mut choice = ChoiceStats::default();
        let ms = |ms| Some(Duration::from_millis(ms));
        for (event, time) in [(0, 5), (0, 5), (2, 9), (5, 9), (6, 29)] {
            choice.add_delta(EventIndex(event), 0, ms(time));
        }
        let pauses = choice.pauses().unwrap();
        assert_eq!((choice.deltas, pauses.count), (5, 3));
        assert_eq!(choice.first_delta, ms(5));
        assert_eq!(Some(pauses.p50), ms(4));
        assert_eq!(Some(pauses.max), ms(20));
        assert_eq!(ChoiceStats::default().pauses(), None);
    }
}
