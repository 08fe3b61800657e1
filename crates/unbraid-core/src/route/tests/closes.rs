//! The router's result of a stream, from updates alone: they may be decoded elsewhere, without bytes or end marks.

use crate::{
    BodyFormat, ChoiceEnd, ChoiceIndex, CompletionKind, Config, FinishReason, Position, Sequenced,
    StreamError, Text, Update,
    route::{ChoiceSink, Router},
    text_delta::Delta,
};

/// Records the ends of choices.
#[derive(Default)]
struct Ends(Vec<ChoiceEnd>);

impl ChoiceSink for Ends {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _kind: CompletionKind) {}
    fn delta(&mut self, _slot: usize, _delta: Delta<'_>, _position: Position) {}
    fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _position: Position) {}
    fn finish(&mut self, _slot: usize, end: ChoiceEnd, _position: Position) {
        self.0.push(end);
    }
    fn finish_with_reason(&mut self, _slot: usize, _position: Position) {
        self.0.push(ChoiceEnd::Finished(FinishReason::Stop));
    }
    fn finish_with_error(&mut self, _slot: usize, end: ChoiceEnd, _position: Position) {
        self.0.push(end);
    }
    fn stream_event(&mut self, _event: Sequenced<Text>) {}
}

fn closed(
    updates: &[Update<'_>],
    bytes: u64,
    framed: bool,
) -> (Result<(), StreamError>, Vec<ChoiceEnd>) {
    let (mut router, mut ends) = (Router::new(Config::default()), Ends::default());
    for update in updates {
        router.update(update, &mut ends);
    }
    router.finish(bytes, framed, &mut ends);
    (
        router.closed().cloned().expect("the stream is closed"),
        ends.0,
    )
}

#[test]
fn a_stream_without_bytes_is_empty_and_any_other_without_choices_is_not_a_stream() {
    let nothing: &[Update<'_>] = &[];
    let unknown = &[Update::default()];
    let empty = |found| matches!(found, (Err(StreamError::Empty { .. }), _));
    let foreign = |found| matches!(found, (Err(StreamError::NotAStream { .. }), _));
    assert!(empty(closed(nothing, 0, false)));
    assert!(empty(closed(nothing, 5, true)), "only comments");
    assert!(foreign(closed(nothing, 5, false)));
    assert!(foreign(closed(unknown, 5, true)));
    assert!(foreign(closed(unknown, 5, false)));
}

#[test]
fn one_choice_is_enough_for_a_stream() {
    let text = Update {
        choice: Some(ChoiceIndex(0)),
        content: Some("a".into()),
        ..Update::default()
    };
    let (result, ends) = closed(&[text], 0, false);
    assert!(result.is_ok());
    assert!(matches!(ends[..], [ChoiceEnd::Interrupted]));
}

#[test]
fn the_first_known_format_counts_unless_a_completion_follows() {
    let closed = |formats: &[BodyFormat]| {
        let of = |format: &BodyFormat| Update {
            format: Some(*format),
            ..Update::default()
        };
        let updates: Vec<_> = formats.iter().map(of).collect();
        match closed(&updates, 5, true).0 {
            Err(StreamError::UnsupportedFormat { format, .. }) => Some(format),
            _ => None,
        }
    };
    let (one, two) = (BodyFormat::Anthropic, BodyFormat::Gemini);
    assert_eq!(closed(&[one, two]), Some(one));
    assert_eq!(closed(&[BodyFormat::Json, two, one]), Some(two));
    assert_eq!(closed(&[one, BodyFormat::Json]), Some(one));
    assert_eq!(closed(&[one, BodyFormat::Completion]), None);
    assert_eq!(closed(&[BodyFormat::Completion, one]), None);
}

#[test]
fn a_stream_error_does_not_reach_a_choice_with_a_finish_reason() {
    let (mut router, mut ends) = (Router::new(Config::default()), Ends::default());
    for (choice, reason) in [(0, Some("stop".into())), (1, None)] {
        let update = Update {
            choice: Some(ChoiceIndex(choice)),
            finish_reason: reason,
            ..Update::default()
        };
        router.update(&update, &mut ends);
    }
    router.abort(StreamError::Lost, &mut ends);
    assert!(matches!(
        ends.0[..],
        [ChoiceEnd::Finished(_), ChoiceEnd::Lost]
    ));
}
