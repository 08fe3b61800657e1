//! Measures the contenders on one stream: what each of them delivers, and its time.

use std::io::{self, Write};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::{
    contender::Contender,
    feed::Reads,
    table::{median, rounded, time},
};

/// The contenders that are compared, after the source alone.
pub(crate) const COMPARED: [Contender; 4] = [
    Contender::Today,
    Contender::SseCore,
    Contender::Demux,
    Contender::Actors,
];

/// What the contenders did with one stream, in the order of [`COMPARED`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contest {
    /// CPU time for each event in nanoseconds, without that of the source.
    pub(crate) ns: [f64; COMPARED.len()],
    /// The ratio of each contender's time to that of the actors, within a round.
    ratios: [f64; COMPARED.len()],
    /// The number of deltas that each contender delivered; `None` for one that panics at this stream, and is not measured.
    items: [Option<usize>; COMPARED.len()],
}

/// Prints the summary, or with the rows one object.
pub(crate) fn print_summary(
    rows: Option<Vec<Value>>,
    summary: &Value,
    out: &mut impl Write,
) -> io::Result<()> {
    if let Some(rows) = rows {
        return writeln!(out, "{}", json!({ "rows": rows, "summary": summary }));
    }
    for (name, value) in summary.as_object().into_iter().flatten() {
        writeln!(out, "{name:<64} {value}")?;
    }
    Ok(())
}

impl Contest {
    /// Measures the stream `times` times in each round. Each round starts with the next contender.
    pub(crate) fn new(
        runtime: &Runtime,
        reads: &Reads,
        events: u64,
        times: usize,
        rounds: usize,
    ) -> Self {
        let items = COMPARED.map(|contender| contender.delivered(runtime, reads));
        let readers = COMPARED.iter().zip(items);
        let readers = readers.filter_map(|(contender, items)| items.map(|_| *contender));
        let readers: Vec<Contender> = [Contender::Source].into_iter().chain(readers).collect();
        let all = (events.max(1) as usize * times) as f64;
        let rounds: Vec<_> = (0..rounds)
            .map(|round| net(runtime, reads, times, round, &readers))
            .collect();
        let of = |of: &dyn Fn(&[f64; COMPARED.len()]) -> f64| median(rounds.iter().map(of));
        let [today, sse_core, demux, actors] = [0, 1, 2, 3].map(|index: usize| {
            let ns = move |round: &[f64; COMPARED.len()]| round.get(index).copied().unwrap_or(1.0);
            let ratio = move |round: &[f64; COMPARED.len()]| ns(round) / round[3];
            (of(&ns) / all, of(&ratio))
        });
        Self {
            ns: [today.0, sse_core.0, demux.0, actors.0],
            ratios: [today.1, sse_core.1, demux.1, actors.1],
            items,
        }
    }

    /// The time of `today` over that of the actors, if both delivered the same deltas.
    pub(crate) fn today_over_actors(&self) -> Option<f64> {
        let [today, _, _, actors] = self.items;
        (today? == actors?).then_some(self.ratios[0])
    }

    /// The time of `sse-core` over that of the actors, if both delivered the same deltas.
    pub(crate) fn sse_core_over_actors(&self) -> Option<f64> {
        let [_, sse_core, _, actors] = self.items;
        (sse_core? == actors?).then_some(self.ratios[1])
    }

    pub(crate) fn to_json(self) -> Value {
        let [today, sse_core, demux, actors] = self.ns.map(rounded);
        json!({
            "today": today, "sse_core": sse_core, "demux": demux, "actors": actors,
            "today_over_actors": self.today_over_actors().map(rounded),
            "sse_core_over_actors": self.sse_core_over_actors().map(rounded),
        })
    }

    /// The columns of a table; a dash where a peer does not read the stream.
    pub(crate) fn columns(&self) -> String {
        let known = |ns: f64| Some(ns).filter(|ns| !ns.is_nan());
        let text = |ns: f64| known(ns).map_or_else(|| "-".into(), |ns| format!("{ns:.0}"));
        let [today, sse_core, demux, actors] = self.ns.map(text);
        let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".into(), |r| format!("{r:.2}"));
        format!(
            "{today:>8} {sse_core:>8} {demux:>8} {actors:>8} {:>8} {:>8}",
            ratio(self.today_over_actors()),
            ratio(self.sse_core_over_actors()),
        )
    }
}

/// The titles of [`Contest::columns`].
pub(crate) const TITLES: &str = "   today sse-core    demux   actors today/ac sse-c/ac";

/// The times of one round in the order of [`COMPARED`], without that of the source. That of a contender that is not among the
/// readers is not a number.
fn net(
    runtime: &Runtime,
    reads: &Reads,
    times: usize,
    round: usize,
    readers: &[Contender],
) -> [f64; COMPARED.len()] {
    let time = |contender| (0..times).map(|_| time(runtime, reads, contender)).sum();
    let in_turn = readers.iter().cycle().skip(round % readers.len());
    let all: Vec<(Contender, f64)> = in_turn
        .take(readers.len())
        .map(|contender| (*contender, time(*contender)))
        .collect();
    let of = |wanted| {
        let mut all = all.iter();
        let found = all.find(|(contender, _)| *contender == wanted);
        found.map_or(f64::NAN, |(_, time): &(_, f64)| *time)
    };
    let source = of(Contender::Source);
    COMPARED.map(|contender| {
        let net = of(contender) - source;
        if net.is_nan() { net } else { net.max(1.0) }
    })
}
