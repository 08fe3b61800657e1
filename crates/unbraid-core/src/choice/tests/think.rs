//! Reasoning in tags, as a choice keeps it: what is held back is delivered, and what nothing confirmed is warned about.

use super::*;

/// Applies updates of content, then a reason if there is one, then the end.
fn ended(tags: ThinkTags, contents: &[Fragment<'static>], reason: Option<&'static str>) -> Choice {
    let mut choice = Choice::new(tags);
    let texts = contents.iter().cloned().map(|content| Update {
        content_update: Some(content),
        ..Update::default()
    });
    let reason = reason.map(|reason| Update {
        finish_reason: Some(reason.into()),
        ..Update::default()
    });
    for update in texts.chain(reason) {
        choice
            .machine
            .apply(&update, Place::default(), &mut choice.log);
    }
    choice
        .machine
        .end(End::Interrupted, Place::default(), &mut choice.log);
    choice
}

#[track_caller]
fn check_warned(tags: ThinkTags, text: &'static str, expected: &[&str]) {
    let choice = ended(tags, &[text.into()], None);
    let codes: Vec<_> = choice.log.warnings().iter().map(|w| w.code).collect();
    assert_eq!(codes, expected, "{tags:?} {text:?}");
}

#[test]
fn c18_reasoning_that_no_tag_confirmed_is_warned_about() {
    check_warned(ThinkTags::SplitOpen, "a", &["C18"]);
    check_warned(ThinkTags::SplitOpen, "a</think>", &[]);
    check_warned(ThinkTags::SplitOpen, "<think>a", &[]);
    check_warned(ThinkTags::SplitOpen, "\n", &[]);
    check_warned(ThinkTags::Split, "<think>a", &[]);
    check_warned(ThinkTags::Split, "a", &[]);
}

#[test]
fn c18_text_that_is_held_back_comes_before_the_finish_reason_or_the_end() {
    let held = Fragment::from("a<thin");
    let events = ended(
        ThinkTags::Split,
        std::slice::from_ref(&held),
        Some("length"),
    )
    .told(0);
    let at = |text: &str| events.iter().position(|event| event.contains(text));
    assert!(
        at("<thin").is_some() && at("<thin") < at("finish"),
        "{events:?}"
    );
    let cut = ended(ThinkTags::Split, &[held], None);
    assert_eq!(cut.log.message().content, "a<thin");
}

#[test]
fn c14_a_half_that_found_no_partner_belongs_to_the_text_around_it() {
    let half = Fragment {
        high: Some(0xd83d),
        ..Fragment::from("x")
    };
    let message = ended(ThinkTags::Split, &["<think>".into(), half.clone()], None)
        .log
        .message();
    assert_eq!(message.reasoning, "x\u{FFFD}");
    assert_eq!(message.content, "");

    let mut choice = Choice::new(ThinkTags::Split);
    let update = Update {
        reasoning_update: Some(half),
        ..Update::default()
    };
    choice
        .machine
        .apply(&update, Place::default(), &mut choice.log);
    let (_, message) = choice.ended(Place::default());
    assert_eq!(message.reasoning, "x\u{FFFD}");
    assert_eq!(message.content, "");
}
