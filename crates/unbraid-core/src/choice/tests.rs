//! A piece against the update that says the same, in whatever state they find a choice.

mod calls;
mod cut;
mod ends;
mod think;

use unbraid_testkit::cut::Rng;

use super::*;
use crate::{ChoiceIndex, Message, Shape, ThinkTags, ToolCallUpdate};

const LANES: [Lane; 5] = [
    Lane::Content,
    Lane::Reasoning,
    Lane::Refusal,
    Lane::Arguments(0),
    Lane::Arguments(1),
];

const ROLES: [Option<&str>; 3] = [None, Some("assistant"), Some("user")];

/// A choice's machine and its transcript.
struct Choice {
    machine: Machine,
    log: Transcript,
}

impl Choice {
    fn new(think_tags: ThinkTags) -> Self {
        Self {
            machine: Machine::new(&Options {
                think_tags,
                ..Options::default()
            }),
            log: Transcript::new(ChoiceIndex(0), Shape::Chat),
        }
    }

    fn plain(&self) -> Vec<(Lane, Option<&'static str>)> {
        let all = LANES
            .into_iter()
            .flat_map(|lane| ROLES.map(|role| (lane, role)));
        all.filter(|(lane, role)| self.machine.is_plain(*lane, *role, &self.log))
            .collect()
    }

    fn told(&self, from: usize) -> Vec<String> {
        let events = (from..self.log.visible()).filter_map(|seq| self.log.event(seq));
        events.map(|event| event.to_string()).collect()
    }

    fn ended(mut self, place: Place) -> (Vec<String>, Message) {
        self.machine.end(End::Interrupted, place, &mut self.log);
        (self.told(0), self.log.message())
    }
}

/// What is no piece: a role alone, halves of a character, calls with and without a name, a reason, an end.
fn update(rng: &mut Rng) -> Update<'static> {
    let mut update = Update {
        recognised: true,
        choice_index: Some(ChoiceIndex(0)),
        ..Update::default()
    };
    let half = Fragment {
        high: Some(0xd83d),
        ..Fragment::from("x")
    };
    let call = |rng: &mut Rng| ToolCallUpdate {
        index: rng.chance(0.9).then(|| rng.below(3) as i64),
        id: rng.chance(0.5).then(|| "id".into()),
        name: rng.chance(0.7).then(|| Fragment::from("name")),
        arguments: rng.chance(0.7).then(|| Fragment::from("{")),
        ..ToolCallUpdate::default()
    };
    match rng.below(16) {
        0..3 => update.role = ROLES[1 + rng.below(2)].map(Cow::Borrowed),
        3 => update.content_update = Some(half),
        4 => update.reasoning_update = Some(half),
        5..12 => update.tool_call_updates.push(call(rng)),
        12 => update.function_name = Some("old".into()),
        13 if rng.chance(0.3) => update.finish_reason = Some("stop".into()),
        _ => update.content_update = Some("text".into()),
    }
    update
}

#[test]
fn a_piece_does_what_its_update_does() {
    let (mut plain, mut other) = (0, 0);
    for seed in 0..3000 {
        let rng = &mut Rng::new(seed);
        let tags = [ThinkTags::Off, ThinkTags::Split, ThinkTags::SplitOpen][rng.below(3)];
        let (mut quick, mut slow) = (Choice::new(tags), Choice::new(tags));
        let mut place = Place::default();
        for at in 0..24 {
            place.at = at;
            if rng.chance(0.3) {
                let update = update(rng);
                quick.machine.apply(&update, place, &mut quick.log);
                slow.machine.apply(&update, place, &mut slow.log);
                continue;
            }
            let piece = Piece {
                at,
                choice: ChoiceIndex(0),
                shape: Shape::Chat,
                role: ROLES[rng.below(3)],
                lane: LANES[rng.below(5)],
                text: ["piece", "piece <", "think>piece", "</think>piece"][rng.below(4)],
            };
            let (known, before) = (quick.plain(), quick.log.visible());
            quick.machine.piece(&piece, place, &mut quick.log);
            slow.machine.apply(&piece.to_update(), place, &mut slow.log);
            assert_eq!(quick.told(before), slow.told(before), "seed {seed}, {at}");
            if known.contains(&(piece.lane, piece.role)) {
                plain += 1;
                let told = quick.told(before);
                assert_eq!(told.len(), 1, "seed {seed}, {at}: {told:?}");
                assert!(told[0].contains("piece"), "seed {seed}, {at}: {told:?}");
                assert_eq!(quick.plain(), known, "seed {seed}, {at}");
            } else {
                other += 1;
            }
        }
        assert_eq!(quick.ended(place), slow.ended(place), "seed {seed}");
    }
    assert!(plain > 1000 && other > 1000, "{plain} plain, {other} not");
}
