//! Recorded streams as they are, with their opening and their end.

use std::io::{self, Write};

use serde_json::{Value, json};
use unbraid_core::{Config, Demux};

use crate::{
    contest::{self, Contest},
    recordings,
    table::{rounded, runtime},
};

/// A recording is read so often in a round that it has about this many events.
const ROUND_EVENTS: u64 = 1_000;

struct Row {
    name: String,
    events: u64,
    choices: usize,
    contest: Contest,
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let rounds = if quick { 3 } else { 7 };
    let runtime = runtime("current_thread")?;
    let mut rows = Vec::new();
    if !as_json {
        writeln!(
            out,
            "{:<72} {:>6} {:>3} {}",
            "recording",
            "events",
            "n",
            contest::TITLES
        )?;
    }
    for recording in recordings::below(&recordings::folder())? {
        let mut demux = Demux::new(Config::default());
        demux.feed(&recording.bytes);
        demux.finish();
        let ((events, _), choices) = (demux.template_hits(), demux.choices().count());
        if choices == 0 {
            continue; // a stream of errors, or of another API
        }
        let times = ROUND_EVENTS.div_ceil(events.max(1)) as usize;
        let reads = recordings::in_reads(&recording.bytes);
        let row = Row {
            name: recording.name,
            events,
            choices,
            contest: Contest::new(&runtime, &reads, events, times, rounds),
        };
        if !as_json {
            row.print(out)?;
        }
        rows.push(row);
    }
    let summary = summary(&rows);
    let rows = as_json.then(|| rows.iter().map(Row::to_json).collect());
    contest::print_summary(rows, &summary, out)
}

impl Row {
    /// Whether the goal concerns it: eight events for each choice or more.
    fn is_long(&self) -> bool {
        self.events >= 8 * self.choices as u64
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "events": self.events,
            "choices": self.choices,
            "ns_per_event": self.contest.to_json(),
        })
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let name: String = self.name.chars().take(72).collect();
        let columns = self.contest.columns();
        writeln!(
            out,
            "{name:<72} {:>6} {:>3} {columns}",
            self.events, self.choices
        )
    }
}

fn summary(rows: &[Row]) -> Value {
    let summary = |kept: &dyn Fn(&&Row) -> bool| {
        let ratio = |row: &Row| row.contest.today_over_actors();
        let ratios: Vec<f64> = rows.iter().filter(kept).filter_map(ratio).collect();
        let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
        json!({
            "recordings": ratios.len(),
            "below_1": ratios.iter().filter(|ratio| **ratio < 1.0).count(),
            "worst": ratios.iter().copied().reduce(f64::min).map(rounded),
            "geometric_mean": rounded((logarithms / ratios.len().max(1) as f64).exp()),
        })
    };
    json!({
        "today_over_actors_8_events_a_choice": summary(&|row| row.is_long()),
        "today_over_actors_shorter": summary(&|row| !row.is_long()),
    })
}
