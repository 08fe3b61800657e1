//! What a completion costs apart from its deltas: it is opened, has one event, and ends.
//!
//! The event has a delta and the finish reason of each choice, and `[DONE]` arrives in the next read, so that every choice is
//! open in between. The peers are `today`, and the actors alone that such a completion consists of.

mod actors_alone;

use std::{
    io::{self, Write},
    process::Command,
};

use bytes::Bytes;
use cpu_time::ProcessTime;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    contender::Contender,
    feed::Reads,
    memory::Measure,
    table::{median, rounded, runtime},
};

const CHOICES: [usize; 4] = [1, 2, 4, 8];

/// What is compared, after the source alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Of(Contender),
    /// The same number of actors, which do nothing.
    Ractor,
}

const COMPARED: [Subject; 5] = [
    Subject::Of(Contender::Source),
    Subject::Of(Contender::Today),
    Subject::Of(Contender::Demux),
    Subject::Of(Contender::Actors),
    Subject::Ractor,
];

impl Subject {
    fn name(self) -> &'static str {
        match self {
            Self::Of(contender) => contender.name(),
            Self::Ractor => "ractor",
        }
    }

    async fn open_and_end(self, reads: &Reads, choices: usize) {
        match self {
            Self::Of(contender) => {
                let (feed, tally) = reads.feed(false);
                let _answer = contender.run(feed, tally).await;
            }
            Self::Ractor => actors_alone::start_and_stop(choices).await,
        }
    }

    /// The CPU time of one stream in microseconds.
    fn time(self, runtime: &Runtime, reads: &Reads, choices: usize, times: u32) -> f64 {
        let started = ProcessTime::now();
        self.repeat(runtime, reads, choices, times);
        started.elapsed().as_secs_f64() * 1e6 / f64::from(times)
    }

    fn repeat(self, runtime: &Runtime, reads: &Reads, choices: usize, times: u32) {
        let reads = reads.clone();
        let task = runtime.spawn(async move {
            for _ in 0..times {
                self.open_and_end(&reads, choices).await;
            }
        });
        let _ended = runtime.block_on(task);
    }
}

/// The two reads of a stream.
fn reads(choices: usize) -> Reads {
    let choice = |index| json!({ "index": index, "delta": { "role": "assistant", "content": "Hi" }, "logprobs": null, "finish_reason": "stop" });
    let chunk = json!({
        "id": "chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012",
        "object": "chat.completion.chunk",
        "created": 1_730_000_000,
        "model": "gpt-4o-2024-08-06",
        "choices": (0..choices).map(choice).collect::<Vec<_>>(),
    });
    Reads::new(vec![
        Bytes::from(format!("data: {chunk}\n\n")),
        Bytes::from_static(b"data: [DONE]\n\n"),
    ])
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let (rounds, times) = if quick { (5, 200) } else { (11, 2_000) };
    let runtime = runtime("current_thread")?;
    let allocations = allocations_of_child();
    let mut rows = Vec::new();
    for choices in CHOICES {
        let reads = reads(choices);
        let mut all: [Vec<f64>; COMPARED.len()] = Default::default();
        for round in 0..=rounds {
            for turn in 0..COMPARED.len() {
                let index = (turn + round) % COMPARED.len();
                if let (Some(subject), Some(all)) = (COMPARED.get(index), all.get_mut(index)) {
                    let time = subject.time(&runtime, &reads, choices, times);
                    all.extend((round > 0).then_some(time)); // the first round warms up
                }
            }
        }
        let source = median(all[0].iter().copied());
        for (subject, times) in COMPARED.iter().zip(&all).skip(1) {
            let counted = allocations.as_ref().ok();
            let counted = counted.and_then(|all| all.get(choices.to_string())?.get(subject.name()));
            let row = json!({
                "choices": choices,
                "contender": subject.name(),
                "us": rounded(median(times.iter().copied()) - source),
                "allocations": counted.map(|counted| &counted["allocations"]),
                "heap_bytes_while_open": counted.map(|counted| &counted["heap"]),
            });
            rows.push(row);
        }
    }
    if as_json {
        return writeln!(out, "{}", json!({ "rows": rows, "rounds": rounds }));
    }
    if let Err(error) = allocations {
        writeln!(out, "allocations and heap are not available: {error}")?;
    }
    print(&rows, out)
}

/// Runs one subject long enough for a profiler.
pub(crate) fn profile(subject: &str, choices: &str, out: &mut impl Write) -> io::Result<()> {
    const TIMES: u32 = 1_000;
    let unknown = || io::Error::other("no such contender");
    let subject = COMPARED.into_iter().find(|known| known.name() == subject);
    let subject = subject.ok_or_else(unknown)?;
    let choices = choices.parse().map_err(io::Error::other)?;
    let runtime = runtime("current_thread")?;
    let time = subject.time(&runtime, &reads(choices), choices, TIMES);
    writeln!(
        out,
        "{time:.2} us for each of {TIMES}, including the source"
    )
}

fn print(rows: &[Value], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>7} {:<10} {:>10} {:>12} {:>22}",
        "choices", "contender", "us", "allocations", "heap bytes while open"
    )?;
    for row in rows {
        let name = row["contender"].as_str().unwrap_or_default();
        writeln!(
            out,
            "{:>7} {name:<10} {:>10} {:>12} {:>22}",
            row["choices"], row["us"], row["allocations"], row["heap_bytes_while_open"]
        )?;
    }
    Ok(())
}

/// What the command `memory`, which counts allocations, prints about this benchmark.
fn allocations_of_child() -> io::Result<Value> {
    let name = format!("memory{}", std::env::consts::EXE_SUFFIX);
    let command = std::env::current_exe()?.with_file_name(name);
    let missing = |_| io::Error::other("build the command `memory` of this crate first");
    let output = Command::new(command)
        .arg(COMMAND)
        .output()
        .map_err(missing)?;
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// The argument of the command `memory`.
pub(crate) const COMMAND: &str = "fixed";

/// The allocations of each subject for each number of choices, and the bytes on the heap while the stream is open, as JSON.
pub(crate) fn allocations(measure: Measure) -> io::Result<Value> {
    let runtime = runtime("current_thread")?;
    let mut all = json!({});
    for choices in CHOICES {
        let reads = reads(choices);
        let counted = |subject: Subject| {
            const TIMES: u32 = 100;
            subject.repeat(&runtime, &reads, choices, 1); // what is allocated once for the thread
            let counted = measure(&mut || subject.repeat(&runtime, &reads, choices, TIMES));
            counted.allocations as f64 / f64::from(TIMES)
        };
        let source = counted(Subject::Of(Contender::Source));
        let mut subjects = json!({});
        for subject in COMPARED.into_iter().skip(1) {
            let heap = match subject {
                Subject::Of(Contender::Actors) => Some(crate::memory::held(measure, choices, 100)?),
                Subject::Ractor => Some(actors_alone::held(&runtime, measure, choices)),
                Subject::Of(_) => None,
            };
            subjects[subject.name()] = json!({
                "allocations": rounded((counted(subject) - source).max(0.0)),
                "heap": heap.map(f64::round),
            });
        }
        all[choices.to_string()] = subjects;
    }
    Ok(all)
}
