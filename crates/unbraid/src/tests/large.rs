//! Large events are decoded on another thread while the tasks of this one keep running, with the same outcome.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use futures::{StreamExt, executor::block_on};
use tokio::{runtime::Builder, task::yield_now};
use unbraid_testkit::script::{DONE, ON_PURPOSE, Script, Step, bytes, content, finish};

use super::{ends, outcome, read, soon};
use crate::{Completions, Config, Demux, StreamError, TransportError, Updates};

thread_local! {
    static JOBS: Cell<usize> = const { Cell::new(0) };
}

/// Counts the jobs that a task on this thread requests.
pub(crate) fn count_job() {
    JOBS.set(JOBS.get() + 1);
}

/// How many jobs were requested on this thread since the last call.
pub(super) fn jobs() -> usize {
    JOBS.take()
}

/// A job whose bytes end with this panics, as a decoder with a bug would.
const PANIC: &str = "panic in the job";

/// A job whose bytes end with the name of a gate waits at it, so that a test knows where the job is.
struct Gate {
    name: &'static str,
    jobs: AtomicUsize,
    open: AtomicBool,
}

static GATES: [Gate; 9] = [
    Gate::new("gate-0"),
    Gate::new("gate-1"),
    Gate::new("gate-2"),
    Gate::new("gate-3"),
    Gate::new("gate-4"),
    Gate::new("gate-5"),
    Gate::new("gate-6"),
    Gate::new("gate-7"),
    Gate::new("gate-8"),
];

impl Gate {
    const fn new(name: &'static str) -> Self {
        Self {
            name,
            jobs: AtomicUsize::new(0),
            open: AtomicBool::new(false),
        }
    }

    /// Waits until this many jobs have arrived. Meanwhile a task runs only if none of them holds its thread.
    async fn reached(&self, jobs: usize) {
        while self.jobs.load(Ordering::SeqCst) < jobs {
            yield_now().await;
        }
    }

    fn set_open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }

    /// Holds the thread until the gate is open.
    fn wait(&self, milliseconds: usize) {
        self.jobs.fetch_add(1, Ordering::SeqCst);
        for _ in 0..milliseconds {
            if self.open.load(Ordering::SeqCst) {
                return;
            }
            thread::sleep(Duration::from_millis(1));
        }
        panic!("no task could run");
    }
}

/// The gates of the batches that a choice applies.
static APPLY_GATES: [Gate; 2] = [Gate::new("apply-0"), Gate::new("apply-1")];

/// Every job calls this first, with its bytes.
pub(crate) fn in_job(bytes: &[u8]) {
    let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(200)..]);
    assert!(!end.contains(PANIC), "{ON_PURPOSE}");
    if let Some(gate) = GATES.iter().find(|gate| end.contains(gate.name)) {
        gate.wait(60_000);
    }
}

/// Every choice calls this before it applies a batch, with the batch's text.
pub(crate) fn in_apply(text: &str) {
    if let Some(gate) = APPLY_GATES.iter().find(|gate| text.ends_with(gate.name)) {
        gate.wait(10_000);
    }
}

const MIB: usize = 1024 * 1024;

/// One JSON value with one long text.
pub(super) fn one_text(size: usize, mark: &str) -> String {
    content(0, &("x".repeat(size) + mark))
}

/// Objects on one line.
fn fused(size: usize, mark: &str) -> String {
    let object = "{\"choices\":[{\"index\":1}]}";
    let objects = object.repeat(size / object.len());
    format!("data: {objects}{{\"mark\":\"{mark}\"}}\n\n")
}

/// An error of many lines.
fn error_lines(size: usize, mark: &str) -> String {
    let lines = "data:x\n".repeat(size / 7);
    format!("event: error\n{lines}data:{mark}\n\n")
}

/// A value over many lines.
pub(super) fn value_of_lines(size: usize, mark: &str) -> String {
    let lines = "data: 1,\n".repeat(size / 9);
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"text\":\"a\"}}],\"more\":[\n{lines}data: \"{mark}\"]}}\n\n"
    )
}

/// A body that is not an event stream.
fn json(size: usize, mark: &str) -> String {
    let text = "x".repeat(size);
    format!("{{\"choices\":[{{\"index\":0,\"text\":\"{text}{mark}\"}}]}}\n")
}

pub(super) const KINDS: [fn(usize, &str) -> String; 5] =
    [one_text, fused, error_lines, value_of_lines, json];

/// The stream in reads of this size.
pub(super) fn cut(stream: &str, size: usize) -> Vec<Step> {
    stream.as_bytes().chunks(size).map(bytes).collect()
}

/// Runs repeatedly while the job waits, then opens the gate.
async fn run_during(gate: &Gate, jobs: usize) {
    gate.reached(jobs).await;
    for _ in 0..1_000 {
        yield_now().await;
    }
    gate.set_open();
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_while_a_large_event_is_decoded() {
    let mut cases = GATES.iter();
    for (size, piece) in [(31 * MIB, usize::MAX), (2 * MIB, 16 * 1024)] {
        let gate = cases.next().unwrap();
        for (jobs, kind) in KINDS.into_iter().enumerate() {
            gate.open.store(false, Ordering::SeqCst);
            let steps = cut(&(content(0, "a") + &kind(size, gate.name)), piece);
            let turns = tokio::spawn(run_during(gate, jobs + 1));
            let completions = read(steps);
            let _end = soon(completions.closed()).await;
            soon(turns).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_while_a_large_event_is_applied_to_its_choice() {
    // The event continues a choice, and opens one.
    for (gate, before) in APPLY_GATES.iter().zip([content(0, "a"), content(1, "a")]) {
        let large = one_text(MIB, gate.name);
        let completions = read([bytes(before), bytes(large), bytes(DONE)]);
        // This task waits for the text, so it would be the first to apply it.
        let waits = async {
            let mut content = soon(completions.choice(0)).await.unwrap().content();
            let mut length = 0;
            while let Some(text) = soon(content.next()).await {
                length += text.unwrap().len();
            }
            length
        };
        let (length, ()) = futures::future::join(waits, run_during(gate, 1)).await;
        assert!(length >= MIB + gate.name.len());
    }
}

#[tokio::test(start_paused = true)]
async fn other_tasks_run_while_the_flat_view_decodes_a_large_event() {
    let mut cases = GATES.iter().skip(2);
    for (size, piece) in [(31 * MIB, usize::MAX), (2 * MIB, 16 * 1024)] {
        let gate = cases.next().unwrap();
        for (jobs, kind) in KINDS.into_iter().enumerate() {
            gate.open.store(false, Ordering::SeqCst);
            let steps = cut(&(content(0, "a") + &kind(size, gate.name)), piece);
            let turns = tokio::spawn(run_during(gate, jobs + 1));
            let mut flat = Updates::from_byte_stream(Script::new(steps));
            while let Some(update) = soon(flat.next()).await {
                update.unwrap();
            }
            soon(turns).await.unwrap();
        }
    }
}

pub(super) fn by_demux(stream: &str, fails: bool) -> Vec<String> {
    let mut demux = Demux::new(Config::default());
    demux.feed(stream.as_bytes());
    if fails {
        let error = TransportError::new(stream.len() as u64, "the peer closed the connection");
        demux.abort(StreamError::Transport(Arc::new(error)));
    } else {
        demux.finish();
    }
    std::iter::from_fn(|| demux.next_event().map(|event| event.to_string())).collect()
}

pub(super) async fn by_actors(steps: Vec<Step>) -> Vec<String> {
    let events = read(steps)
        .events()
        .filter_map(|event| async { event.ok() });
    let mut events: Vec<_> = soon(events.collect()).await;
    events.sort_by_key(|event| event.sort_key());
    events.iter().map(ToString::to_string).collect()
}

async fn by_flat_view(steps: Vec<Step>) -> Vec<String> {
    let updates = Updates::from_byte_stream(Script::new(steps));
    soon(updates.map(|update| format!("{update:?}")).collect()).await
}

#[tokio::test(start_paused = true)]
async fn large_events_are_the_same_however_they_are_cut() {
    const SIZE: usize = 600 * 1024;
    for kind in KINDS {
        let whole = content(0, "a") + &kind(SIZE, "m") + &content(0, "b") + &kind(SIZE, "m") + DONE;
        let open = content(0, "a") + kind(SIZE, "m").trim_end();
        for (stream, fails) in [(&whole, false), (&open, false), (&open, true)] {
            let expected = by_demux(stream, fails);
            let steps = |piece| {
                let mut steps = cut(stream, piece);
                steps.extend(fails.then_some(Step::Fail));
                steps
            };
            let flat = by_flat_view(steps(1_000)).await;
            for piece in [usize::MAX, 200_000, 16 * 1024] {
                assert!(by_actors(steps(piece)).await == expected, "{piece}");
                assert!(by_flat_view(steps(piece)).await == flat, "{piece}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_kill_while_a_large_event_is_decoded_ends_all_waits_at_once() {
    let gate = &GATES[4];
    let source = Script::new([bytes(content(0, "a")), bytes(one_text(MIB, gate.name))]);
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    let choice = soon(completions.choice(0)).await.unwrap();
    soon(gate.reached(1)).await;
    completions.kill_reader();
    // The job still waits. Paused time does not advance, so an endless wait would hang the test, too.
    assert_eq!(outcome(&choice).await.end.as_str(), "lost");
    assert!(matches!(completions.closed().await, Err(StreamError::Lost)));
    assert!(completions.events().count().await > 0);
    assert!(probe.closed());
    gate.set_open();
    assert_eq!(ends(&completions).await, ["0 lost \"a\""]);
}

#[test]
fn a_runtime_that_shuts_down_while_a_large_event_is_decoded_leaves_no_waiter_hanging() {
    let gate = &GATES[5];
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let (completions, choice) = runtime.block_on(async {
        let completions = read([bytes(content(0, "a")), bytes(one_text(MIB, gate.name))]);
        let choice = completions.first().await.unwrap();
        gate.reached(1).await;
        (completions, choice)
    });
    runtime.shutdown_background();
    assert_eq!(block_on(outcome_of(&choice)), "lost");
    assert!(matches!(
        block_on(completions.closed()),
        Err(StreamError::Lost)
    ));
    gate.set_open();
}

async fn outcome_of(choice: &crate::Choice) -> &'static str {
    choice.outcome().await.end.as_str()
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_a_large_event_is_decoded_applies_right_after_it() {
    let gate = &GATES[6];
    let steps = [
        bytes(content(0, "a")),
        bytes(one_text(MIB, gate.name)),
        Step::Stall,
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    soon(gate.reached(1)).await;
    choice.cancel();
    gate.set_open();
    let finished = outcome(&choice).await;
    assert_eq!(finished.end.as_str(), "cancelled");
    assert_eq!(finished.message.content.len(), 1 + MIB + gate.name.len());
}

#[tokio::test(start_paused = true)]
async fn a_panic_while_a_large_event_is_decoded_loses_what_is_open() {
    let completions = read([bytes(content(0, "a")), bytes(one_text(MIB, PANIC))]);
    assert_eq!(ends(&completions).await, ["0 lost \"a\""]);
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Lost)
    ));
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "on purpose")]
async fn a_panic_in_the_flat_view_reaches_its_task() {
    let mut flat = Updates::from_byte_stream(Script::new([bytes(one_text(MIB, PANIC))]));
    let _never = soon(flat.next()).await;
}

#[tokio::test(start_paused = true)]
async fn a_flat_view_that_is_dropped_meanwhile_closes_its_source() {
    let gate = &GATES[7];
    let source = Script::new([bytes(one_text(MIB, gate.name)), Step::Stall]);
    let probe = source.probe();
    let reading =
        tokio::spawn(async move { Updates::from_byte_stream(source).next().await.is_some() });
    soon(gate.reached(1)).await;
    assert!(!probe.closed());
    reading.abort();
    assert!(soon(reading).await.is_err());
    assert!(probe.closed());
    gate.set_open();
}

/// The only blocking thread waits for the very stream whose event would need it.
#[test]
fn a_large_event_does_not_need_a_thread_that_is_taken() {
    let (ended, result) = mpsc::channel();
    thread::spawn(move || {
        let mut runtime = Builder::new_current_thread();
        let runtime = runtime.enable_all().max_blocking_threads(1).build();
        let lengths = runtime.unwrap().block_on(async {
            let steps = || {
                [
                    bytes(content(0, "a")),
                    bytes(one_text(MIB, "")),
                    bytes(DONE),
                ]
            };
            let completions = read(steps());
            let choice = completions.first().await.unwrap();
            let waits = move || {
                let length = block_on(choice.text()).map(|text| text.len());
                let flat = Updates::from_byte_stream(Script::new(steps()));
                let items = block_on(flat.count());
                (length.unwrap(), items)
            };
            tokio::task::spawn_blocking(waits).await.unwrap()
        });
        ended.send(lengths)
    });
    let lengths = result.recv_timeout(Duration::from_secs(60));
    assert_eq!(lengths, Ok((1 + MIB, 3)));
}

#[test]
fn the_flat_view_decodes_large_events_without_a_runtime() {
    let steps = [
        bytes(one_text(MIB, "")),
        bytes(one_text(MIB, "")),
        bytes(DONE),
    ];
    let flat = Updates::from_byte_stream(Script::new(steps));
    assert_eq!(block_on(flat.count()), 3);
}

/// The job appends to the log of a choice that is not announced yet, and more arrives for it before it is.
#[tokio::test(start_paused = true)]
async fn a_choice_that_a_large_event_opens_may_have_lost_before_it_appears() {
    let steps = [
        bytes(content(0, "a")),
        Step::Pause(Duration::from_secs(1)),
        bytes(one_text(MIB, "").replace("\"index\":0", "\"index\":1")),
        bytes(content(0, "b")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ];
    let completions = read(steps);
    let winners = soon(completions.first_where(1, |transcript| transcript.index().0 == 0)).await;
    assert_eq!(winners.len(), 1);
    assert_eq!(outcome(&winners[0]).await.message.content, "ab");
    let loser = soon(completions.choice(1)).await.unwrap();
    let finished = outcome(&loser).await;
    assert_eq!(finished.end.as_str(), "cancelled");
    assert_eq!(finished.message.content.len(), MIB);
}

/// Arguments continue in the log of an announced choice, and are applied before its consumer wakes.
#[tokio::test(start_paused = true)]
async fn large_arguments_reach_a_waiting_consumer() {
    let call = |arguments: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"id\":\"t\",\"function\":{{\"name\":\"f\",\"arguments\":\"{arguments}\"}}}}]}}}}]}}\n\n"
        )
    };
    let text = "x".repeat(MIB);
    let steps = [
        bytes(call("{\\\"a\\\":\\\"")),
        Step::Pause(Duration::from_secs(1)),
        bytes(call(&format!("{text}\\\"}}"))),
        bytes(finish(0, "tool_calls")),
        bytes(DONE),
    ];
    let completions = read(steps);
    let choice = soon(completions.first()).await.unwrap();
    let call = soon(choice.tool_calls().next()).await.unwrap().unwrap();
    let mut arguments = call.arguments();
    let mut length = 0;
    while let Some(piece) = soon(arguments.next()).await {
        length += piece.unwrap().len();
    }
    assert_eq!(length, MIB + "{\"a\":\"\"}".len());
    assert_eq!(
        soon(choice.finished()).await.unwrap().end.as_str(),
        "finished"
    );
}
