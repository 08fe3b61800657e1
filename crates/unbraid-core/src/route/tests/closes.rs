//! What a stream came to, asked of the router alone: updates may be made elsewhere, without bytes or marks.

use crate::{
    BodyFormat, ChoiceIndex, End, Options, Place, Shape, Stamped, StreamError, Text, Update,
    route::{Router, Sink},
};

/// Notes the ends of choices.
#[derive(Default)]
struct Ends(Vec<End>);

impl Sink for Ends {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _shape: Shape) {}
    fn update(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {}
    fn late(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {}
    fn end(&mut self, _slot: usize, end: End, _place: Place) {
        self.0.push(end);
    }
    fn fail(&mut self, _slot: usize, end: End, _place: Place) {
        self.0.push(end);
    }
    fn stream(&mut self, _event: Stamped<Text>) {}
}

fn closed(updates: &[Update<'_>], bytes: u64, framed: bool) -> (Result<(), StreamError>, Vec<End>) {
    let (mut router, mut ends) = (Router::new(Options::default()), Ends::default());
    for update in updates {
        router.update(update, &mut ends);
    }
    router.finish(bytes, framed, &mut ends);
    (router.closed().cloned().expect("it is over"), ends.0)
}

#[test]
fn a_stream_of_nothing_is_empty_and_one_of_anything_else_is_no_stream() {
    let nothing: &[Update<'_>] = &[];
    let unknown = &[Update::default()];
    let empty = |found| matches!(found, (Err(StreamError::Empty { .. }), _));
    let foreign = |found| matches!(found, (Err(StreamError::NotAStream { .. }), _));
    assert!(empty(closed(nothing, 0, false)));
    assert!(empty(closed(nothing, 5, true)), "comments alone");
    assert!(foreign(closed(nothing, 5, false)));
    assert!(foreign(closed(unknown, 5, true)));
    assert!(foreign(closed(unknown, 5, false)));
}

#[test]
fn a_choice_makes_a_stream_of_updates_that_nothing_else_marks() {
    let text = Update {
        choice_index: Some(ChoiceIndex(0)),
        content_update: Some("a".into()),
        ..Update::default()
    };
    let (result, ends) = closed(&[text], 0, false);
    assert!(result.is_ok());
    assert!(matches!(ends[..], [End::Interrupted]));
}

#[test]
fn the_first_known_format_counts_unless_a_completion_comes() {
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
fn an_error_of_the_stream_does_not_reach_a_choice_that_has_its_reason() {
    let (mut router, mut ends) = (Router::new(Options::default()), Ends::default());
    for (choice, reason) in [(0, Some("stop".into())), (1, None)] {
        let update = Update {
            choice_index: Some(ChoiceIndex(choice)),
            finish_reason: reason,
            ..Update::default()
        };
        router.update(&update, &mut ends);
    }
    router.fail(StreamError::Lost, &mut ends);
    assert!(matches!(ends.0[..], [End::DoneWithoutFinish, End::Lost]));
}
