//! What the router says of its choices, and where it puts what it hands on.

use crate::{
    ChoiceIndex, End, Limits, Options, Shape, Stamped, Text, ThinkTags, Update, Warning,
    event::{Event, Place},
    piece::{Lane, Piece},
    route::{Router, Sink},
};

/// Notes what each choice takes and where, and the warnings of the stream. It does not know pieces of text.
#[derive(Default)]
struct Notes {
    updates: Vec<(usize, Place)>,
    texts: String,
    ends: Vec<Place>,
    stream: Vec<(u64, Place)>,
    warned: Vec<Option<ChoiceIndex>>,
}

impl Sink for Notes {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _shape: Shape) {}

    fn update(&mut self, slot: usize, update: &Update<'_>, place: Place) {
        self.updates.push((slot, place));
        if let Some(content) = &update.content_update {
            self.texts.push_str(&content.text);
        }
    }

    fn late(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {}

    fn end(&mut self, _slot: usize, _end: End, place: Place) {
        self.ends.push(place);
    }

    fn fail(&mut self, _slot: usize, _end: End, place: Place) {
        self.ends.push(place);
    }

    fn stream(&mut self, event: Stamped<Text>) {
        self.stream.push((event.seq, event.place));
        if let Event::Warning(warning) = event.event {
            self.warned.push(warning.choice);
        }
    }
}

fn router(expect_choices: Option<u32>) -> (Router, Notes) {
    let options = Options {
        expect_choices,
        ..Options::default()
    };
    (Router::new(options), Notes::default())
}

fn text(at: u64, choice: u32) -> Update<'static> {
    Update {
        at,
        choice_index: Some(ChoiceIndex(choice)),
        content_update: Some("a".into()),
        ..Update::default()
    }
}

fn finish(at: u64, choice: u32) -> Update<'static> {
    Update {
        finish_reason: Some("stop".into()),
        ..text(at, choice)
    }
}

fn piece(at: u64) -> Piece<'static> {
    Piece {
        at,
        choice: ChoiceIndex(0),
        shape: Shape::Chat,
        role: None,
        lane: Lane::Content,
        text: "b",
    }
}

#[test]
fn a_choice_that_has_its_reason_is_finished_until_it_ends() {
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
    router.quiet(&mut notes);
    assert_eq!(state(&router), (false, [true, true, false]));
}

#[test]
fn pieces_of_text_are_updates_for_a_sink_that_knows_no_pieces_but_are_not_counted() {
    let (mut router, mut notes) = router(None);
    router.update(&text(0, 0), &mut notes);
    assert_eq!(router.updates(), 1);
    router.piece(&piece(1), &mut notes);
    assert_eq!(router.updates(), 1);
    assert_eq!(notes.texts, "ab");
    router.update(&text(2, 0), &mut notes);
    assert_eq!(router.updates(), 2);
}

#[test]
fn updates_are_counted_within_their_event_and_the_close_is_behind_the_last_one() {
    let (mut router, mut notes) = router(Some(3));
    for update in [text(4, 0), text(4, 1), text(4, 0), text(5, 0)] {
        router.update(&update, &mut notes);
    }
    let places = notes.updates.iter().map(|(_, p)| (p.at, p.position));
    assert_eq!(places.collect::<Vec<_>>(), [(4, 0), (4, 1), (4, 2), (5, 0)]);
    router.finish(1, true, &mut notes);
    assert!(notes.ends.iter().all(|place| place.at == 6));
    assert_eq!(notes.stream, [(0, Place::close(6))], "E30");
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
    let warned = |expect_choices| {
        let (mut router, mut notes) = router(expect_choices);
        let update = Update {
            warnings: vec![
                Warning::new("X1", 0, "of a choice").on(ChoiceIndex(3)),
                Warning::new("X2", 0, "of the stream"),
            ],
            ..text(0, 3)
        };
        router.update(&update, &mut notes);
        notes.warned
    };
    assert_eq!(warned(None), [Some(ChoiceIndex(3)), None]);
    assert_eq!(warned(Some(1)), [Some(ChoiceIndex(0)), None]);
}

/// How many texts a choice takes under these limits, as pieces and as updates.
fn texts_within(limits: &Limits) -> [usize; 2] {
    [true, false].map(|as_pieces| {
        let options = Options {
            limits: limits.clone(),
            ..Options::default()
        };
        let (mut router, mut notes) = (Router::new(options), Notes::default());
        router.update(&text(0, 0), &mut notes);
        for at in 1..20 {
            if as_pieces {
                router.piece(&piece(at), &mut notes);
            } else {
                router.update(&piece(at).to_update(), &mut notes);
            }
        }
        notes.texts.len()
    })
}

#[test]
fn a_piece_of_text_meets_the_same_limits_as_an_update() {
    let five = 5 * piece(1).to_update().cost();
    let choice = |choice_bytes| Limits {
        choice_bytes,
        ..Limits::default()
    };
    assert_eq!(texts_within(&choice(five)), [5, 5]);
    assert_eq!(texts_within(&choice(five - 1)), [4, 4]);
    let completion = |completion_bytes| Limits {
        completion_bytes,
        ..Limits::default()
    };
    assert_eq!(texts_within(&completion(five)), [5, 5]);
    assert_eq!(texts_within(&completion(five - 1)), [4, 4]);
    assert_eq!(texts_within(&Limits::default()), [20, 20]);
}

#[test]
fn tags_that_split_a_text_are_charged_to_its_choice() {
    let update = Update {
        content_update: Some("<think>a</think>b".into()),
        ..text(0, 0)
    };
    let (plain, tags) = (update.cost(), 2 * crate::limits::DELTA_COST);
    let taken = |think_tags, choice_bytes| {
        let options = Options {
            think_tags,
            limits: Limits {
                choice_bytes,
                ..Limits::default()
            },
            ..Options::default()
        };
        let (mut router, mut notes) = (Router::new(options), Notes::default());
        router.update(&update, &mut notes);
        notes.updates.len()
    };
    assert_eq!(taken(ThinkTags::Split, plain + tags), 1);
    assert_eq!(taken(ThinkTags::Split, plain + tags - 1), 0);
    assert_eq!(taken(ThinkTags::Off, plain), 1);
    assert_eq!(taken(ThinkTags::Off, plain - 1), 0);
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
    router.quiet(&mut notes);
    assert!(!router.all_cancelled(), "one has ended by itself");
}

/// Counts what reaches it as a piece, and what as an update.
#[derive(Default)]
struct Pieces {
    pieces: usize,
    updates: usize,
}

impl Sink for Pieces {
    fn open(&mut self, _slot: usize, _index: ChoiceIndex, _shape: Shape) {}
    fn update(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {
        self.updates += 1;
    }
    fn piece(&mut self, _slot: usize, _piece: &Piece<'_>, _place: Place) {
        self.pieces += 1;
    }
    fn late(&mut self, _slot: usize, _update: &Update<'_>, _place: Place) {}
    fn end(&mut self, _slot: usize, _end: End, _place: Place) {}
    fn fail(&mut self, _slot: usize, _end: End, _place: Place) {}
    fn stream(&mut self, _event: Stamped<Text>) {}
}

/// How many of these pieces stay pieces, behind an update that has opened choice 0.
#[track_caller]
fn check_pieces(options: Options, pieces: &[Piece<'_>], expected: usize) {
    let (mut router, mut sink) = (Router::new(options), Pieces::default());
    router.update(&text(0, 0), &mut sink);
    for piece in pieces {
        router.piece(piece, &mut sink);
    }
    let found = (sink.pieces, sink.updates);
    assert_eq!(found, (expected, 1 + pieces.len() - expected));
}

#[test]
fn a_piece_stays_a_piece_where_its_choice_takes_it_as_it_is() {
    let of_choice = |choice| Piece {
        choice: ChoiceIndex(choice),
        ..piece(1)
    };
    let reasoning = Piece {
        lane: Lane::Reasoning,
        ..piece(1)
    };
    let default = Options::default;
    check_pieces(default(), &[piece(1), reasoning, of_choice(0)], 3);
    check_pieces(default(), &[of_choice(1), of_choice(1)], 1);
    let folded = || Options {
        expect_choices: Some(1),
        ..default()
    };
    check_pieces(folded(), &[piece(1), piece(2)], 2);
    check_pieces(folded(), &[of_choice(1), of_choice(1), piece(2)], 0);
    let split = || Options {
        think_tags: ThinkTags::Split,
        ..default()
    };
    check_pieces(split(), &[piece(1)], 0);
    check_pieces(split(), &[reasoning], 1);
}

#[test]
fn usage_beside_a_piece_is_read_as_beside_its_update() {
    let of_one = Piece {
        choice: ChoiceIndex(1),
        ..piece(2)
    };
    let usage = |as_piece: bool| {
        let (mut router, mut notes) = router(None);
        for update in [text(0, 0), text(0, 1), finish(1, 0)] {
            router.update(&update, &mut notes);
        }
        if as_piece {
            router.piece(&of_one, &mut notes);
        } else {
            router.update(&of_one.to_update(), &mut notes);
        }
        let beside = Update {
            at: 2,
            usage: Some("{\"completion_tokens\":3}".into()),
            ..Update::default()
        };
        router.update(&beside, &mut notes);
        router.usage()
    };
    assert_eq!(usage(true), usage(false));
    assert_eq!(usage(true).per_choice, [], "it is of no choice alone");
}
