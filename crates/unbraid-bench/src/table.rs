//! Measures all contenders with all deliveries and runtimes: compares their answers, then their times.

use std::io::{self, Write};

use cpu_time::ProcessTime;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use crate::{
    body::{self, Body, Shape},
    contender::Contender,
    feed::{Delivery, Reads},
};

/// The size of a measurement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) chunks: usize,
    pub(crate) rounds: usize,
}

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    contender: Contender,
    runtime: &'static str,
    delivery: Delivery,
    /// CPU time of the process without that of the source.
    ns_per_chunk: f64,
    today_over_this: f64,
}

impl Row {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "contender": self.contender.name(),
            "runtime": self.runtime,
            "delivery": self.delivery.name(),
            "ns_per_chunk": rounded(self.ns_per_chunk),
            "today_over_this": rounded(self.today_over_this),
        })
    }
}

pub(crate) fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

pub(crate) const RUNTIMES: [&str; 2] = ["current_thread", "two_workers"];

pub(crate) fn runtime(name: &str) -> io::Result<Runtime> {
    if name == "two_workers" {
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_time()
            .build()
    } else {
        Builder::new_current_thread().enable_time().build()
    }
}

/// Measures all contenders. Returns an error if any two disagree.
pub(crate) fn measure(effort: Effort, shape: Shape) -> io::Result<Vec<Row>> {
    let body = body::body(effort.chunks, shape);
    let mut rows = Vec::new();
    for runtime_name in RUNTIMES {
        let runtime = runtime(runtime_name)?;
        for delivery in Delivery::ALL {
            let reads = delivery.cut(&body);
            compare(&runtime, &reads, &body)?;
            let rounds = rounds(&runtime, &reads, effort.rounds);
            rows.extend(evaluate(&rounds, &body, runtime_name, delivery));
        }
    }
    Ok(rows)
}

/// Runs a contender to its end in a task of the runtime, and returns the CPU time of the process in nanoseconds.
pub(crate) fn time(runtime: &Runtime, reads: &Reads, contender: Contender) -> f64 {
    let (feed, tally) = reads.feed(false);
    let started = ProcessTime::now();
    let task = runtime.spawn(contender.run(feed, tally));
    let _answer = runtime.block_on(task);
    started.elapsed().as_secs_f64() * 1e9
}

/// Runs one contender long enough for a profiler.
pub(crate) fn profile(
    [contender, delivery, runtime_name]: [&str; 3],
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    const PROFILED: u32 = 20_000;
    let unknown = || io::Error::other("no such contender or delivery");
    let contender = Contender::ALL.into_iter().find(|c| c.name() == contender);
    let delivery = Delivery::ALL.into_iter().find(|d| d.name() == delivery);
    let (contender, delivery) = (
        contender.ok_or_else(unknown)?,
        delivery.ok_or_else(unknown)?,
    );
    let reads = delivery.cut(&body::body(PROFILED as usize, body::BRAIDED));
    let runtime = runtime(runtime_name)?;
    repeat(&runtime, &reads, contender, u64::from(PROFILED), quick, out)
}

/// Runs one contender on one stream long enough for a profiler.
pub(crate) fn repeat(
    runtime: &Runtime,
    reads: &Reads,
    contender: Contender,
    events: u64,
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let enough = if quick { 1.5e8 } else { 4e9 };
    let (mut spent, mut rounds) = (0.0, 0);
    while spent < enough {
        spent += time(runtime, reads, contender);
        rounds += 1;
    }
    let cost = spent / (f64::from(rounds) * events as f64);
    writeln!(
        out,
        "{cost:.0} ns per chunk, including the source, in {rounds} rounds"
    )
}

fn compare(runtime: &Runtime, reads: &Reads, body: &Body) -> io::Result<()> {
    for contender in Contender::ALL {
        let (feed, tally) = reads.feed(true);
        let task = runtime.spawn(contender.run(feed, tally));
        let answer = runtime.block_on(task).map_err(io::Error::other)?;
        if answer.is_some_and(|answer| answer != body.answer) {
            let message = format!("{} gives another answer", contender.name());
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}

/// The times of every round, in the order of [`Contender::ALL`]. Each round starts with the next contender.
fn rounds(runtime: &Runtime, reads: &Reads, rounds: usize) -> Vec<[f64; Contender::ALL.len()]> {
    let count = Contender::ALL.len();
    let mut all = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut times = [0.0; Contender::ALL.len()];
        for turn in 0..count {
            let index = (turn + round) % count;
            if let (Some(contender), Some(slot)) = (Contender::ALL.get(index), times.get_mut(index))
            {
                *slot = time(runtime, reads, *contender);
            }
        }
        all.push(times);
    }
    all
}

fn evaluate(
    rounds: &[[f64; Contender::ALL.len()]],
    body: &Body,
    runtime: &'static str,
    delivery: Delivery,
) -> Vec<Row> {
    let position = |wanted| Contender::ALL.iter().position(|known| *known == wanted);
    let net = |times: &[f64], contender| {
        let of = |wanted| position(wanted).and_then(|index| times.get(index)).copied();
        let alone = of(Contender::Source).unwrap_or_default();
        (of(contender).unwrap_or_default() - alone).max(1.0)
    };
    let compared = Contender::ALL.iter().filter(|c| **c != Contender::Source);
    let row = |contender: &Contender| Row {
        contender: *contender,
        runtime,
        delivery,
        ns_per_chunk: median(
            rounds
                .iter()
                .map(|times| net(times, *contender) / body.chunks as f64),
        ),
        today_over_this: median(
            rounds
                .iter()
                .map(|times| net(times, Contender::Today) / net(times, *contender)),
        ),
    };
    compared.map(row).collect()
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

pub(crate) fn print(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<15} {:<8} {:<10} {:>12} {:>16}",
        "runtime", "delivery", "contender", "ns per chunk", "today over this"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<15} {:<8} {:<10} {:>12.1} {:>16.2}",
            row.runtime,
            row.delivery.name(),
            row.contender.name(),
            row.ns_per_chunk,
            row.today_over_this
        )?;
    }
    Ok(())
}
