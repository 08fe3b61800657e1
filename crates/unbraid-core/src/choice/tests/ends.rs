//! Which of two ends a choice keeps.

use super::*;
use crate::Limit;

fn finished() -> (ChoiceMachine, Transcript) {
    let mut choice = Choice::new(ThinkTags::Off);
    let update = Update {
        finish_reason: Some("stop".into()),
        ..Update::default()
    };
    choice.machine.apply(
        Delta::Update(&update),
        Position::default(),
        &mut choice.transcript,
    );
    (choice.machine, choice.transcript)
}

#[test]
fn a_finish_reason_is_the_end_unless_a_limit_of_the_choice_was_exceeded() {
    let end_by = |limit| {
        let (mut machine, mut transcript) = finished();
        let exceeded = LimitExceeded::new(limit, 1);
        machine.finish(
            ChoiceEnd::LimitExceeded(exceeded),
            Position::default(),
            &mut transcript,
        );
        transcript.end().map(ChoiceEnd::as_str)
    };
    assert_eq!(end_by(Limit::ToolCalls), Some("limit_exceeded"));
    assert_eq!(end_by(Limit::ChoiceBytes), Some("limit_exceeded"));
    assert_eq!(end_by(Limit::CompletionBytes), Some("finished"));
    assert_eq!(end_by(Limit::Choices), Some("finished"));
}

#[test]
fn a_machine_has_ended_when_its_transcript_has_an_end() {
    let (mut machine, mut transcript) = finished();
    assert!(!machine.ended(), "a finish reason is not an end");
    machine.finish(ChoiceEnd::Interrupted, Position::default(), &mut transcript);
    assert!(machine.ended());
}
