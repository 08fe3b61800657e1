//! Demultiplexing: whatever is done to a `Demux`, in whatever order, its promises hold.

use std::collections::BTreeMap;

use unbraid_core::{
    CallIndex, ChoiceIndex, Config, Demux, Event, FinishPolicy, Limits, Sequenced, StreamError,
    Text, ThinkTags,
};
use unbraid_testkit::cut::random_cuts;

/// Carries out a list of operations on a body, whole, in pieces, and without its cancels.
///
/// Bytes: how many operations, the options, a seed for the cuts, the operations, the body.
///
/// # Panics
///
/// Panics where a promise is broken.
pub fn demux(input: &[u8]) {
    let [count, options, seed, rest @ ..] = input else {
        return;
    };
    let (operations, body) = rest.split_at(usize::from(*count % MOST).min(rest.len()));
    let operations: Vec<Operation> = operations.iter().map(|byte| (*byte).into()).collect();
    let attack = Attack {
        options: settings(*options),
        body,
    };
    let whole = attack.run(&operations, None);
    whole.check(&attack.options);
    let pieces = attack.run(&operations, Some(u64::from(*seed)));
    assert_eq!(pieces.lines, whole.lines, "a cut can be seen");
    assert_eq!(pieces.drawn, whole.drawn, "a cut moves an event");
    whole.check_siblings(&attack, &operations);
}

/// Operations of one list.
const MOST: u8 = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Feed(usize),
    Cancel(u32),
    Quiet,
    /// Draws the events that are there.
    Draw,
    /// The body ends here, whatever is left of it.
    Finish,
    Fail,
    /// The object is dropped as it is.
    Drop,
}

impl From<u8> for Operation {
    fn from(byte: u8) -> Self {
        let number = usize::from(byte >> 3);
        match (byte & 7, number) {
            (0 | 1, n) => Self::Feed(n + 1),
            (2 | 3, n) => Self::Feed((n + 1) * 32),
            (4, n) => Self::Cancel(n as u32 % 8),
            (5, _) => Self::Quiet,
            (6, _) => Self::Draw,
            (_, 0) => Self::Finish,
            (_, 1) => Self::Fail,
            (_, 2) => Self::Drop,
            (_, n) => Self::Feed(n * 256),
        }
    }
}

fn settings(byte: u8) -> Config {
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

struct Attack<'a> {
    options: Config,
    body: &'a [u8],
}

impl Attack<'_> {
    fn run(&self, operations: &[Operation], cuts: Option<u64>) -> Run {
        let mut run = Run::new(self.options.clone());
        let mut rest = self.body;
        for operation in operations {
            match *operation {
                Operation::Feed(length) => {
                    let (piece, tail) = rest.split_at(length.min(rest.len()));
                    rest = tail;
                    run.feed(piece, cuts);
                }
                Operation::Cancel(index) => {
                    run.asked = true;
                    run.demux.cancel(ChoiceIndex(index));
                }
                Operation::Quiet => {
                    run.asked = true;
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

/// One way through the list.
struct Run {
    demux: Demux,
    events: Vec<Sequenced<Text>>,
    /// The events as lines.
    lines: Vec<String>,
    /// How many there were at each draw.
    drawn: Vec<usize>,
    /// Whether the caller cancelled a choice, or spoke of silence.
    asked: bool,
    ended: bool,
}

impl Run {
    fn new(options: Config) -> Self {
        Self {
            demux: Demux::new(options),
            events: Vec::new(),
            lines: Vec::new(),
            drawn: Vec::new(),
            asked: false,
            ended: false,
        }
    }

    fn feed(&mut self, bytes: &[u8], cuts: Option<u64>) {
        match cuts {
            None => self.demux.feed(bytes),
            Some(seed) => {
                for piece in random_cuts(bytes, seed, 24) {
                    self.demux.feed(piece);
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
        assert!(self.demux.next_event().is_none(), "an event behind the end");
        self.ended = true;
    }

    fn check(&self, options: &Config) {
        let _shown = self.demux.aggregate().to_string();
        let _kept = self.demux.warnings();
        if !self.ended {
            return;
        }
        assert!(self.demux.closed().is_some(), "finished, but not closed");
        let orders: Vec<_> = self.events.iter().map(Sequenced::sort_key).collect();
        // Ends that the caller asks for come when it asks for them.
        let sorted = self.asked || orders.is_sorted();
        assert!(sorted, "events out of order: {:#?}", self.lines);
        for choice in self.demux.choices() {
            assert!(choice.end().is_some(), "a choice without an end");
            assert!(choice.warnings().len() <= options.limits.warnings);
            self.check_choice(choice.index());
        }
    }

    fn of(&self, index: ChoiceIndex) -> impl Iterator<Item = &Sequenced<Text>> {
        self.events
            .iter()
            .filter(move |event| event.choice == Some(index))
    }

    fn check_choice(&self, index: ChoiceIndex) {
        let events: Vec<_> = self.of(index).collect();
        let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let expected: Vec<u64> = (0..events.len() as u64).collect();
        assert_eq!(numbers, expected, "choice {index}");
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

    /// The message begins with what its events told; what came late is behind that.
    fn check_sums(&self, index: ChoiceIndex) {
        let Some(choice) = self.demux.choice(index) else {
            panic!("choice {index} has events, but no record");
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
                Event::ToolCallArguments {
                    call_index: call,
                    text,
                } => {
                    arguments.entry(*call).or_default().push_str(text);
                }
                _ => {}
            }
        }
        assert!(message.content.starts_with(&content));
        assert!(message.reasoning.starts_with(&reasoning));
        assert!(message.refusal.starts_with(&refusal));
        for (number, told) in arguments {
            // T37: what came as a call and as a legacy call, too, has two numbers and one place.
            let mut calls = message.tool_calls.iter();
            assert!(
                calls.any(|call| call.arguments.starts_with(&told)),
                "call {number} of choice {index}"
            );
        }
    }

    /// A choice that nobody cancelled is told the same if nobody cancels its siblings either.
    fn check_siblings(&self, attack: &Attack<'_>, operations: &[Operation]) {
        let cancels = |operation: &&Operation| matches!(operation, Operation::Cancel(_));
        let cancelled: Vec<&Operation> = operations.iter().filter(cancels).collect();
        // The bytes of a completion are one purse: who is cancelled leaves more of them to the others.
        let shared = attack.options.limits != Limits::default();
        if cancelled.is_empty() || !self.ended || shared {
            return;
        }
        let kept: Vec<Operation> = operations.iter().filter(|o| !cancels(o)).copied().collect();
        let left = attack.run(&kept, None);
        for choice in left.demux.choices() {
            let index = choice.index();
            if cancelled.contains(&&Operation::Cancel(index.0)) {
                continue;
            }
            let told =
                |run: &Self| -> Vec<String> { run.of(index).map(ToString::to_string).collect() };
            assert_eq!(told(self), told(&left), "a sibling of {cancelled:?}");
        }
    }
}
