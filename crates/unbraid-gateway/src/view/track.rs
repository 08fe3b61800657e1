//! Which choices a stream has, and which of them have ended.

use std::collections::BTreeMap;

use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Event, Record, Seq, StreamEnd};

use super::{Target, terminal::Terminal};

/// The choices of a stream, as far as its log was read.
#[derive(Debug, Default)]
pub(super) struct Track {
    /// The last event that was read.
    pub(super) tail: Seq,
    /// The last event that is not the end of a choice.
    last_chunk: Option<Seq>,
    pub(super) choices: BTreeMap<ChoiceIndex, ChoiceTrack>,
    /// The upstream's error event.
    pub(super) error: Option<Seq>,
    end: Option<StreamEnd>,
    /// Whether the stream has ended without the end of a choice, because another gateway has sealed its log, and it is not
    /// known yet which of these choices have a finish reason.
    pub(super) lacks_reasons: bool,
}

#[derive(Debug, Default)]
pub(super) struct ChoiceTrack {
    /// Its last event.
    pub(super) seq: Seq,
    /// Its end in the log.
    pub(super) end: Option<(Seq, End)>,
    /// The last event before its end that is not an end. If it has ended several choices, their ends follow each other.
    pub(super) ended_by: Option<Seq>,
    /// Known once it has ended, or the stream has.
    pub(super) finish_reason: Option<String>,
}

impl Track {
    /// Reads the next records.
    pub(super) fn read(&mut self, records: &[Record]) {
        for (seq, event) in records.iter().flat_map(Record::events) {
            if seq > self.tail {
                self.event(seq, &event);
                self.tail = seq;
            }
        }
    }

    fn event(&mut self, seq: Seq, event: &Event<'_>) {
        match event {
            Event::ChoiceEnd {
                choice,
                end,
                finish_reason,
            } => {
                let track = self.choices.entry(*choice).or_default();
                if track.end.is_none() {
                    track.seq = seq;
                    track.end = Some((seq, *end));
                    track.ended_by = self.last_chunk;
                    track.finish_reason = finish_reason.map(str::to_owned);
                }
            }
            Event::Error { .. } => self.error = self.error.or(Some(seq)),
            event => {
                self.last_chunk = Some(seq);
                for choice in event.choices().iter() {
                    let track = self.choices.entry(choice).or_default();
                    if track.end.is_none() {
                        track.seq = seq;
                    }
                }
            }
        }
    }

    /// Sets the end of the stream, whose events were all read.
    pub(super) fn seal(&mut self, end: StreamEnd) {
        self.end = Some(end);
        self.lacks_reasons = self.choices.values().any(|choice| choice.end.is_none());
    }

    /// Sets the finish reasons of the choices whose ends are not in the log.
    pub(super) fn set_reasons(&mut self, mut reasons: BTreeMap<ChoiceIndex, String>) {
        for (index, choice) in &mut self.choices {
            if choice.end.is_none() {
                choice.finish_reason = reasons.remove(index);
            }
        }
        self.lacks_reasons = false;
    }

    /// Whether all events were read.
    pub(super) fn is_sealed(&self) -> bool {
        self.end.is_some()
    }

    /// The end, once it is known how every choice has ended.
    pub(super) fn end(&self) -> Option<&StreamEnd> {
        self.end.as_ref().filter(|_| !self.lacks_reasons)
    }

    /// The number of the stream's end.
    fn end_seq(&self) -> Seq {
        self.tail.next()
    }

    /// The last event of a view, if the view has ended and it is known how.
    pub(super) fn terminal(&self, target: Target) -> Option<Terminal> {
        match target {
            Target::Choice { index, .. } if self.lacks_reason(index) => None,
            Target::Choice { .. } | Target::Combined => self.terminal_as_known(target),
        }
    }

    /// The id of the last event of a view, if the view has ended. A finish reason that is yet to be found changes the event of
    /// a lost choice, and not its number.
    pub(super) fn terminal_id(&self, target: Target) -> Option<Seq> {
        self.terminal_as_known(target).map(Terminal::id)
    }

    fn lacks_reason(&self, index: ChoiceIndex) -> bool {
        let choice = self.choices.get(&index);
        self.lacks_reasons && choice.is_some_and(|choice| choice.end.is_none())
    }

    fn terminal_as_known(&self, target: Target) -> Option<Terminal> {
        let stream_end = self.end.as_ref().map(|end| end.end);
        match target {
            Target::Combined => match self.error {
                Some(error) => Some(Terminal::UpstreamError(error)),
                None => Some(Terminal::of_stream(self.end_seq(), stream_end?, None)),
            },
            Target::Choice { index, .. } => {
                let choice = self.choices.get(&index);
                if let Some((seq, end)) = choice.and_then(|choice| choice.end) {
                    // An error after its end has ended others.
                    let error = self.error.filter(|error| *error < seq);
                    return Some(Terminal::of_choice(seq, end, error));
                }
                let (seq, end) = (self.end_seq(), stream_end?);
                if choice.is_some_and(|choice| choice.finish_reason.is_some()) {
                    return Some(Terminal::Done(seq));
                }
                Some(Terminal::of_open_choice(seq, end, self.error))
            }
        }
    }

    /// How a choice has ended. One that is open at the end of the stream ends with it, unless it has a finish reason: that
    /// stays, whatever happens to the stream.
    pub(super) fn choice_end(&self, index: ChoiceIndex) -> Option<End> {
        let choice = self.choices.get(&index);
        if let Some((_, end)) = choice.and_then(|choice| choice.end) {
            return Some(end);
        }
        let stream_end = self.end()?.end;
        let has_reason = choice.is_some_and(|choice| choice.finish_reason.is_some());
        Some(match stream_end {
            _ if has_reason => End::Finished,
            // Another choice has finished.
            End::Finished => End::DoneWithoutFinish,
            end => end,
        })
    }
}
