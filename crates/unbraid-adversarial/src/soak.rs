//! Completions with every kind of fault, one for each seed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use futures::{StreamExt, stream};
use unbraid::{Choice, Completions, CompletionsBuilder, Limits};
use unbraid_testkit::cut::{Rng, random_cuts};
use unbraid_testkit::script::{DONE, ON_PURPOSE, Probe, Script, Step, bytes, content, finish};

/// Much longer than any completion takes. Reaching it counts as a hang.
const DEADLINE: Duration = Duration::from_secs(60);

/// Completions that run concurrently.
const CONCURRENT: usize = 64;

/// The results of completions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of completions that were opened.
    pub opened: u64,
    /// Those that ended as expected.
    pub ended: u64,
    /// Those that did not end before the deadline.
    pub hung: u64,
    /// Sources that were not dropped.
    pub unclosed: u64,
    /// The number of choices by their end.
    pub ends: BTreeMap<String, u64>,
}

impl Tally {
    /// Adds another tally to this one.
    pub fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.ended += other.ended;
        self.hung += other.hung;
        self.unclosed += other.unclosed;
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
    }
}

/// Runs one completion for each seed, many of them concurrently.
///
/// # Panics
///
/// Panics if a consumer receives an unexpected result.
pub async fn soak(seeds: Range<u64>) -> Tally {
    let one = |seed| async move {
        let (script, run) = plan(seed);
        let probe = script.probe();
        let ends = tokio::time::timeout(DEADLINE, tokio::spawn(run.completion(script))).await;
        (ends, probe)
    };
    let mut running = stream::iter(seeds.map(one)).buffer_unordered(CONCURRENT);
    let mut tally = Tally::default();
    let mut probes: Vec<Probe> = Vec::new();
    while let Some((ends, probe)) = running.next().await {
        tally.opened += 1;
        probes.push(probe);
        let Ok(ends) = ends else {
            tally.hung += 1;
            continue;
        };
        tally.ended += 1;
        for end in ends.expect("a consumer received an unexpected result") {
            *tally.ends.entry(end).or_default() += 1;
        }
    }
    wait_for_tasks().await;
    tally.unclosed = probes.iter().filter(|probe| !probe.closed()).count() as u64;
    tally
}

/// Waits until no task of a completion is alive, for a limited time.
async fn wait_for_tasks() {
    let runtime = tokio::runtime::Handle::current();
    let all_ended = async {
        while runtime.metrics().num_alive_tasks() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    // Those that are alive after that show in the tally, or in the number of tasks.
    let _elapsed = tokio::time::timeout(DEADLINE, all_ended).await;
}

/// Suppresses the output of panics that a script causes on purpose.
pub fn silence_scripted_panics() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map(String::as_str);
        if !text.is_some_and(|text| text.contains(ON_PURPOSE)) {
            report(info);
        }
    }));
}

/// A fault of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    NoReasons,
    NoEnd,
    ServerError,
    Broken,
    Stalled,
    Panicked,
    TooLong,
    Cancelled,
    OneCancelled,
    Dropped,
}

const FAULTS: [Fault; 11] = [
    Fault::None,
    Fault::NoReasons,
    Fault::NoEnd,
    Fault::ServerError,
    Fault::Broken,
    Fault::Stalled,
    Fault::Panicked,
    Fault::TooLong,
    Fault::Cancelled,
    Fault::OneCancelled,
    Fault::Dropped,
];

/// The script of a seed, and how it is consumed.
fn plan(seed: u64) -> (Script, Run) {
    let mut rng = Rng::new(seed);
    let fault = FAULTS[rng.below(FAULTS.len())];
    let choices = 1 + rng.below(8) as u32;
    let steps = script(&mut rng, fault, choices);
    (Script::new(steps), Run { fault, rng })
}

struct Run {
    fault: Fault,
    rng: Rng,
}

impl Run {
    /// Runs a completion with one fault and returns the ends of its choices.
    async fn completion(mut self, script: Script) -> Vec<String> {
        let completions = builder(self.fault).from_byte_stream(script);
        let mut all = completions.choices();
        let mut tasks = Vec::new();
        while let Some(Ok(choice)) = all.next().await {
            match self.fault {
                Fault::Cancelled => completions.cancel(),
                Fault::OneCancelled if choice.index().0 == 0 => choice.cancel(),
                Fault::Dropped => return vec![],
                _ => {}
            }
            let slow = self.rng.chance(0.3);
            tasks.push(tokio::spawn(consume(choice, slow)));
        }
        let mut ends = Vec::new();
        for task in tasks {
            ends.push(task.await.expect("a consumer panicked"));
        }
        let _whole = completions.aggregate().await;
        ends
    }
}

fn builder(fault: Fault) -> CompletionsBuilder {
    match fault {
        Fault::Stalled => Completions::builder().idle_timeout(Duration::from_millis(20)),
        Fault::TooLong => Completions::builder().limits(Limits::default().with_choice_bytes(200)),
        _ => Completions::builder(),
    }
}

/// Reads a choice as a caller would, and checks that its stream agrees with its end.
async fn consume(choice: Choice, slow: bool) -> String {
    let mut content = choice.content();
    let mut text = String::new();
    let mut errors = 0;
    while let Some(delta) = content.next().await {
        match delta {
            Ok(delta) => text.push_str(&delta),
            Err(_) => errors += 1,
        }
        if slow {
            tokio::task::yield_now().await;
        }
    }
    let outcome = match choice.finished().await {
        Ok(outcome) => outcome,
        Err(error) => error.partial().clone(),
    };
    assert_eq!(errors, usize::from(outcome.end.is_error()));
    assert!(outcome.message.content.starts_with(&text));
    outcome.end.as_str().to_owned()
}

fn script(rng: &mut Rng, fault: Fault, choices: u32) -> Vec<Step> {
    // At least one choice: a caller that waits for a choice in order to cancel a stalled stream would wait forever.
    let mut wire = content(0, "");
    let rounds = 1 + rng.below(12);
    for _ in 0..rounds {
        for choice in 0..choices {
            if rng.chance(0.8) {
                wire.push_str(&content(choice, &"word ".repeat(rng.below(4))));
            }
        }
    }
    let finished = if fault == Fault::NoReasons {
        0
    } else {
        rng.below(choices as usize + 1) as u32
    };
    for choice in 0..finished {
        wire.push_str(&finish(choice, "stop"));
    }
    let is_complete = matches!(
        fault,
        Fault::None | Fault::NoReasons | Fault::TooLong | Fault::OneCancelled
    );
    if is_complete {
        wire.push_str(DONE);
    }
    let mut steps: Vec<Step> = Vec::new();
    for read in random_cuts(wire.as_bytes(), rng.next_u64(), 400) {
        steps.push(bytes(read));
        if rng.chance(0.2) {
            steps.push(Step::Yield);
        }
    }
    steps.extend(match fault {
        Fault::ServerError => vec![bytes("data: {\"error\":{\"message\":\"overloaded\"}}\n\n")],
        Fault::Broken => vec![Step::Fail],
        Fault::Stalled | Fault::Cancelled | Fault::Dropped => vec![Step::Stall],
        Fault::Panicked if rng.chance(0.5) => vec![Step::Panic],
        Fault::Panicked => vec![Step::PanicInRead],
        Fault::None | Fault::NoReasons | Fault::NoEnd | Fault::TooLong | Fault::OneCancelled => {
            vec![]
        }
    });
    steps
}
