//! A simulation of one shard of an engine: its generations have one append in flight each.
//!
//! Deltas arrive at random times. A generation whose append was acknowledged sends the next one once it has an event and its
//! linger is over. The shard serves appends one after the other or, if a commit takes time, all that wait as one group.

use std::{cmp::Reverse, collections::BinaryHeap};

use serde::Serialize;

use super::inputs::Inputs;
use crate::random::Random;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Simulated {
    pub(super) load: f64,
    pub(super) generations: usize,
    pub(super) appends_per_second: f64,
    pub(super) deltas_per_append: f64,
    /// The part of the time in which the shard worked.
    pub(super) busy: f64,
    /// From the arrival of a delta to the acknowledgement of its append, in milliseconds.
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// Times are in nanoseconds, so that they have an order.
type Time = u64;

const SECOND: f64 = 1e9;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A delta arrives at a generation.
    Delta(usize),
    /// A generation's linger is over.
    Send(usize),
    /// An append arrives at the shard.
    Arrive(usize),
    /// The shard has finished a group.
    Served,
    /// An acknowledgement arrives at a generation.
    Acknowledged(usize),
}

#[derive(Debug, Clone, Default)]
struct Generation {
    /// The arrivals of the deltas that wait, and of those in flight.
    waiting: Vec<Time>,
    in_flight: Vec<Time>,
    is_sending: bool,
}

struct Shard<'i> {
    inputs: &'i Inputs,
    random: Random,
    steps: BinaryHeap<Reverse<(Time, Step)>>,
    generations: Vec<Generation>,
    queue: Vec<usize>,
    serving: Vec<usize>,
    busy: Time,
    appends: u64,
    deltas: u64,
    latencies: Vec<f64>,
    rate: f64,
}

/// Simulates a shard for some seconds, at this part of the load that its CPU time allows with one delta for each append.
pub(super) fn simulate(inputs: &Inputs, load: f64, seconds: f64) -> Simulated {
    let rate = inputs.get("choices") * inputs.get("deltas");
    let append_us = inputs.get("append_us").max(0.1);
    let generations = (load * 1e6 / append_us / rate.max(0.001)).clamp(1.0, 50_000.0) as usize;
    let mut shard = Shard {
        inputs,
        random: Random::new(5),
        steps: BinaryHeap::new(),
        generations: vec![Generation::default(); generations],
        queue: Vec::new(),
        serving: Vec::new(),
        busy: 0,
        appends: 0,
        deltas: 0,
        latencies: Vec::new(),
        rate,
    };
    shard.run((seconds * SECOND) as Time);
    let mut latencies = shard.latencies;
    latencies.sort_by(f64::total_cmp);
    Simulated {
        load,
        generations,
        appends_per_second: shard.appends as f64 / seconds,
        deltas_per_append: shard.deltas as f64 / (shard.appends as f64).max(1.0),
        busy: shard.busy as f64 / (seconds * SECOND),
        p50_ms: crate::log::percentile(&latencies, 0.5),
        p99_ms: crate::log::percentile(&latencies, 0.99),
    }
}

impl Shard<'_> {
    fn run(&mut self, end: Time) {
        for generation in 0..self.generations.len() {
            let at = self.until_delta();
            self.at(at, Step::Delta(generation));
        }
        while let Some(Reverse((now, step))) = self.steps.pop().filter(|step| step.0.0 < end) {
            match step {
                Step::Delta(generation) => self.delta(generation, now),
                Step::Send(generation) => self.send(generation, now),
                Step::Arrive(generation) => {
                    self.queue.push(generation);
                    self.serve(now);
                }
                Step::Served => self.served(now),
                Step::Acknowledged(generation) => self.acknowledged(generation, now),
            }
        }
    }

    fn at(&mut self, time: Time, step: Step) {
        self.steps.push(Reverse((time, step)));
    }

    /// A time between two deltas: exponentially distributed.
    fn until_delta(&mut self) -> Time {
        let uniform = (self.random.below(1_000_000) as f64 + 0.5) / 1e6;
        (-uniform.ln() / self.rate.max(0.001) * SECOND) as Time
    }

    /// Half a round trip.
    fn half_trip(&self) -> Time {
        (self.inputs.get("rtt_ms") / 2000.0 * SECOND) as Time
    }

    fn delta(&mut self, generation: usize, now: Time) {
        let next = now + self.until_delta();
        self.at(next, Step::Delta(generation));
        if let Some(state) = self.generations.get_mut(generation) {
            state.waiting.push(now);
        }
        self.begin(generation, now);
    }

    /// Plans an append, unless one is in flight or there is nothing to append.
    fn begin(&mut self, generation: usize, now: Time) {
        let linger = (self.inputs.get("linger_ms") / 1000.0 * SECOND) as Time;
        let Some(state) = self.generations.get_mut(generation) else {
            return;
        };
        if !state.is_sending && !state.waiting.is_empty() {
            state.is_sending = true;
            self.at(now + linger, Step::Send(generation));
        }
    }

    fn send(&mut self, generation: usize, now: Time) {
        let arrives = now + self.half_trip();
        if let Some(state) = self.generations.get_mut(generation) {
            state.in_flight = std::mem::take(&mut state.waiting);
        }
        self.at(arrives, Step::Arrive(generation));
    }

    /// Begins to serve what waits, if the shard is free.
    fn serve(&mut self, now: Time) {
        if !self.serving.is_empty() || self.queue.is_empty() {
            return;
        }
        let commit = self.inputs.get("commit_ms") / 1000.0;
        self.serving = if commit > 0.0 {
            std::mem::take(&mut self.queue)
        } else {
            vec![self.queue.remove(0)]
        };
        let appends = self.serving.len() as f64 * self.inputs.get("append_us") / 1e6;
        let takes = ((commit + appends) * SECOND) as Time;
        self.busy += takes;
        self.at(now + takes, Step::Served);
    }

    fn served(&mut self, now: Time) {
        let back = now + self.half_trip();
        for generation in std::mem::take(&mut self.serving) {
            self.at(back, Step::Acknowledged(generation));
        }
        self.serve(now);
    }

    fn acknowledged(&mut self, generation: usize, now: Time) {
        let Some(state) = self.generations.get_mut(generation) else {
            return;
        };
        state.is_sending = false;
        self.appends += 1;
        for arrived in state.in_flight.drain(..) {
            self.deltas += 1;
            self.latencies.push((now - arrived) as f64 / 1e6);
        }
        self.begin(generation, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_that_is_not_busy_answers_in_a_round_trip() {
        let inputs = Inputs::new(&["rtt_ms=1", "append_us=100"]).unwrap();
        let idle = simulate(&inputs, 0.1, 5.0);
        assert!((idle.p50_ms - 1.1).abs() < 0.1, "{idle:?}");
        assert!((idle.busy - 0.1).abs() < 0.02, "{idle:?}");
        let full = simulate(&inputs, 1.5, 5.0);
        // Beyond its capacity it answers later, and each append takes more deltas: nothing grows without bound.
        assert!(full.busy > 0.95 && full.deltas_per_append > 1.3, "{full:?}");
        assert!(full.p99_ms < 200.0, "{full:?}");
    }

    #[test]
    fn a_linger_and_a_commit_that_takes_time_group_deltas() {
        let inputs = Inputs::new(&["linger_ms=100", "append_us=100"]).unwrap();
        let lingers = simulate(&inputs, 0.5, 5.0);
        assert!((lingers.deltas_per_append - 3.0).abs() < 0.3, "{lingers:?}");
        let inputs = Inputs::new(&["commit_ms=4", "append_us=20"]).unwrap();
        let synced = simulate(&inputs, 0.3, 5.0);
        assert!(synced.p50_ms > 4.0 && synced.p99_ms < 40.0, "{synced:?}");
    }
}
