//! Ten thousand random completions with random faults, on both kinds of runtime: every end is reached, none hangs.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, stream};
use unbraid::{Builder, Choice, Completions, Limits};
use unbraid_testkit::cut::{Rng, random_cuts};
use unbraid_testkit::script::{DONE, ON_PURPOSE, Script, Step, bytes, content, finish};

const COMPLETIONS: u64 = 5_000; // on each of two runtimes

/// Far beyond what any of them needs: reaching it is a hang.
const DEADLINE: Duration = Duration::from_secs(60);

/// How a completion goes wrong.
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

/// Counts of ends by name; `hung` is one of them.
type Tally = BTreeMap<String, u64>;

#[test]
fn ten_thousand_completions_with_random_faults_leave_nobody_waiting() {
    silence_panics_on_purpose();
    let current = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let several = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut tally = Tally::new();
    let mut memory = Vec::new();
    for (runtime, seed) in [(current, 1_000_000), (several, 2_000_000)] {
        for quarter in 0..4 {
            let part = COMPLETIONS / 4;
            let seeds = seed + quarter * part..seed + (quarter + 1) * part;
            for (end, count) in runtime.block_on(soak(seeds)) {
                *tally.entry(end).or_default() += count;
            }
            memory.push(resident_bytes());
        }
    }
    println!("{} completions: {tally:?}", 2 * COMPLETIONS);
    println!("resident after each eighth: {memory:?}");
    assert_eq!(tally.remove("hung"), None);
    for end in [
        "finished",
        "done_without_finish",
        "interrupted",
        "server_error",
        "transport",
        "cancelled",
        "timed_out",
        "limit_exceeded",
        "lost",
    ] {
        assert!(
            tally.get(end).is_some_and(|count| *count > 0),
            "{end} was never reached"
        );
    }
    assert_flat(&memory);
}

/// After the first eighth has warmed up the allocator, the same work again and again takes no more room.
fn assert_flat(memory: &[Option<u64>]) {
    const SLACK: u64 = 24 * 1024 * 1024;
    let known: Vec<u64> = memory.iter().copied().flatten().collect();
    if let [first, .., last] = known[..] {
        assert!(last < first + SLACK, "{known:?}");
    }
}

fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// A panic that a script was told to make is no news.
fn silence_panics_on_purpose() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let text = info.payload().downcast_ref::<String>().map(String::as_str);
        if !text.is_some_and(|text| text.contains(ON_PURPOSE)) {
            report(info);
        }
    }));
}

async fn soak(seeds: std::ops::Range<u64>) -> Tally {
    let one =
        |seed| tokio::spawn(async move { tokio::time::timeout(DEADLINE, completion(seed)).await });
    let mut running = stream::iter(seeds.map(one)).buffer_unordered(64);
    let mut tally = Tally::new();
    while let Some(ends) = running.next().await {
        let ends = ends.unwrap().unwrap_or_else(|_| vec!["hung".to_owned()]);
        for end in ends {
            *tally.entry(end).or_default() += 1;
        }
    }
    tally
}

/// One completion with one fault; the end of each of its choices.
async fn completion(seed: u64) -> Vec<String> {
    let mut rng = Rng::new(seed);
    let fault = FAULTS[rng.below(FAULTS.len())];
    let choices = 1 + rng.below(8) as u32;
    let steps = script(&mut rng, fault, choices);
    let completions = settings(fault).read_sse(Script::new(steps));
    let mut all = completions.choices();
    let mut tasks = Vec::new();
    while let Some(Ok(choice)) = all.next().await {
        match fault {
            Fault::Cancelled => completions.cancel(),
            Fault::OneCancelled if choice.index().0 == 0 => choice.cancel(),
            Fault::Dropped => return vec![],
            _ => {}
        }
        let slow = rng.chance(0.3);
        tasks.push(tokio::spawn(consume(choice, slow)));
    }
    let mut ends = Vec::new();
    for task in tasks {
        ends.push(task.await.unwrap());
    }
    let _whole = completions.aggregate().await;
    ends
}

fn settings(fault: Fault) -> Builder {
    match fault {
        Fault::Stalled => Completions::builder().idle_timeout(Duration::from_millis(20)),
        Fault::TooLong => Completions::builder().limits(Limits {
            choice_bytes: 200,
            ..Limits::default()
        }),
        _ => Completions::builder(),
    }
}

/// Reads a choice as a caller would, and checks that its stream says what its end says.
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
    let finished = match choice.finished().await {
        Ok(finished) => finished,
        Err(error) => error.partial().clone(),
    };
    assert_eq!(errors, usize::from(finished.end.is_error()));
    assert!(finished.message.content.starts_with(&text));
    finished.end.name().to_owned()
}

fn script(rng: &mut Rng, fault: Fault, choices: u32) -> Vec<Step> {
    // One choice at least: a caller who waits for a choice of a stalled stream, to cancel it, waits for ever.
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
    let whole = matches!(
        fault,
        Fault::None | Fault::NoReasons | Fault::TooLong | Fault::OneCancelled
    );
    if whole {
        wire.push_str(DONE);
    }
    let mut steps: Vec<Step> = Vec::new();
    for piece in random_cuts(wire.as_bytes(), rng.next_u64(), 400) {
        steps.push(bytes(piece));
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
