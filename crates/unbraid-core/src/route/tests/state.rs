//! The router's answers about its choices, and the positions of what it delivers.

use crate::{
    ChoiceEnd, ChoiceIndex, CompletionKind, Config, Event, Limits, Position, Sequenced, Text,
    ThinkTags, Update, Warning,
    route::{ChoiceSink, Router},
    text_delta::{Delta, DeltaKind, TextDelta},
};

/// Records the updates of each choice with their positions, and the warnings of the stream.
#[derive(Default)]
struct Notes {
    updates: Vec<(usize, Position)>,
    texts: String,
    ends: Vec<Position>,
    stream: Vec<(u64, Position)>,
    warnings: Vec<Option<ChoiceIndex>>,
}

impl ChoiceSink for Notes {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _kind: CompletionKind) {}

    fn delta(&mut self, slot: usize, delta: Delta<'_>, position: Position) {
        self.updates.push((slot, position));
        match delta {
            Delta::Text(text) => self.texts.push_str(text.text),
            Delta::Update(update) => {
                let content = update.content.iter();
                self.texts.extend(content.map(|content| &*content.text));
            }
        }
    }

    fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _position: Position) {}

    fn finish(&mut self, _slot: usize, _end: ChoiceEnd, position: Position) {
        self.ends.push(position);
    }

    fn finish_with_reason(&mut self, _slot: usize, position: Position) {
        self.ends.push(position);
    }

    fn finish_with_error(&mut self, _slot: usize, _end: ChoiceEnd, position: Position) {
        self.ends.push(position);
    }

    fn stream_event(&mut self, event: Sequenced<Text>) {
        self.stream.push((event.seq, event.position));
        if let Event::Warning(warning) = event.event {
            self.warnings.push(warning.choice);
        }
    }
}

fn router(expect_choices: Option<u32>) -> (Router, Notes) {
    let config = Config::default().with_expect_choices(expect_choices);
    (Router::new(config), Notes::default())
}

fn text(event: u64, choice: u32) -> Update<'static> {
    Update {
        event_index: event.into(),
        choice: Some(ChoiceIndex(choice)),
        content: Some("a".into()),
        ..Update::default()
    }
}

fn finish(event: u64, choice: u32) -> Update<'static> {
    Update {
        finish_reason: Some("stop".into()),
        ..text(event, choice)
    }
}

fn delta(event: u64) -> TextDelta<'static> {
    TextDelta::new(event.into(), ChoiceIndex(0), DeltaKind::Content, "b")
}

#[test]
fn a_choice_with_a_finish_reason_is_finished_until_it_ends() {
    let (mut router, mut notes) = router(None);
    let state = |router: &Router| {
        let ended = [0, 1, 2].map(|slot| router.has_ended(slot));
        (router.has_finished_choices(), ended)
    };
    router.update(&text(0, 0), &mut notes);
    router.update(&text(1, 1), &mut notes);
    assert_eq!(state(&router), (false, [false, false, false]));
    router.update(&finish(2, 0), &mut notes);
    router.update(&finish(2, 1), &mut notes);
    assert_eq!(state(&router), (true, [false, false, false]));
    router.cancel(0, &mut notes);
    assert_eq!(state(&router), (true, [true, false, false]));
    router.handle_idle(&mut notes);
    assert_eq!(state(&router), (false, [true, true, false]));
}

#[test]
fn text_deltas_are_updates_for_a_sink_without_text_deltas_but_are_not_counted() {
    let (mut router, mut notes) = router(None);
    router.update(&text(0, 0), &mut notes);
    assert_eq!(router.updates(), 1);
    router.text_delta(&delta(1), &mut notes);
    assert_eq!(router.updates(), 1);
    assert_eq!(notes.texts, "ab");
    router.update(&text(2, 0), &mut notes);
    assert_eq!(router.updates(), 2);
}

#[test]
fn updates_are_counted_within_their_event_and_the_close_follows_the_last_event() {
    let (mut router, mut notes) = router(Some(3));
    for update in [text(4, 0), text(4, 1), text(4, 0), text(5, 0)] {
        router.update(&update, &mut notes);
    }
    let positions = notes.updates.iter().map(|(_, p)| (p.event.0, p.update));
    assert_eq!(
        positions.collect::<Vec<_>>(),
        [(4, 0), (4, 1), (4, 2), (5, 0)]
    );
    router.finish(1, true, &mut notes);
    assert!(notes.ends.iter().all(|position| position.event.0 == 6));
    assert_eq!(notes.stream, [(0, Position::close(6.into()))], "E30");
}

#[test]
fn events_of_the_stream_are_numbered() {
    let (mut router, mut notes) = router(None);
    let update = Update {
        warnings: vec![Warning::new("X1", 0, "one"), Warning::new("X2", 0, "two")],
        ..text(0, 0)
    };
    router.update(&update, &mut notes);
    let seqs = notes.stream.iter().map(|(seq, _)| *seq);
    assert_eq!(seqs.collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn a_warning_names_the_choice_that_its_index_is_read_as() {
    let choices = |expect_choices| {
        let (mut router, mut notes) = router(expect_choices);
        let update = Update {
            warnings: vec![
                Warning::new("X1", 0, "of a choice").with_choice(ChoiceIndex(3)),
                Warning::new("X2", 0, "of the stream"),
            ],
            ..text(0, 3)
        };
        router.update(&update, &mut notes);
        notes.warnings
    };
    assert_eq!(choices(None), [Some(ChoiceIndex(3)), None]);
    assert_eq!(choices(Some(1)), [Some(ChoiceIndex(0)), None]);
}

/// The number of texts that a choice takes under these limits, as text deltas and as updates.
fn texts_within(limits: &Limits) -> [usize; 2] {
    [true, false].map(|as_deltas| {
        let config = Config::default().with_limits(limits.clone());
        let (mut router, mut notes) = (Router::new(config), Notes::default());
        router.update(&text(0, 0), &mut notes);
        for event in 1..20 {
            if as_deltas {
                router.text_delta(&delta(event), &mut notes);
            } else {
                router.update(&delta(event).to_update(), &mut notes);
            }
        }
        notes.texts.len()
    })
}

#[test]
fn a_text_delta_has_the_same_limits_as_an_update() {
    let five = 5 * delta(1).to_update().cost();
    let choice = |bytes| Limits::default().with_choice_bytes(bytes);
    assert_eq!(texts_within(&choice(five)), [5, 5]);
    assert_eq!(texts_within(&choice(five - 1)), [4, 4]);
    let completion = |bytes| Limits::default().with_completion_bytes(bytes);
    assert_eq!(texts_within(&completion(five)), [5, 5]);
    assert_eq!(texts_within(&completion(five - 1)), [4, 4]);
    assert_eq!(texts_within(&Limits::default()), [20, 20]);
}

#[test]
fn tags_that_split_a_text_are_charged_to_its_choice() {
    let update = Update {
        content: Some("<think>a</think>b".into()),
        ..text(0, 0)
    };
    let (cost, tags) = (update.cost(), 2 * crate::limits::DELTA_COST);
    let taken = |think_tags, choice_bytes| {
        let config = Config::default()
            .with_think_tags(think_tags)
            .with_limits(Limits::default().with_choice_bytes(choice_bytes));
        let (mut router, mut notes) = (Router::new(config), Notes::default());
        router.update(&update, &mut notes);
        notes.updates.len()
    };
    assert_eq!(taken(ThinkTags::Split, cost + tags), 1);
    assert_eq!(taken(ThinkTags::Split, cost + tags - 1), 0);
    assert_eq!(taken(ThinkTags::Off, cost), 1);
    assert_eq!(taken(ThinkTags::Off, cost - 1), 0);
}

#[test]
fn a_stream_whose_choices_are_all_dropped_ends_at_the_limit_of_the_completion() {
    let spent = (2 + 100) * text(0, 0).cost();
    let limits = Limits::default().with_completion_bytes(spent);
    let config = Config::default().with_limits(limits);
    let (mut router, mut notes) = (Router::new(config), Notes::default());
    for slot in 0..2 {
        router.update(&text(0, slot), &mut notes);
    }
    router.cancel(0, &mut notes);
    // What is dropped costs nothing as long as a choice is open.
    (0..200).for_each(|_| router.update(&text(1, 0), &mut notes));
    router.cancel(1, &mut notes);
    (0..100).for_each(|_| router.update(&text(1, 0), &mut notes));
    assert!(router.closed().is_none());
    router.update(&text(1, 0), &mut notes);
    let closed = router.closed().unwrap().as_ref().unwrap_err();
    assert_eq!(closed.as_str(), "limit_exceeded");
}

#[test]
fn all_choices_are_cancelled_only_if_none_is_open_or_ended_by_itself() {
    let (mut router, mut notes) = router(None);
    for slot in 0..2 {
        router.update(&text(0, slot), &mut notes);
    }
    assert!(!router.all_cancelled());
    router.cancel(0, &mut notes);
    assert!(!router.all_cancelled(), "one is open");
    router.cancel(1, &mut notes);
    assert!(router.all_cancelled());
    router.update(&finish(1, 2), &mut notes);
    router.handle_idle(&mut notes);
    assert!(!router.all_cancelled(), "one has ended by itself");
}

/// Counts the text deltas and the updates that reach it.
#[derive(Default)]
struct Counts {
    deltas: usize,
    updates: usize,
}

impl ChoiceSink for Counts {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _kind: CompletionKind) {}
    fn delta(&mut self, _slot: usize, delta: Delta<'_>, _position: Position) {
        match delta {
            Delta::Text(_) => self.deltas += 1,
            Delta::Update(_) => self.updates += 1,
        }
    }
    fn late_update(&mut self, _slot: usize, _update: &Update<'_>, _position: Position) {}
    fn finish(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
    fn finish_with_reason(&mut self, _slot: usize, _position: Position) {}
    fn finish_with_error(&mut self, _slot: usize, _end: ChoiceEnd, _position: Position) {}
    fn stream_event(&mut self, _event: Sequenced<Text>) {}
}

/// Checks how many of these text deltas are delivered as such, after an update that has opened choice 0.
#[track_caller]
fn check_deltas(config: Config, deltas: &[TextDelta<'_>], expected: usize) {
    let (mut router, mut sink) = (Router::new(config), Counts::default());
    router.update(&text(0, 0), &mut sink);
    for delta in deltas {
        router.text_delta(delta, &mut sink);
    }
    let counts = (sink.deltas, sink.updates);
    assert_eq!(counts, (expected, 1 + deltas.len() - expected));
}

#[test]
fn a_text_delta_is_delivered_as_such_if_its_choice_needs_no_update() {
    let of_choice = |choice| TextDelta {
        choice: ChoiceIndex(choice),
        ..delta(1)
    };
    let reasoning = TextDelta {
        text_kind: DeltaKind::Reasoning,
        ..delta(1)
    };
    let default = Config::default;
    check_deltas(default(), &[delta(1), reasoning, of_choice(0)], 3);
    check_deltas(default(), &[of_choice(1), of_choice(1)], 1);
    let folded = || default().with_expect_choices(1);
    check_deltas(folded(), &[delta(1), delta(2)], 2);
    check_deltas(folded(), &[of_choice(1), of_choice(1), delta(2)], 0);
    let split = || default().with_think_tags(ThinkTags::Split);
    check_deltas(split(), &[delta(1)], 0);
    check_deltas(split(), &[reasoning], 1);
}

#[test]
fn usage_beside_a_text_delta_is_read_as_beside_its_update() {
    let of_one = TextDelta {
        choice: ChoiceIndex(1),
        ..delta(2)
    };
    let usage = |as_delta: bool| {
        let (mut router, mut notes) = router(None);
        for update in [text(0, 0), text(0, 1), finish(1, 0)] {
            router.update(&update, &mut notes);
        }
        if as_delta {
            router.text_delta(&of_one, &mut notes);
        } else {
            router.update(&of_one.to_update(), &mut notes);
        }
        let beside = Update {
            event_index: 2.into(),
            usage: Some("{\"completion_tokens\":3}".into()),
            ..Update::default()
        };
        router.update(&beside, &mut notes);
        router.usage()
    };
    assert_eq!(usage(true), usage(false));
    assert_eq!(usage(true).per_choice, [], "it belongs to no single choice");
}
