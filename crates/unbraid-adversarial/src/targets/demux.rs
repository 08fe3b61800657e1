//! Demultiplexing: the invariants of a `Demux` hold for every sequence of operations.

use std::collections::BTreeMap;

use unbraid_core::{
    CallIndex, ChoiceIndex, Config, Demux, Event, FinishPolicy, JsonErrorKind, Limits, ReadyCursor,
    ReadyPolicy, Sequenced, StreamError, Text, ThinkTags, Transcript,
};
use unbraid_testkit::cut::random_cuts;

/// Runs a list of operations on a body: with large reads, with small reads, and without its cancellations.
///
/// The input is the number of operations, the options, a seed for the reads, the operations, and the body.
///
/// # Panics
///
/// Panics if an invariant is violated.
pub fn demux(input: &[u8]) {
    let [count, options, seed, rest @ ..] = input else {
        return;
    };
    let (operations, body) = rest.split_at(usize::from(*count % MAX_OPERATIONS).min(rest.len()));
    let operations: Vec<Operation> = operations.iter().map(|byte| (*byte).into()).collect();
    let scenario = Scenario {
        options: config(*options),
        body,
    };
    let large_reads = scenario.run(&operations, None);
    large_reads.check(&scenario.options);
    let small_reads = scenario.run(&operations, Some(u64::from(*seed)));
    assert_eq!(
        small_reads.lines, large_reads.lines,
        "small reads change the events"
    );
    assert_eq!(
        small_reads.drawn, large_reads.drawn,
        "small reads change when events are available"
    );
    large_reads.check_siblings(&scenario, &operations);
}

/// The maximum number of operations.
const MAX_OPERATIONS: u8 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Feed(usize),
    Cancel(u32),
    Idle,
    /// Takes the available events.
    Draw,
    /// The body ends here, and its rest is ignored.
    Finish,
    Fail,
    /// The `Demux` is dropped.
    Drop,
}

impl From<u8> for Operation {
    fn from(byte: u8) -> Self {
        let number = usize::from(byte >> 3);
        match (byte & 7, number) {
            (0 | 1, n) => Self::Feed(n + 1),
            (2 | 3, n) => Self::Feed((n + 1) * 32),
            (4, n) => Self::Cancel(n as u32 % 8),
            (5, _) => Self::Idle,
            (6, _) => Self::Draw,
            (_, 0) => Self::Finish,
            (_, 1) => Self::Fail,
            (_, 2) => Self::Drop,
            (_, n) => Self::Feed(n * 256),
        }
    }
}

fn config(byte: u8) -> Config {
    let tight = Limits::default()
        .with_line_bytes(400)
        .with_event_bytes(300)
        .with_choices(2)
        .with_tool_calls(2)
        .with_choice_bytes(700)
        .with_completion_bytes(1_000)
        .with_json_depth(6)
        .with_warnings(3);
    Config::default()
        .with_strict(byte & 1 == 1)
        .with_expect_choices(
            [None, None, Some(1), Some(2)]
                .get(usize::from(byte >> 1 & 3))
                .copied()
                .flatten(),
        )
        .with_finish_policy(match byte >> 3 & 3 {
            0 | 1 => FinishPolicy::NextEvent,
            2 => FinishPolicy::AtFinish,
            _ => FinishPolicy::AtStreamEnd,
        })
        .with_limits(if byte >> 5 & 3 == 3 {
            tight
        } else {
            Limits::default()
        })
        .with_think_tags(match byte >> 5 & 3 {
            1 => ThinkTags::Split,
            2 => ThinkTags::SplitOpen,
            _ => ThinkTags::Off,
        })
        .with_usage_after_done(byte >> 7 == 1)
}

struct Scenario<'a> {
    options: Config,
    body: &'a [u8],
}

impl Scenario<'_> {
    fn run(&self, operations: &[Operation], cuts: Option<u64>) -> Run {
        let mut run = Run::new(self.options.clone());
        let mut rest = self.body;
        for operation in operations {
            match *operation {
                Operation::Feed(length) => {
                    let (read, tail) = rest.split_at(length.min(rest.len()));
                    rest = tail;
                    run.feed(read, cuts);
                }
                Operation::Cancel(index) => {
                    run.has_caller_ends = true;
                    run.demux.cancel(ChoiceIndex(index));
                }
                Operation::Idle => {
                    run.has_caller_ends = true;
                    run.demux.handle_idle();
                }
                Operation::Draw => run.draw(),
                Operation::Finish => run.demux.finish(),
                Operation::Fail => run.demux.abort(StreamError::Cancelled),
                Operation::Drop => return run,
            }
        }
        run.feed(rest, cuts);
        run.end();
        run
    }
}

/// One execution of the list.
struct Run {
    demux: Demux,
    events: Vec<Sequenced<Text>>,
    /// The events as lines.
    lines: Vec<String>,
    /// The number of events after each draw.
    drawn: Vec<usize>,
    /// Whether the caller cancelled a choice or reported idleness.
    has_caller_ends: bool,
    ended: bool,
}

impl Run {
    fn new(options: Config) -> Self {
        Self {
            demux: Demux::new(options),
            events: Vec::new(),
            lines: Vec::new(),
            drawn: Vec::new(),
            has_caller_ends: false,
            ended: false,
        }
    }

    fn feed(&mut self, bytes: &[u8], cuts: Option<u64>) {
        match cuts {
            None => self.demux.feed(bytes),
            Some(seed) => {
                for read in random_cuts(bytes, seed, 24) {
                    self.demux.feed(read);
                }
            }
        }
    }

    fn draw(&mut self) {
        while let Some(event) = self.demux.next_event() {
            self.lines.push(event.to_string());
            self.events.push(event.map(Text::from));
        }
        self.drawn.push(self.events.len());
    }

    fn end(&mut self) {
        self.demux.finish();
        self.draw();
        self.demux.finish();
        self.demux.abort(StreamError::Cancelled);
        self.demux.handle_idle();
        self.demux.cancel(ChoiceIndex(0));
        self.demux
            .feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"late\"}}]}\n\n");
        assert!(self.demux.next_event().is_none(), "an event after the end");
        self.ended = true;
    }

    fn check(&self, options: &Config) {
        let _formatted = self.demux.aggregate().to_string();
        let _kept = self.demux.warnings();
        if !self.ended {
            return;
        }
        assert!(self.demux.closed().is_some(), "finished, but not closed");
        let orders: Vec<_> = self.events.iter().map(Sequenced::sort_key).collect();
        // Ends that the caller causes are emitted immediately, out of order.
        let sorted = self.has_caller_ends || orders.is_sorted();
        assert!(sorted, "events out of order: {:#?}", self.lines);
        for choice in self.demux.choices() {
            assert!(choice.end().is_some(), "a choice without an end");
            assert!(choice.warnings().len() <= options.limits.warnings);
            self.check_choice(choice.index());
            check_ready(choice);
        }
    }

    fn of(&self, index: ChoiceIndex) -> impl Iterator<Item = &Sequenced<Text>> {
        self.events
            .iter()
            .filter(move |event| event.choice == Some(index))
    }

    fn check_choice(&self, index: ChoiceIndex) {
        let events: Vec<_> = self.of(index).collect();
        let seqs: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let expected: Vec<u64> = (0..events.len() as u64).collect();
        assert_eq!(seqs, expected, "choice {index}");
        let ends = events
            .iter()
            .filter(|event| matches!(event.event, Event::End(_)));
        assert_eq!(ends.count(), 1, "choice {index} ends once");
        assert!(matches!(
            events.last().map(|e| &e.event),
            Some(Event::End(_))
        ));
        assert!(matches!(events[0].event, Event::Start { .. }));
        self.check_sums(index);
    }

    /// The message starts with the text of its events. Late text follows.
    fn check_sums(&self, index: ChoiceIndex) {
        let Some(choice) = self.demux.choice(index) else {
            panic!("choice {index} has events, but no transcript");
        };
        let message = choice.message();
        let (mut content, mut reasoning, mut refusal) =
            (String::new(), String::new(), String::new());
        let mut arguments = BTreeMap::<CallIndex, String>::new();
        for event in self.of(index) {
            match &event.event {
                Event::Content(text) => content.push_str(text),
                Event::Reasoning(text) => reasoning.push_str(text),
                Event::Refusal(text) => refusal.push_str(text),
                Event::ToolCallArguments { call_index, text } => {
                    arguments.entry(*call_index).or_default().push_str(text);
                }
                _ => {}
            }
        }
        assert!(message.content.starts_with(&content));
        assert!(message.reasoning.starts_with(&reasoning));
        assert!(message.refusal.starts_with(&refusal));
        for (call_index, received) in arguments {
            // T37: a call that was also sent as a legacy call has two indices and one entry.
            let mut calls = message.tool_calls.iter();
            assert!(
                calls.any(|call| call.arguments.starts_with(&received)),
                "call {call_index} of choice {index}"
            );
        }
    }

    /// A choice that is not cancelled has the same events if its siblings are not cancelled either.
    fn check_siblings(&self, scenario: &Scenario<'_>, operations: &[Operation]) {
        let cancels = |operation: &&Operation| matches!(operation, Operation::Cancel(_));
        let cancelled: Vec<&Operation> = operations.iter().filter(cancels).collect();
        // The byte limit of a completion is shared, so a cancelled choice leaves more of it to the others.
        let shared = scenario.options.limits != Limits::default();
        if cancelled.is_empty() || !self.ended || shared {
            return;
        }
        let kept: Vec<Operation> = operations.iter().filter(|o| !cancels(o)).copied().collect();
        let uncancelled = scenario.run(&kept, None);
        for choice in uncancelled.demux.choices() {
            let index = choice.index();
            if cancelled.contains(&&Operation::Cancel(index.0)) {
                continue;
            }
            let events =
                |run: &Self| -> Vec<String> { run.of(index).map(ToString::to_string).collect() };
            assert_eq!(
                events(self),
                events(&uncancelled),
                "a sibling of {cancelled:?}"
            );
        }
    }
}

/// At the end of its choice, every call is ready or has an error, and a laxer policy never returns more of it.
fn check_ready(choice: &Transcript) {
    let policies = [
        ReadyPolicy::AtEnd,
        ReadyPolicy::NextCall,
        ReadyPolicy::ValidJson,
    ];
    let events = (0..choice.event_count()).filter_map(|seq| choice.event(seq));
    let starts = events.filter_map(|event| match event.event {
        Event::ToolCallStart { call_index, .. } => Some(call_index),
        _ => None,
    });
    for call in starts {
        let mut longest = usize::MAX;
        for policy in policies {
            let mut cursor = ReadyCursor::new(call, policy);
            let ready = match cursor.poll(choice).expect("the choice has ended") {
                Ok(call) => call.arguments.len(),
                Err(JsonErrorKind::LateFragment { bytes, .. }) => bytes,
                Err(_) => longest,
            };
            assert!(ready <= longest, "call {call}, {policy:?}");
            longest = ready;
            assert!(cursor.poll(choice).is_none(), "a second result");
        }
    }
}
