//! Which of two ends a choice keeps, and that it says when it has one.

use super::*;
use crate::Limit;

fn finished() -> (Machine, Transcript) {
    let mut choice = Choice::new(ThinkTags::Off);
    let update = Update {
        finish_reason: Some("stop".into()),
        ..Update::default()
    };
    choice
        .machine
        .apply(&update, Place::default(), &mut choice.log);
    (choice.machine, choice.log)
}

#[test]
fn a_finish_reason_is_the_better_end_except_where_a_limit_of_the_choice_was_exceeded() {
    let end_by = |limit| {
        let (mut machine, mut log) = finished();
        let exceeded = LimitExceeded { limit, max: 1 };
        machine.end(End::LimitExceeded(exceeded), Place::default(), &mut log);
        log.end().map(End::name)
    };
    assert_eq!(end_by(Limit::ToolCalls), Some("limit_exceeded"));
    assert_eq!(end_by(Limit::ChoiceBytes), Some("limit_exceeded"));
    assert_eq!(end_by(Limit::CompletionBytes), Some("finished"));
    assert_eq!(end_by(Limit::Choices), Some("finished"));
}

#[test]
fn a_machine_has_ended_when_its_transcript_has_an_end() {
    let (mut machine, mut log) = finished();
    assert!(!machine.ended(), "a finish reason is no end");
    machine.end(End::Interrupted, Place::default(), &mut log);
    assert!(machine.ended());
}
