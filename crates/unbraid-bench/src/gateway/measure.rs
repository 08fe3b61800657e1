//! Runs of all candidates in turn, with the same load.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Skipped,
    candidate::Candidate,
    load::{Load, Target},
    options::Options,
    process::{self, Usage},
    raise_file_limit,
    report::{Row, Run},
    upstream::{Plan, Upstream},
};
use crate::{random::Random, stamps::now};

/// A delta that arrives this much later than it was sent belongs to a candidate that cannot keep up.
const TOO_LATE: Duration = Duration::from_secs(2);

/// A median beyond this is that of a queue which never empties. What it says of a candidate depends on how long it has run.
const QUEUED: Duration = Duration::from_millis(100);

/// The part of the deltas that are sent during the window which a candidate that keeps up delivers in the same time.
const LEAST: f64 = 0.8;

/// The first answers, which are not measured. LiteLLM imports most of itself with its first request.
const WARM_UP: Plan = Plan {
    choices: 4,
    deltas: 5,
    every: Duration::ZERO,
    stays_open: false,
};
const WARM_UP_GENERATIONS: u32 = 16;
const WARM_UP_LIMIT: Duration = Duration::from_secs(120);

/// How long a candidate may take that may take its time. On a machine that compiles other projects at the same time it needs
/// minutes, and what it has not delivered then counts as lost.
const PATIENCE: Duration = Duration::from_secs(1200);

/// The smallest load that is tried.
const MIN_GENERATIONS: u32 = 8;

/// The size of a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Effort {
    pub(super) generations: u32,
    pub(super) choices: usize,
    /// Deltas each second for each choice.
    pub(super) per_second: u32,
    pub(super) rounds: usize,
    /// Whether a candidate that cannot keep up gets half of the load. Otherwise it may take its time, and must lose nothing.
    halves: bool,
    ramp: Duration,
    window: Duration,
}

impl Effort {
    /// Half of the load that the gateway is made for.
    pub(super) fn half(quick: bool) -> Self {
        Self {
            generations: 1000,
            choices: 4,
            per_second: 5,
            rounds: if quick { 1 } else { 3 },
            halves: true,
            ramp: Duration::from_secs(if quick { 2 } else { 3 }),
            window: Duration::from_secs(if quick { 4 } else { 10 }),
        }
    }

    pub(super) fn full(quick: bool) -> Self {
        Self {
            generations: 2000,
            halves: false,
            ..Self::half(quick)
        }
    }

    pub(super) fn with(self, options: &Options) -> Self {
        Self {
            generations: options.generations.unwrap_or(self.generations),
            rounds: options.rounds.unwrap_or(self.rounds),
            ..self
        }
    }

    /// The answers last until the window is over, also those that begin first.
    fn plan(self) -> Plan {
        let seconds = self.ramp + self.window + Duration::from_secs(3);
        Plan {
            choices: self.choices,
            deltas: u32::try_from(seconds.as_secs()).unwrap_or(1) * self.per_second,
            every: Duration::from_secs(1) / self.per_second / self.choices as u32,
            stays_open: false,
        }
    }

    pub(super) fn to_json(self) -> Value {
        json!({
            "generations": self.generations,
            "choices": self.choices,
            "deltas_per_second_and_choice": self.per_second,
            "rounds": self.rounds,
            "window_s": self.window.as_secs(),
        })
    }
}

/// Measures all candidates, in another order in each round.
pub(super) fn measure(
    candidates: &[Candidate],
    upstream: &Upstream,
    effort: Effort,
    options: &Options,
    skipped: &mut Skipped<'_, impl Write>,
) -> io::Result<Vec<Row>> {
    raise_file_limit()?;
    let mut runs: BTreeMap<usize, Vec<Run>> = BTreeMap::new();
    let mut loads = vec![effort.generations; candidates.len()];
    let mut absent = BTreeSet::new();
    for round in 0..effort.rounds {
        for index in shuffled(candidates.len(), round) {
            let (Some(candidate), Some(load)) = (candidates.get(index), loads.get_mut(index))
            else {
                continue;
            };
            if absent.contains(&index) || options.is_over() {
                continue;
            }
            match run_halving(candidate, upstream, effort, options, load) {
                Ok(run) => runs.entry(index).or_default().push(run),
                Err(error) => {
                    absent.insert(index);
                    skipped.skip(&candidate.name, &error)?;
                }
            }
        }
    }
    let rows = runs.iter();
    Ok(rows
        .filter_map(|(index, runs)| Some(Row::of(candidates.get(*index)?, runs)))
        .collect())
}

/// The numbers below `count`, in an order that depends on the round.
fn shuffled(count: usize, round: usize) -> Vec<usize> {
    let mut random = Random::new(round as u64 + 1);
    let mut left: Vec<usize> = (0..count).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        order.push(left.swap_remove(random.below(left.len())));
    }
    order
}

/// Runs a candidate with the load, or with half of it until it keeps up.
fn run_halving(
    candidate: &Candidate,
    upstream: &Upstream,
    effort: Effort,
    options: &Options,
    generations: &mut u32,
) -> io::Result<Run> {
    loop {
        let run = run(candidate, upstream, effort, options, *generations)?;
        if run.keeps_up || !effort.halves || *generations <= MIN_GENERATIONS {
            return Ok(run);
        }
        if options.is_over() {
            return Err(io::Error::other("the time was over before it kept up"));
        }
        *generations /= 2;
    }
}

/// Lets a candidate answer some requests.
fn warm_up(target: &Target, upstream: &Upstream) -> io::Result<()> {
    upstream.set_plan(WARM_UP);
    let load = Load::start(
        target,
        WARM_UP,
        WARM_UP_GENERATIONS,
        Duration::ZERO,
        WARM_UP_LIMIT,
        upstream.clock,
    );
    // Whether it loses something is measured afterwards.
    load.finish().map(drop)
}

fn run(
    candidate: &Candidate,
    upstream: &Upstream,
    effort: Effort,
    options: &Options,
    generations: u32,
) -> io::Result<Run> {
    let plan = effort.plan();
    let running = candidate.start(upstream.address, options)?;
    warm_up(&running.target, upstream)?;
    upstream.set_plan(plan);
    let bytes_before = upstream.written().1;
    let limit = effort.ramp + plan.every * plan.choices as u32 * plan.deltas + 10 * TOO_LATE;
    let limit = if effort.halves { limit } else { PATIENCE };
    let load = Load::start(
        &running.target,
        plan,
        generations,
        effort.ramp,
        limit,
        upstream.clock,
    );
    thread::sleep(effort.ramp + Duration::from_secs(2));
    let (before, first) = (process::usage(&running.pids), load.received());
    load.begin();
    let mut is_late = false;
    let started = now();
    while started.elapsed() < effort.window && !is_late {
        thread::sleep(Duration::from_millis(250));
        is_late = effort.halves && load.last_latency() > TOO_LATE;
    }
    load.end();
    let (after, last) = (process::usage(&running.pids), load.received());
    let measured = started.elapsed();
    let cpu = after.cpu.saturating_sub(before.cpu);
    // One that delivers hardly anything has no late deltas either.
    let per_second = generations as usize * effort.choices * effort.per_second as usize;
    let offered = per_second as f64 * measured.as_secs_f64();
    is_late |= effort.halves && ((last - first) as f64) < LEAST * offered;
    if is_late {
        // Ending the candidate ends the load.
        drop(running);
        drop(load.finish()?);
        return Ok(Run::too_slow(generations));
    }
    let mut peak = after;
    while !load.is_over() {
        thread::sleep(Duration::from_millis(100));
        peak = Usage::max(peak, process::usage(&running.pids));
    }
    let (tally, latencies) = load.finish()?;
    let median = latencies.get(latencies.len() / 2).copied();
    let is_queued = median.is_some_and(|nanos| Duration::from_nanos(nanos) > QUEUED);
    let sent = upstream.written().1 - bytes_before;
    let events = f64::from(generations) * (plan.total() + plan.choices as u64 + 1) as f64;
    Ok(Run {
        generations,
        keeps_up: tally.wrong == 0 && tally.incomplete == 0 && !(effort.halves && is_queued),
        cpu_us: cpu.as_secs_f64() * 1e6 / (last - first).max(1) as f64,
        cores: cpu.as_secs_f64() / measured.as_secs_f64().max(1e-9),
        peak: peak.peak,
        lost: tally.wrong + tally.incomplete,
        deltas: tally.deltas,
        bytes_per_event: (tally.bytes as f64 - sent as f64) / events,
        latencies,
    })
}

impl Usage {
    fn max(self, other: Self) -> Self {
        Self {
            peak: self.peak.max(other.peak),
            ..self
        }
    }
}
