//! For any upstream and any readers, each reader gets its view of the log: nothing twice, nothing lost.

use proptest::prelude::*;
use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, Config, Demux, Event as CoreEvent};
use unbraid_log::{End, Event, Seq};

use super::script::{Script, choice, drain, frame, kept, part};
use crate::view::{Opened, Part, Start, StreamView, Target, ViewReader};

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

/// An event of the log, as the test remembers it.
#[derive(Debug, Clone)]
enum Logged {
    Data(Seq, Option<&'static str>, String),
    ChoiceEnd(Seq, u32, End),
    Error(Seq, String),
}

/// A producer as the gateway has one: the core decides when a choice ends.
struct Producer {
    script: Script,
    demux: Demux,
    items: std::vec::IntoIter<Item>,
    close: Close,
    over: Vec<u32>,
    log: Vec<Logged>,
    end: Option<(Seq, End)>,
}

impl Producer {
    fn new(n: u32, items: Vec<Item>, close: Close) -> Self {
        let script = Script::new(n);
        let config = StreamView::core_config(script.view.meta());
        Self {
            script,
            demux: Demux::new(config),
            items: items.into_iter(),
            close,
            over: Vec::new(),
            log: Vec::new(),
            end: None,
        }
    }

    fn step(&mut self) {
        match self.items.next() {
            Some(item) => self.item(item),
            None if self.end.is_none() => self.close(),
            None => {}
        }
    }

    fn item(&mut self, item: Item) {
        let is_open = |choice: &u32| !self.over.contains(choice);
        let entry = |choice: u32, delta: Value| json!({ "index": choice, "delta": delta, "finish_reason": null });
        let entries: Vec<Value> = match item {
            Item::Text(choices) => choices
                .into_iter()
                .filter(is_open)
                .map(|choice| {
                    entry(
                        choice,
                        json!({ "role": "assistant", "content": "x, \"y\"" }),
                    )
                })
                .collect(),
            Item::Reasoning(choice) if is_open(&choice) => {
                vec![entry(choice, json!({ "reasoning_content": "hm" }))]
            }
            Item::Call(choice, call) if is_open(&choice) => {
                let call = json!({ "index": call, "id": format!("id{call}"), "function": { "name": "f", "arguments": "1" } });
                vec![entry(choice, json!({ "tool_calls": [call] }))]
            }
            Item::Finish(choice) if is_open(&choice) => {
                self.over.push(choice);
                vec![json!({ "index": choice, "delta": {}, "finish_reason": "stop" })]
            }
            Item::Usage => {
                return self.chunk(
                    None,
                    json!({ "choices": [], "usage": { "total_tokens": 1 } }),
                );
            }
            Item::Named => return self.chunk(Some("note"), json!({ "note": 1 })),
            Item::Long(choice) if is_open(&choice) => {
                vec![entry(choice, json!({ "content": "z".repeat(530_000) }))]
            }
            Item::Cancel(choice) if is_open(&choice) => return self.cancel(choice),
            Item::Reasoning(_)
            | Item::Call(..)
            | Item::Finish(_)
            | Item::Long(_)
            | Item::Cancel(_) => vec![],
        };
        self.chunk(
            None,
            json!({ "id": "c", "choices": entries, "usage": null }),
        );
    }

    fn chunk(&mut self, name: Option<&'static str>, payload: Value) {
        let payload = payload.to_string();
        let choices = indices(&payload);
        self.feed(&payload);
        let choices: Vec<ChoiceIndex> = choices.into_iter().map(ChoiceIndex).collect();
        let event = Event::Chunk {
            choices: choices[..].into(),
            name,
            payload: payload.as_bytes(),
        };
        let seq = self.script.push(&event);
        self.log.push(Logged::Data(seq, name, payload));
        self.ends();
    }

    fn cancel(&mut self, choice: u32) {
        self.over.push(choice);
        let chunk =
            json!({ "choices": [{ "index": choice, "delta": {}, "finish_reason": "cancelled" }] });
        let seq = self.script.synthetic(choice, &chunk.to_string());
        self.log.push(Logged::Data(seq, None, chunk.to_string()));
        self.demux.cancel(ChoiceIndex(choice));
        let seq = self.script.choice_end(choice, End::Cancelled);
        self.log
            .push(Logged::ChoiceEnd(seq, choice, End::Cancelled));
        while self.demux.next_event().is_some() {}
    }

    fn feed(&mut self, payload: &str) {
        self.demux.feed(format!("data: {payload}\n\n").as_bytes());
    }

    /// Logs the ends that the core has decided.
    fn ends(&mut self) {
        let mut ends = Vec::new();
        while let Some(event) = self.demux.next_event() {
            if let (Some(choice), CoreEvent::End(end)) = (event.choice, &event.event) {
                ends.push((choice.0, End::from(end)));
            }
        }
        let known: Vec<u32> = self
            .log
            .iter()
            .filter_map(|logged| match logged {
                Logged::ChoiceEnd(_, choice, _) => Some(*choice),
                _ => None,
            })
            .collect();
        for (choice, end) in ends
            .into_iter()
            .filter(|(choice, _)| !known.contains(choice))
        {
            let seq = self.script.choice_end(choice, end);
            self.log.push(Logged::ChoiceEnd(seq, choice, end));
        }
    }

    fn close(&mut self) {
        let end = match self.close {
            Close::Done => {
                self.feed("[DONE]");
                End::Finished
            }
            Close::Cut => {
                self.demux.finish();
                End::Interrupted
            }
            Close::Error => {
                let payload = r#"{"error":{"message":"overloaded"}}"#;
                let seq = self.script.error(None, payload);
                self.log.push(Logged::Error(seq, payload.to_owned()));
                self.feed(payload);
                End::ServerError
            }
            Close::Lost => End::ProducerLost,
        };
        if !matches!(self.close, Close::Lost) {
            self.ends();
        }
        self.end = Some((self.script.view.journal().tail().next(), end));
        self.script.seal(end);
    }
}

fn indices(payload: &str) -> Vec<u32> {
    let chunk: Value = serde_json::from_str(payload).unwrap();
    let entries = chunk["choices"].as_array().cloned().unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| u32::try_from(entry["index"].as_u64()?).ok())
        .collect()
}

type Shown = (u64, Option<String>, Value);

fn value(data: &str) -> Value {
    serde_json::from_str(data).unwrap_or_else(|_| data.into())
}

/// Keeps the role and one part of an entry. Returns whether a view of the part shows it.
fn keep_part(entry: &mut Value, part: Part) -> bool {
    let has_reason = !entry["finish_reason"].is_null();
    let name = match part {
        Part::Content => "content",
        Part::Reasoning => "reasoning_content",
        Part::Refusal => "refusal",
        Part::ToolCall(_) => "tool_calls",
    };
    let delta = entry["delta"].as_object_mut().unwrap();
    delta.retain(|key, _| key == "role" || key == name);
    if let (Part::ToolCall(call), Some(Value::Array(calls))) = (part, delta.get_mut(name)) {
        calls.retain(|entry| entry["index"] == call);
        if calls.is_empty() {
            delta.remove(name);
        }
    }
    has_reason || !delta.is_empty()
}

/// The events of a view, written without the code under test.
fn projection(producer: &Producer, target: Target) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let mut error = None;
    let mut has_reason = false;
    let last = |seq: Seq, end: End, error: &Option<(Seq, String)>| -> Shown {
        match (end, error) {
            (End::ServerError, Some((seq, payload))) => (seq.0, None, value(payload)),
            _ if end.is_error() => (seq.0, None, json!({ "error": end.as_str() })),
            _ => (seq.0, None, json!("[DONE]")),
        }
    };
    for logged in &producer.log {
        match (logged, target) {
            (Logged::Data(seq, name, data), Target::Combined) => {
                shown.push((seq.0, name.map(str::to_owned), value(data)));
            }
            (
                Logged::Data(seq, _, data),
                Target::Choice {
                    index,
                    keep_index,
                    part,
                },
            ) => {
                if indices(data).contains(&index.0) {
                    let mut chunk = value(data);
                    let entries = chunk["choices"].as_array_mut().unwrap();
                    entries.retain(|entry| entry["index"] == index.0);
                    has_reason |= !entries[0]["finish_reason"].is_null();
                    if !keep_index {
                        entries[0]["index"] = json!(0);
                    }
                    if part.is_none_or(|part| keep_part(&mut entries[0], part)) {
                        shown.push((seq.0, None, chunk));
                    }
                }
            }
            (Logged::Error(seq, payload), Target::Combined) => {
                shown.push((seq.0, None, value(payload)));
                return shown;
            }
            (Logged::Error(seq, payload), Target::Choice { .. }) => {
                error = Some((*seq, payload.clone()))
            }
            (Logged::ChoiceEnd(seq, choice, end), Target::Choice { index, .. })
                if *choice == index.0 =>
            {
                shown.push(last(*seq, *end, &error));
                return shown;
            }
            (Logged::ChoiceEnd(..), _) => {}
        }
    }
    if let Some((seq, end)) = producer.end {
        // A finish reason stays, even if the log does not contain the end of its choice.
        let end = if has_reason { End::Finished } else { end };
        shown.push(last(seq, end, &error));
    }
    shown
}

/// Parses the events of a view, and keeps of the gateway's own errors only the code, which the projection has.
fn parse(text: &str) -> Vec<Shown> {
    let events = text.split_terminator("\n\n").map(|event| {
        let mut shown: (Option<u64>, Option<String>, Vec<&str>) = (None, None, Vec::new());
        for line in event.lines() {
            let (field, rest) = line.split_once(": ").unwrap();
            match field {
                "id" => shown.0 = rest.parse().ok(),
                "event" => shown.1 = Some(rest.to_owned()),
                "data" => shown.2.push(rest),
                "retry" => assert_eq!(rest, "1000"),
                _ => panic!("{line}"),
            }
        }
        assert!(!shown.2.is_empty(), "an event without data: {event}");
        let mut data = value(&shown.2.join("\n"));
        if data["error"]["type"] == "stream_error" {
            data = json!({ "error": data["error"]["code"] });
        }
        (shown.0.expect("every event has an id"), shown.1, data)
    });
    events.collect()
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
