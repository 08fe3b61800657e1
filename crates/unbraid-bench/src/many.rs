//! Many completions at once, each at the speed of a model: what counts is how much memory one event touches.
//!
//! Ten thousand completions of four choices receive 20 events a second each, one event for each read, on two workers.
//! Another thread plays the network; its CPU time, and that of tasks that only read their source, are subtracted.
//! Each contender runs in its own process, because reused memory of another would not be counted.

mod network;

use std::{
    hint::black_box,
    io::{self, Write},
    process::Command,
    sync::Arc,
    time::Duration,
};

use cpu_time::ProcessTime;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use unbraid::Completions;

use self::network::{Connection, Network};
use crate::{
    contender::{Contender, Record, actors, today},
    counters::{Counters, Unavailable},
    memory::resident::Resident,
    table::{median, rounded, runtime},
};

const CHOICES: usize = 4;

/// The source is the first.
const COMPARED: [Contender; 3] = [Contender::Source, Contender::Today, Contender::Actors];

/// The size of a measurement.
#[derive(Debug, Clone, Copy)]
struct Effort {
    completions: usize,
    seconds: usize,
    rounds: usize,
}

impl Effort {
    fn new(quick: bool) -> Self {
        if quick {
            Self {
                completions: 2_000,
                seconds: 2,
                rounds: 1,
            }
        } else {
            Self {
                completions: 10_000,
                seconds: 4,
                rounds: 5,
            }
        }
    }

    /// The events of each completion during the measurement.
    fn events(self) -> usize {
        self.seconds * network::EVENTS_PER_SECOND
    }
}

/// A consumer that has received a text.
#[derive(Debug, Clone)]
struct Consumer(Arc<Connection>);

impl Record for Consumer {
    fn record(&self, text: &str, _kept: &mut String) {
        black_box(text);
        self.0.count_item();
    }
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let effort = Effort::new(quick);
    let mut runs: [Vec<Value>; COMPARED.len()] = Default::default();
    for round in 0..effort.rounds {
        for turn in 0..COMPARED.len() {
            let index = (turn + round) % COMPARED.len();
            if let (Some(contender), Some(runs)) = (COMPARED.get(index), runs.get_mut(index)) {
                runs.push(in_child(*contender, quick)?);
            }
        }
    }
    let of = |runs: &[Value], key: &str| {
        let values: Vec<f64> = runs.iter().filter_map(|run| run[key].as_f64()).collect();
        (!values.is_empty()).then(|| median(values.into_iter()))
    };
    let [source, contenders @ ..] = &runs;
    let today = runs.get(1).and_then(|runs| of(runs, "cpu_ns"));
    let mut rows = Vec::new();
    for (contender, runs) in COMPARED.iter().skip(1).zip(contenders) {
        let net = |key: &str| Some(of(runs, key)? - of(source, key)?);
        let alone = of(source, "cpu_ns").unwrap_or_default();
        let over = today
            .zip(net("cpu_ns"))
            .map(|(today, net)| (today - alone) / net);
        rows.push(json!({
            "contender": contender.name(),
            "cpu_ns_per_event": net("cpu_ns").map(rounded),
            "today_over_this": over.map(rounded),
            "instructions_per_event": net("instructions").map(rounded),
            "cache_misses_per_event": net("cache_misses").map(rounded),
            "resident_kb_each": net("resident_kb").map(rounded),
        }));
    }
    if as_json {
        let report = json!({
            "rows": rows,
            "completions": effort.completions,
            "choices": CHOICES,
            "events_per_second": network::EVENTS_PER_SECOND,
            "rounds": effort.rounds,
        });
        return writeln!(out, "{report}");
    }
    print(&rows, effort, out)
}

fn print(rows: &[Value], effort: Effort, out: &mut impl Write) -> io::Result<()> {
    let (completions, per_second) = (effort.completions, network::EVENTS_PER_SECOND);
    writeln!(
        out,
        "{completions} completions of {CHOICES} choices, {per_second} events a second each, two workers\n"
    )?;
    writeln!(
        out,
        "{:<10} {:>12} {:>11} {:>14} {:>14} {:>17}",
        "contender",
        "ns an event",
        "today/this",
        "instructions",
        "cache misses",
        "kB resident each"
    )?;
    for row in rows {
        let name = row["contender"].as_str().unwrap_or_default();
        writeln!(
            out,
            "{name:<10} {:>12} {:>11} {:>14} {:>14} {:>17}",
            row["cpu_ns_per_event"],
            row["today_over_this"],
            row["instructions_per_event"],
            row["cache_misses_per_event"],
            row["resident_kb_each"],
        )?;
    }
    if rows
        .iter()
        .any(|row| row["cache_misses_per_event"].is_null())
    {
        writeln!(out, "{Unavailable}")?;
    }
    Ok(())
}

fn in_child(contender: Contender, quick: bool) -> io::Result<Value> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["many", contender.name()]);
    command.args(quick.then_some("--quick"));
    let output = command.output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(error.trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// Measures one contender, the source included, in this process.
pub(crate) fn measure(contender: &str, quick: bool, out: &mut impl Write) -> io::Result<()> {
    let contender = COMPARED.into_iter().find(|known| known.name() == contender);
    let contender = contender.ok_or_else(|| io::Error::other("no such contender"))?;
    let effort = Effort::new(quick);
    let mut counters = Counters::start();
    let runtime = runtime("two_workers")?;
    let before = Resident::now();
    let network = Network::new(effort.completions, CHOICES, effort.events());
    for connection in network.connections() {
        open(contender, &runtime, connection);
    }
    network.open()?;
    let counted = counters.read();
    let started = ProcessTime::now();
    let of_network = network.play()?;
    let spent = started.elapsed().saturating_sub(of_network);
    let counts = counters.read();
    // Every choice has received something: some contenders allocate only then.
    let after = Resident::now();
    let events = (effort.events() * effort.completions) as f64;
    let per_event = |read: fn(&crate::counters::Counts) -> u64| {
        let (before, after) = (read(counted.as_ref()?), read(counts.as_ref()?));
        Some((after - before) as f64 / events)
    };
    let resident = Option::zip(before, after)
        .map(|(before, after)| (after.all - before.all) * 1.024 / effort.completions as f64);
    let report = json!({
        "cpu_ns": spent.as_secs_f64() * 1e9 / events,
        "instructions": per_event(|counts| counts.instructions),
        "cache_misses": per_event(|counts| counts.cache_misses),
        "resident_kb": resident,
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    writeln!(out, "{report}")
}

/// Starts to read one stream.
fn open(contender: Contender, runtime: &Runtime, connection: &Arc<Connection>) {
    let consumer = Consumer(Arc::clone(connection));
    let mut stream = connection.stream();
    match contender {
        Contender::Actors => drop(runtime.spawn(async move {
            actors::read(Completions::from_byte_stream(stream), consumer).await
        })),
        Contender::Today => {
            drop(runtime.spawn(async move { today::read(stream, consumer).await }));
        }
        Contender::Source
        | Contender::TodayOf(_)
        | Contender::SseCore
        | Contender::Demux
        | Contender::Memchr => {
            drop(runtime.spawn(async move {
                while let Some(Ok(read)) = stream.next().await {
                    black_box(&read);
                    consumer.0.count_item();
                }
            }));
        }
    }
}
