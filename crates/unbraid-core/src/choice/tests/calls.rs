//! Which call an entry belongs to if only some entries have an index, and when arguments only continue a call.

use super::*;
use crate::limits::MAX_FIELDS;

fn apply(choice: &mut Choice, entry: ToolCallUpdate<'static>) {
    let update = Update {
        tool_calls: vec![entry],
        ..Update::default()
    };
    choice.machine.apply(
        Delta::Update(&update),
        Position::default(),
        &mut choice.transcript,
    );
}

fn header(
    wire_index: Option<i64>,
    id: Option<&'static str>,
    name: &'static str,
) -> ToolCallUpdate<'static> {
    ToolCallUpdate {
        wire_index,
        id: id.map(Into::into),
        name: Some(name.into()),
        arguments: Some("{}".into()),
        ..ToolCallUpdate::default()
    }
}

#[test]
fn t02_a_header_with_an_index_after_one_without_is_another_call() {
    let mut choice = Choice::new(ThinkTags::Off);
    apply(&mut choice, header(None, Some("a"), "f"));
    apply(&mut choice, header(Some(0), None, "g"));
    let (_, message) = choice.ended(Position::default());
    let names: Vec<_> = message.tool_calls.iter().map(|call| &*call.name).collect();
    assert_eq!(names, ["f", "g"]);
}

#[test]
fn arguments_only_continue_a_call_that_has_appeared() {
    let mut choice = Choice::new(ThinkTags::Off);
    let continues = |choice: &Choice, index| {
        choice
            .machine
            .only_continues(DeltaKind::Arguments(index), None, &choice.transcript)
    };
    assert!(!continues(&choice, 0), "there is no call");
    apply(&mut choice, header(Some(0), Some("a"), "f"));
    assert!(continues(&choice, 0));
    assert!(!continues(&choice, 1), "another call");
}

fn names(choice: Choice) -> Vec<String> {
    let (_, message) = choice.ended(Position::default());
    let calls = message.tool_calls.iter();
    calls
        .map(|call| format!("{} {}", call.name, call.arguments))
        .collect()
}

#[test]
fn t09_a_known_id_without_an_index_continues_its_call() {
    let mut choice = Choice::new(ThinkTags::Off);
    apply(&mut choice, header(Some(0), Some("a"), "f"));
    apply(&mut choice, header(None, Some("a"), "f"));
    assert_eq!(names(choice), ["f {}{}"]);
}

#[test]
fn t14_a_repeated_id_on_another_index_adopts_the_unnamed_call_there() {
    let mut choice = Choice::new(ThinkTags::Off);
    apply(&mut choice, header(Some(0), Some("a"), "f"));
    for (index, arguments) in [(1, "x"), (2, "y")] {
        let slot = ToolCallUpdate {
            wire_index: Some(index),
            arguments: Some(arguments.into()),
            ..ToolCallUpdate::default()
        };
        apply(&mut choice, slot);
    }
    apply(&mut choice, header(Some(1), Some("a"), "g"));
    assert_eq!(names(choice), ["f {}", "g x{}", " y"]);
}

#[test]
fn t03_a_call_with_an_id_but_no_name_is_not_the_header_of_the_next() {
    let mut choice = Choice::new(ThinkTags::Off);
    let nameless = ToolCallUpdate {
        id: Some("a".into()),
        arguments: Some("x".into()),
        ..ToolCallUpdate::default()
    };
    apply(&mut choice, nameless);
    apply(&mut choice, header(None, Some("b"), "g"));
    assert_eq!(names(choice), [" x", "g {}"]);
}

#[test]
fn t40_unknown_fields_of_a_call_are_kept_up_to_the_limit() {
    let mut choice = Choice::new(ThinkTags::Off);
    let field = |number: usize| (format!("field{number}").into(), "1".into());
    let entry = ToolCallUpdate {
        extra: (0..MAX_FIELDS + 1).map(field).collect(),
        ..header(Some(0), Some("a"), "f")
    };
    apply(&mut choice, entry);
    let (_, message) = choice.ended(Position::default());
    assert_eq!(message.tool_calls[0].extra.len(), MAX_FIELDS);
}

#[test]
fn c14_a_lone_surrogate_ends_the_arguments_of_its_call() {
    let half = || Fragment {
        high: Some(0xd83d),
        ..Fragment::from("x")
    };
    let mut choice = Choice::new(ThinkTags::Off);
    let named = ToolCallUpdate {
        arguments: Some(half()),
        ..header(Some(0), Some("a"), "f")
    };
    let nameless = ToolCallUpdate {
        wire_index: Some(1),
        arguments: Some(half()),
        ..ToolCallUpdate::default()
    };
    apply(&mut choice, named);
    apply(&mut choice, nameless);
    assert_eq!(names(choice), ["f x\u{FFFD}", " x\u{FFFD}"]);
}

#[test]
fn a_call_that_continues_after_the_end_gets_its_status_again() {
    let mut choice = Choice::new(ThinkTags::Off);
    let opened = ToolCallUpdate {
        arguments: Some("{".into()),
        ..header(Some(0), Some("a"), "f")
    };
    apply(&mut choice, opened);
    let position = Position::default();
    let reason = Update {
        finish_reason: Some("stop".into()),
        ..Update::default()
    };
    choice
        .machine
        .apply(Delta::Update(&reason), position, &mut choice.transcript);
    choice
        .machine
        .finish(ChoiceEnd::Interrupted, position, &mut choice.transcript);
    let before = choice.transcript.message().tool_calls[0].status;
    let rest = ToolCallUpdate {
        wire_index: Some(0),
        arguments: Some("}".into()),
        ..ToolCallUpdate::default()
    };
    let late = Update {
        tool_calls: vec![rest],
        ..Update::default()
    };
    choice
        .machine
        .apply_late(&late, position, &mut choice.transcript);
    let call = &choice.transcript.message().tool_calls[0];
    assert_eq!(call.arguments, "{}");
    assert_ne!(call.status, before, "it is complete now");
}
