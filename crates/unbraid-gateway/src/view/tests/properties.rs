//! For any upstream and any readers, each reader gets its view of the log: nothing twice, nothing lost.

mod producer;
mod projection;

use proptest::prelude::*;
use unbraid_core::{ChoiceIndex, Config, Demux};
use unbraid_log::{End, Seq};

use self::{
    producer::Producer,
    projection::{parse, projection},
};
use super::script::{Script, choice, drain, frame, kept, part};
use crate::view::{Opened, Part, Start, Target, ViewReader};

/// What an upstream sends.
#[derive(Debug, Clone)]
enum Item {
    /// Text for some choices, in one chunk.
    Text(Vec<u32>),
    Reasoning(u32),
    Call(u32, u32),
    Finish(u32),
    Usage,
    Named,
    /// An event of several parts.
    Long(u32),
    Cancel(u32),
}

#[derive(Debug, Clone, Copy)]
enum Close {
    Done,
    Cut,
    Error,
    /// The producer is lost: the log is sealed without the ends of the choices.
    Lost,
}

/// What happens next in a test: the producer continues, or a reader polls or reconnects.
#[derive(Debug, Clone, Copy)]
enum Step {
    Produce,
    Poll(usize),
    Reconnect(usize),
}

fn items(n: u32) -> impl Strategy<Value = Vec<Item>> {
    let item = prop_oneof![
        8 => prop::collection::btree_set(0..n, 1..=n as usize).prop_map(|set| Item::Text(set.into_iter().collect())),
        2 => (0..n).prop_map(Item::Reasoning),
        2 => (0..n, 0..2_u32).prop_map(|(choice, call)| Item::Call(choice, call)),
        2 => (0..n).prop_map(Item::Finish),
        1 => Just(Item::Usage),
        1 => Just(Item::Named),
        1 => (0..n).prop_map(Item::Long),
        1 => (0..n).prop_map(Item::Cancel),
    ];
    prop::collection::vec(item, 0..24)
}

fn close() -> impl Strategy<Value = Close> {
    prop_oneof![
        Just(Close::Done),
        Just(Close::Cut),
        Just(Close::Error),
        Just(Close::Lost)
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Produce),
        3 => (0..6_usize).prop_map(Step::Poll),
        2 => (0..6_usize).prop_map(Step::Reconnect),
    ];
    prop::collection::vec(step, 0..80)
}

struct Client {
    target: Target,
    reader: Option<ViewReader>,
    text: String,
    is_complete: bool,
}

impl Client {
    fn new(script: &Script, target: Target) -> Self {
        Self {
            target,
            reader: Some(script.reader(target, Start::Beginning)),
            text: String::new(),
            is_complete: false,
        }
    }

    fn poll(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        match frame(reader) {
            std::task::Poll::Ready(Some(Ok(text))) => self.text += &text,
            std::task::Poll::Ready(Some(Err(error))) => panic!("{error}"),
            std::task::Poll::Ready(None) => self.is_complete = true,
            std::task::Poll::Pending => {}
        }
    }

    /// Drops the connection, and resumes after the last event that arrived.
    fn reconnect(&mut self, script: &Script) {
        // As the standard says, an event that is incomplete at the end of a connection is discarded.
        let complete = self.text.rfind("\n\n").map_or(0, |end| end + 2);
        self.text.truncate(complete);
        let cursor = parse(&self.text).last().map_or(0, |(id, ..)| *id);
        self.reader = match script.open(self.target, Start::After(Seq(cursor))) {
            Opened::Events(reader) => Some(reader),
            Opened::Complete => {
                self.is_complete = true;
                None
            }
        };
    }

    fn finish(&mut self) {
        if let Some(reader) = &mut self.reader {
            let (text, has_ended) = drain(reader);
            self.text += &text;
            self.is_complete |= has_ended;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn every_reader_gets_its_view_once_and_in_order(
        (n, items) in (1..4_u32).prop_flat_map(|n| (Just(n), items(n))),
        close in close(),
        steps in steps(),
    ) {
        let mut producer = Producer::new(n, items, close);
        let last = n - 1;
        let targets = [Target::Combined, choice(0), choice(last), kept(last), part(last, Part::Content), part(0, Part::ToolCall(1))];
        let mut clients: Vec<_> = targets.map(|target| Client::new(&producer.script, target)).into();
        for step in steps {
            match step {
                Step::Produce => producer.step(),
                Step::Poll(client) => clients[client].poll(),
                Step::Reconnect(client) => clients[client].reconnect(&producer.script),
            }
        }
        while producer.end.is_none() {
            producer.step();
        }
        for client in &mut clients {
            client.finish();
            prop_assert!(client.is_complete, "{:?} hangs", client.target);
            let shown = parse(&client.text);
            prop_assert_eq!(&shown, &projection(&producer, client.target));
            prop_assert!(shown.windows(2).all(|pair| pair[0].0 < pair[1].0), "ids increase");
            let end = Start::After(Seq(shown.last().unwrap().0));
            prop_assert!(matches!(producer.script.open(client.target, end), Opened::Complete));
        }
    }

    #[test]
    fn every_cursor_gets_the_rest(
        (n, items) in (1..4_u32).prop_flat_map(|n| (Just(n), items(n))),
        close in close(),
    ) {
        let mut producer = Producer::new(n, items, close);
        while producer.end.is_none() {
            producer.step();
        }
        let tail = producer.script.view.journal().tail();
        for target in [Target::Combined, choice(0), choice(n - 1)] {
            let all = projection(&producer, target);
            let terminal = all.last().unwrap().0;
            for cursor in (0..tail.0 + 3).filter(|cursor| *cursor != terminal) {
                let (text, has_ended) = producer.script.read(target, Start::After(Seq(cursor)));
                let rest = all.iter().filter(|(id, ..)| *id > cursor || *id == terminal);
                prop_assert!(has_ended);
                prop_assert_eq!(parse(&text), rest.cloned().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_cursor_that_waits_gets_the_rest(
        (n, items) in (1..4_u32).prop_flat_map(|n| (Just(n), items(n))),
        close in close(),
        at in 0..24_usize,
    ) {
        let mut producer = Producer::new(n, items, close);
        for _ in 0..at {
            producer.step();
        }
        let mut readers = Vec::new();
        for target in [Target::Combined, choice(0), choice(n - 1)] {
            for cursor in (0..30).map(Seq) {
                if let Opened::Events(mut reader) = producer.script.open(target, Start::After(cursor)) {
                    let shown = drain(&mut reader).0;
                    readers.push((target, cursor, reader, shown));
                }
            }
        }
        while producer.end.is_none() {
            producer.step();
        }
        for (target, cursor, mut reader, mut shown) in readers {
            let (text, has_ended) = drain(&mut reader);
            shown += &text;
            prop_assert!(has_ended);
            let all = projection(&producer, target);
            let terminal = all.last().unwrap().0;
            // What a lost producer has shown beyond the log may have the number of the end.
            let is_seal = producer.end == Some((Seq(terminal), End::ProducerLost));
            let is_lost = is_seal || all.last().unwrap().2["error"] == "producer_lost";
            let is_past = cursor.0 > terminal || (is_lost && cursor.0 == terminal);
            let rest = all.iter().filter(|(id, ..)| *id > cursor.0 || (*id == terminal && is_past));
            prop_assert_eq!(parse(&shown), rest.cloned().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_core_reads_a_view_of_one_choice_as_that_choice(
        (n, items) in (1..4_u32).prop_flat_map(|n| (Just(n), items(n))),
        close in close(),
    ) {
        let mut producer = Producer::new(n, items, close);
        while producer.end.is_none() {
            producer.step();
        }
        let combined = read_by_core(&producer.script, Target::Combined);
        for index in (0..n).map(ChoiceIndex) {
            let alone = read_by_core(&producer.script, choice(index.0));
            let expected = combined.choice(index);
            let given = alone.choice(ChoiceIndex(0));
            prop_assert_eq!(given.is_some(), expected.is_some());
            if let (Some(given), Some(expected)) = (given, expected) {
                prop_assert_eq!(given.message(), expected.message());
                prop_assert_eq!(given.finish_reason(), expected.finish_reason());
                prop_assert_eq!(
                    given.end().map(unbraid_core::ChoiceEnd::as_str),
                    expected.end().map(unbraid_core::ChoiceEnd::as_str)
                );
            }
        }
    }

    /// A snapshot at any position, and what follows it, is the same message as all events.
    #[test]
    fn a_snapshot_and_the_rest_are_the_whole_message(
        (n, items) in (1..4_u32).prop_flat_map(|n| (Just(n), items(n))),
        at in 0..24_usize,
    ) {
        let mut producer = Producer::new(n, items, Close::Done);
        for _ in 0..at {
            producer.step();
        }
        let mut readers: Vec<_> = (0..n).map(|index| producer.script.reader(choice(index), Start::Snapshot)).collect();
        while producer.end.is_none() {
            producer.step();
        }
        for (index, reader) in (0..n).zip(&mut readers) {
            let (text, has_ended) = drain(reader);
            prop_assert!(has_ended);
            let mut resumed = Demux::new(Config::default());
            resumed.feed(text.as_bytes());
            let whole = read_by_core(&producer.script, choice(index));
            let message = |demux: &Demux| {
                let message = demux.choice(ChoiceIndex(0)).map(unbraid_core::Transcript::message);
                message.map(|message| (message.content, message.reasoning, message.tool_calls.len()))
            };
            let expected = message(&whole).unwrap_or_default();
            prop_assert_eq!(message(&resumed).unwrap_or_default(), expected);
        }
    }
}

fn read_by_core(script: &Script, target: Target) -> Demux {
    let mut demux = Demux::new(Config::default());
    demux.feed(script.read(target, Start::Beginning).0.as_bytes());
    demux.finish();
    demux
}
