//! Reasoning in tags: text that was held back is delivered, and reasoning that no tag confirmed causes a warning.

use super::*;

/// Applies updates of content, then a reason if there is one, then the end.
fn ended(tags: ThinkTags, contents: &[Fragment<'static>], reason: Option<&'static str>) -> Choice {
    let mut choice = Choice::new(tags);
    let texts = contents.iter().cloned().map(|content| Update {
        content: Some(content),
        ..Update::default()
    });
    let reason = reason.map(|reason| Update {
        finish_reason: Some(reason.into()),
        ..Update::default()
    });
    for update in texts.chain(reason) {
        choice.machine.apply(
            Delta::Update(&update),
            Position::default(),
            &mut choice.transcript,
        );
    }
    choice.machine.finish(
        ChoiceEnd::Interrupted,
        Position::default(),
        &mut choice.transcript,
    );
    choice
}

#[track_caller]
fn check_warnings(tags: ThinkTags, text: &'static str, expected: &[&str]) {
    let choice = ended(tags, &[text.into()], None);
    let codes: Vec<_> = choice
        .transcript
        .warnings()
        .iter()
        .map(|w| w.code)
        .collect();
    assert_eq!(codes, expected, "{tags:?} {text:?}");
}

#[test]
fn c18_reasoning_that_no_tag_confirmed_causes_a_warning() {
    check_warnings(ThinkTags::SplitOpen, "a", &["C18"]);
    check_warnings(ThinkTags::SplitOpen, "a</think>", &[]);
    check_warnings(ThinkTags::SplitOpen, "<think>a", &[]);
    check_warnings(ThinkTags::SplitOpen, "\n", &[]);
    check_warnings(ThinkTags::Split, "<think>a", &[]);
    check_warnings(ThinkTags::Split, "a", &[]);
}

#[test]
fn c18_text_that_is_held_back_precedes_the_finish_reason_or_the_end() {
    let held = Fragment::from("a<thin");
    let events = ended(
        ThinkTags::Split,
        std::slice::from_ref(&held),
        Some("length"),
    )
    .events(0);
    let position = |text: &str| events.iter().position(|event| event.contains(text));
    assert!(
        position("<thin").is_some() && position("<thin") < position("finish"),
        "{events:?}"
    );
    let cut = ended(ThinkTags::Split, &[held], None);
    assert_eq!(cut.transcript.message().content, "a<thin");
}

#[test]
fn c14_a_lone_surrogate_belongs_to_the_text_around_it() {
    let half = Fragment {
        high: Some(0xd83d),
        ..Fragment::from("x")
    };
    let message = ended(ThinkTags::Split, &["<think>".into(), half.clone()], None)
        .transcript
        .message();
    assert_eq!(message.reasoning, "x\u{FFFD}");
    assert_eq!(message.content, "");

    let mut choice = Choice::new(ThinkTags::Split);
    let update = Update {
        reasoning: Some(half),
        ..Update::default()
    };
    choice.machine.apply(
        Delta::Update(&update),
        Position::default(),
        &mut choice.transcript,
    );
    let (_, message) = choice.ended(Position::default());
    assert_eq!(message.reasoning, "x\u{FFFD}");
    assert_eq!(message.content, "");
}
