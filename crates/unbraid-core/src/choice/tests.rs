//! Applies text deltas and the equivalent updates to choices in random states, and compares the results.

mod calls;
mod cut;
mod ends;
mod think;

use std::borrow::Cow;

use unbraid_testkit::cut::Rng;

use super::*;
use crate::{
    ChoiceIndex, CompletionKind, EventIndex, Fragment, Message, ThinkTags, ToolCallUpdate,
};

const KINDS: [DeltaKind; 5] = [
    DeltaKind::Content,
    DeltaKind::Reasoning,
    DeltaKind::Refusal,
    DeltaKind::Arguments(0),
    DeltaKind::Arguments(1),
];

const ROLES: [Option<&str>; 3] = [None, Some("assistant"), Some("user")];

/// A choice's machine and its transcript.
struct Choice {
    machine: ChoiceMachine,
    transcript: Transcript,
}

impl Choice {
    fn new(think_tags: ThinkTags) -> Self {
        Self {
            machine: ChoiceMachine::new(Config {
                think_tags,
                ..Config::default()
            }),
            transcript: Transcript::new(ChoiceIndex(0), CompletionKind::Chat),
        }
    }

    fn continuing(&self) -> Vec<(DeltaKind, Option<&'static str>)> {
        let all = KINDS
            .into_iter()
            .flat_map(|kind| ROLES.map(|role| (kind, role)));
        all.filter(|(kind, role)| self.machine.only_continues(*kind, *role, &self.transcript))
            .collect()
    }

    fn events(&self, from: usize) -> Vec<String> {
        let events =
            (from..self.transcript.event_count()).filter_map(|seq| self.transcript.event(seq));
        events.map(|event| event.to_string()).collect()
    }

    fn ended(mut self, position: Position) -> (Vec<String>, Message) {
        self.machine
            .finish(ChoiceEnd::Interrupted, position, &mut self.transcript);
        (self.events(0), self.transcript.message())
    }
}

/// An update without an equivalent text delta: a role alone, halves of a character, calls with and without a name, a
/// finish reason.
fn update(rng: &mut Rng) -> Update<'static> {
    let mut update = Update {
        is_chunk: true,
        choice: Some(ChoiceIndex(0)),
        ..Update::default()
    };
    let half = Fragment {
        high: Some(0xd83d),
        ..Fragment::from("x")
    };
    let call = |rng: &mut Rng| ToolCallUpdate {
        wire_index: rng.chance(0.9).then(|| rng.below(3) as i64),
        id: rng.chance(0.5).then(|| "id".into()),
        name: rng.chance(0.7).then(|| Fragment::from("name")),
        arguments: rng.chance(0.7).then(|| Fragment::from("{")),
        ..ToolCallUpdate::default()
    };
    match rng.below(16) {
        0..3 => update.role = ROLES[1 + rng.below(2)].map(Cow::Borrowed),
        3 => update.content = Some(half),
        4 => update.reasoning = Some(half),
        5..12 => update.tool_calls.push(call(rng)),
        12 => update.function_name = Some("old".into()),
        13 if rng.chance(0.3) => update.finish_reason = Some("stop".into()),
        _ => update.content = Some("text".into()),
    }
    update
}

#[test]
fn a_text_delta_has_the_effect_of_its_update() {
    let (mut continuing, mut other) = (0, 0);
    for seed in 0..3000 {
        let rng = &mut Rng::new(seed);
        let tags = [ThinkTags::Off, ThinkTags::Split, ThinkTags::SplitOpen][rng.below(3)];
        let (mut fast, mut slow) = (Choice::new(tags), Choice::new(tags));
        let mut position = Position::default();
        for at in 0..24 {
            position.event = EventIndex(at);
            if rng.chance(0.3) {
                let update = update(rng);
                fast.machine
                    .apply(Delta::Update(&update), position, &mut fast.transcript);
                slow.machine
                    .apply(Delta::Update(&update), position, &mut slow.transcript);
                continue;
            }
            let value = ["1", "[2]"][rng.below(2)];
            let fields = ["x", "annotations", "y"].map(|key| (key.into(), value.into()));
            let delta = TextDelta {
                last_of_event: rng.below(2) == 0,
                event_index: EventIndex(at),
                choice: ChoiceIndex(0),
                kind: CompletionKind::Chat,
                role: ROLES[rng.below(3)],
                text_kind: KINDS[rng.below(5)],
                text: ["piece", "piece <", "think>piece", "</think>piece"][rng.below(4)],
                extras: Extras {
                    fields: &fields[..rng.below(4)],
                    delta_field_count: rng.below(2),
                    logprobs: [None, None, Some("{\"content\":[1]}")][rng.below(3)],
                },
            };
            let (known, before) = (fast.continuing(), fast.transcript.event_count());
            fast.machine
                .apply(Delta::Text(&delta), position, &mut fast.transcript);
            slow.machine.apply(
                Delta::Update(&delta.to_update()),
                position,
                &mut slow.transcript,
            );
            assert_eq!(
                fast.events(before),
                slow.events(before),
                "seed {seed}, {at}"
            );
            if known.contains(&(delta.text_kind, delta.role)) {
                continuing += 1;
                let mut events = fast.events(before);
                let is_extra = |event: &String| {
                    ["logprobs.delta", "metadata"].contains(&event.split(' ').nth(3).unwrap())
                };
                assert!(
                    !delta.extras.is_empty() || !events.iter().any(is_extra),
                    "seed {seed}, {at}"
                );
                events.retain(|event| !is_extra(event));
                assert_eq!(events.len(), 1, "seed {seed}, {at}: {events:?}");
                assert!(events[0].contains("piece"), "seed {seed}, {at}: {events:?}");
                assert_eq!(fast.continuing(), known, "seed {seed}, {at}");
            } else {
                other += 1;
            }
        }
        assert_eq!(fast.ended(position), slow.ended(position), "seed {seed}");
    }
    assert!(
        continuing > 1000 && other > 1000,
        "{continuing} and {other}"
    );
}
