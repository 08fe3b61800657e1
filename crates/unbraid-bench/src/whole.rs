//! Recorded streams as they are, with their opening and their end.

use std::io::{self, Write};

use serde_json::{Value, json};
use unbraid_core::{Config, Demux, internal::template_hits};

use crate::{
    contender::Contender,
    contest::{self, Contest},
    recordings::{self, Recording},
    table::{median, rounded, runtime, time},
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
        let Some((events, choices)) = size(&recording) else {
            continue;
        };
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

/// The number of events and choices; `None` for a stream of errors, or of another API.
fn size(recording: &Recording) -> Option<(u64, usize)> {
    let mut demux = Demux::new(Config::default());
    demux.feed(&recording.bytes);
    demux.finish();
    let (events, _) = template_hits(&demux);
    let choices = demux.choices().count();
    (choices > 0).then_some((events, choices))
}

/// Runs one contender on the recordings whose names begin so and to which the goal applies, for a profiler.
pub(crate) fn profile(
    contender: &str,
    name: &str,
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let rounds = if quick { 5 } else { 31 };
    let contender = Contender::ALL.into_iter().find(|c| c.name() == contender);
    let contender = contender.ok_or_else(|| io::Error::other("no such contender"))?;
    let runtime = runtime("current_thread")?;
    let mut logarithms = Vec::new();
    for recording in recordings::below(&recordings::folder())? {
        let Some((events, choices)) = size(&recording) else {
            continue;
        };
        if !recording.name.starts_with(name) || !is_long(events, choices) {
            continue;
        }
        let reads = recordings::in_reads(&recording.bytes);
        let delivered = |contender: Contender| contender.delivered(&runtime, &reads);
        let today = delivered(Contender::Today);
        if today.is_none() || today != delivered(contender) {
            continue;
        }
        let times = ROUND_EVENTS.div_ceil(events) as usize;
        let round = |_| {
            let all = (0..times).map(|_| time(&runtime, &reads, contender));
            all.sum::<f64>() / (times as u64 * events) as f64
        };
        logarithms.push(median((0..rounds).map(round)).ln());
    }
    let count = logarithms.len();
    let mean = (logarithms.iter().sum::<f64>() / count.max(1) as f64).exp();
    writeln!(
        out,
        "{mean:.0} ns an event, the source included: geometric mean of {count} recordings"
    )
}

/// Whether the goal concerns such a recording: eight events for each choice or more.
fn is_long(events: u64, choices: usize) -> bool {
    events >= 8 * choices as u64
}

impl Row {
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
        "today_over_actors_8_events_a_choice": summary(&|row| is_long(row.events, row.choices)),
        "today_over_actors_shorter": summary(&|row| !is_long(row.events, row.choices)),
    })
}
