//! `ChoiceSink`: the receiver of what the router decides.

use crate::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Event, Update,
    event::{Position, Sequenced},
    text::Text,
    text_delta::Delta,
    usage::UnreadUsage,
};

/// Carries out the router's decisions. A `slot` is the ordinal of a choice, in order of first appearance.
pub trait ChoiceSink {
    /// A choice appeared. Its first update follows directly.
    fn open(&mut self, slot: usize, index: ChoiceIndex, kind: CompletionKind);

    /// The choice applies a delta.
    fn delta(&mut self, slot: usize, delta: Delta<'_>, position: Position);

    /// The choice has ended, but this update arrived for it.
    fn late_update(&mut self, slot: usize, update: &Update<'_>, position: Position);

    /// The choice ends, unless it has already ended. If its finish reason has arrived, that is its end.
    fn finish(&mut self, slot: usize, end: ChoiceEnd, position: Position);

    /// The choice ends with its finish reason, which has arrived. The choice keeps the reason, so the router does not.
    fn finish_with_reason(&mut self, slot: usize, position: Position);

    /// The choice ends with an error of its own, even if its finish reason has arrived.
    fn finish_with_error(&mut self, slot: usize, end: ChoiceEnd, position: Position);

    /// The choice ends with the stream's error, even though its finish reason arrived in the same event (X4).
    fn finish_with_stream_error(&mut self, slot: usize, end: ChoiceEnd, position: Position) {
        self.finish_with_error(slot, end, position);
    }

    /// An event of the stream itself.
    fn stream_event(&mut self, event: Sequenced<Text>);

    /// The usage of the stream, which is its event with the number `seq`. The router answers later questions about what is
    /// returned.
    fn usage(&mut self, usage: UnreadUsage, seq: u64, position: Position) -> Option<UnreadUsage> {
        let read = Event::Usage(Box::new(usage.read()));
        self.stream_event(Sequenced {
            choice: None,
            seq,
            position,
            event: read,
        });
        Some(usage)
    }
}
