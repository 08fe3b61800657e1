//! The table of latencies and costs.

use std::{
    io::{self, Write},
    time::Duration,
};

use serde_json::{Value, json};

use super::{candidate::Candidate, measure::Effort};
use crate::table::{median, rounded};

/// One run of a candidate.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) generations: u32,
    pub(super) keeps_up: bool,
    /// CPU time for each delta that was received, in microseconds.
    pub(super) cpu_us: f64,
    pub(super) cores: f64,
    pub(super) peak: u64,
    pub(super) lost: u64,
    pub(super) deltas: u64,
    /// What the client got beyond what the upstream sent.
    pub(super) bytes_per_event: f64,
    /// Nanoseconds, sorted.
    pub(super) latencies: Vec<u64>,
}

impl Run {
    /// A run that was given up.
    pub(super) fn too_slow(generations: u32) -> Self {
        Self {
            generations,
            keeps_up: false,
            cpu_us: f64::NAN,
            cores: f64::NAN,
            peak: 0,
            lost: 0,
            deltas: 0,
            bytes_per_event: f64::NAN,
            latencies: Vec::new(),
        }
    }

    /// The latency below which so many of ten thousand deltas are, in milliseconds.
    fn percentile(&self, of_ten_thousand: usize) -> f64 {
        let index = self.latencies.len() * of_ten_thousand / 10_000;
        let nanos = self.latencies.get(index).copied().unwrap_or_default();
        Duration::from_nanos(nanos).as_secs_f64() * 1e3
    }
}

/// The medians of all rounds of one candidate.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: String,
    is_direct: bool,
    generations: u32,
    keeps_up: bool,
    p50: f64,
    p99: f64,
    p999: f64,
    cpu_us: f64,
    cores: f64,
    peak: f64,
    bytes_per_event: f64,
    deltas: u64,
    pub(super) lost: u64,
    /// The rounds of which these are medians.
    rounds: usize,
}

impl Row {
    pub(super) fn of(candidate: &Candidate, runs: &[Run]) -> Self {
        // If a later round had a smaller load, the earlier ones did not keep up with it by chance.
        let generations = runs.iter().map(|run| run.generations).min().unwrap_or(0);
        let same = || runs.iter().filter(|run| run.generations == generations);
        let of = |value: fn(&Run) -> f64| median(same().map(value));
        Self {
            name: candidate.name.clone(),
            is_direct: candidate.is_direct(),
            generations,
            keeps_up: same().all(|run| run.keeps_up),
            p50: of(|run| run.percentile(5_000)),
            p99: of(|run| run.percentile(9_900)),
            p999: of(|run| run.percentile(9_990)),
            cpu_us: of(|run| run.cpu_us),
            cores: of(|run| run.cores),
            peak: of(|run| run.peak as f64),
            bytes_per_event: of(|run| run.bytes_per_event),
            deltas: same().map(|run| run.deltas).sum(),
            lost: same().map(|run| run.lost).sum(),
            rounds: same().count(),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let cost = |value: f64| (!self.is_direct).then(|| rounded(value));
        json!({
            "candidate": self.name,
            "generations": self.generations,
            "keeps_up": self.keeps_up,
            "p50_ms": rounded(self.p50),
            "p99_ms": rounded(self.p99),
            "p99_9_ms": rounded(self.p999),
            "cpu_us_per_delta": cost(self.cpu_us),
            "cores": cost(self.cores),
            "peak_mb": cost(self.peak / 1e6),
            "bytes_per_event": rounded(self.bytes_per_event),
            "deltas": self.deltas,
            "lost": self.lost,
            "rounds": self.rounds,
        })
    }
}

pub(super) fn print(rows: &[Row], effort: Effort, out: &mut impl Write) -> io::Result<()> {
    let Effort {
        generations,
        choices,
        per_second,
        rounds,
        ..
    } = effort;
    let rate = generations as usize * choices * per_second as usize;
    writeln!(
        out,
        "{generations} generations x {choices} choices x {per_second} deltas/s = {rate} deltas/s; medians of up to {rounds} rounds; added latency is compared with `direct`"
    )?;
    writeln!(
        out,
        "{:<28} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>7} {:>9} {:>7} {:>6} {:>6}",
        "candidate",
        "gens",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "+p50 ms",
        "+p99 ms",
        "CPU us",
        "cores",
        "peak MB",
        "B/event",
        "lost",
        "rounds"
    )?;
    let direct = rows.iter().find(|row| row.is_direct);
    for row in rows {
        let same = direct.filter(|direct| direct.generations == row.generations && !row.is_direct);
        let added = |of: fn(&Row) -> f64| {
            same.map_or_else(
                || "-".to_owned(),
                |direct| format!("{:.2}", of(row) - of(direct)),
            )
        };
        let cost = |text: String| if row.is_direct { "-".to_owned() } else { text };
        writeln!(
            out,
            "{:<28} {:>6} {:>9.2} {:>9.2} {:>9.2} {:>9} {:>9} {:>9} {:>7} {:>9} {:>7.1} {:>6} {:>6}{}",
            row.name,
            row.generations,
            row.p50,
            row.p99,
            row.p999,
            added(|row| row.p50),
            added(|row| row.p99),
            cost(format!("{:.1}", row.cpu_us)),
            cost(format!("{:.2}", row.cores)),
            cost(format!("{:.1}", row.peak / 1e6)),
            row.bytes_per_event,
            row.lost,
            row.rounds,
            if row.keeps_up {
                ""
            } else {
                "  does not keep up"
            },
        )?;
    }
    Ok(())
}
