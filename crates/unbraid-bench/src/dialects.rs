//! The steady state of recorded streams of Responses, Anthropic and Gemini: the deltas of each recording repeated to 2,000.
//!
//! `today` is `eventsource-stream` with the event types of a client: those of `async-openai` for Responses, of
//! `anthropic-ai-sdk` for Anthropic, and of `gemini-rust` for Gemini.

use std::io::{self, Write};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use unbraid_core::{Config, Demux, Dialect, internal::template_hits};

use crate::{
    contender::{Contender, Provider},
    contest,
    recordings::{self, Recording},
    table::{self, median, rounded, runtime, time},
};

const EVENTS: usize = 2_000;

const DIALECTS: [Dialect; 3] = [Dialect::Responses, Dialect::Anthropic, Dialect::Gemini];

/// One recording, repeated and measured.
struct Row {
    name: String,
    dialect: Dialect,
    bytes_per_event: f64,
    /// The share of events that a template decoded.
    hits: f64,
    /// CPU time for each event in nanoseconds, without that of the source: today, `Demux`, the actors.
    ns: [Option<f64>; 3],
    /// The ratio of today's time to that of the actors, if both delivered the same deltas.
    ratio: Option<f64>,
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let runtime = runtime("current_thread")?;
    let mut rows = Vec::new();
    if !as_json {
        let titles = "dialect    bytes  hits    today    demux   actors today/ac";
        writeln!(out, "{:<72} {titles}", "recording")?;
    }
    for recording in recordings::below(&recordings::folder())? {
        let Some((stream, dialect)) = repeated(&recording) else {
            continue;
        };
        let row = Row::measure(recording.name, dialect, &stream, &runtime, quick);
        if !as_json {
            row.print(out)?;
        }
        rows.push(row);
    }
    let summary = summary(&rows);
    let rows = as_json.then(|| rows.iter().map(Row::to_json).collect());
    contest::print_summary(rows, &summary, out)
}

/// Runs one contender on one recording, long enough for a profiler.
pub(crate) fn profile(
    name: &str,
    contender: &str,
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = recordings::below(&recordings::folder())?;
    let recording = all.iter().find(|r| r.name.starts_with(name));
    let Some((stream, dialect)) = recording.and_then(repeated) else {
        return Err(io::Error::other("no such recording"));
    };
    let others = [Contender::Demux, Contender::Actors];
    let contenders = today(dialect).into_iter().chain(others);
    let Some(contender) = contenders.into_iter().find(|c| c.name() == contender) else {
        return Err(io::Error::other("no such contender"));
    };
    let (runtime, reads) = (runtime("current_thread")?, recordings::in_reads(&stream));
    table::repeat(&runtime, &reads, contender, EVENTS as u64, quick, out)
}

/// What a Rust user has for a dialect.
fn today(dialect: Dialect) -> Option<Contender> {
    match dialect {
        Dialect::Responses => Some(Contender::TodayOf(Provider::Responses)),
        #[cfg(feature = "dialect-peers")]
        Dialect::Anthropic => Some(Contender::TodayOf(Provider::Anthropic)),
        #[cfg(feature = "dialect-peers")]
        Dialect::Gemini => Some(Contender::TodayOf(Provider::Gemini)),
        _ => None,
    }
}

/// The recording with its deltas repeated; `None` for another dialect, or without a delta. Deltas that follow one another are
/// repeated together, because the block or item that they continue ends after them.
fn repeated(recording: &Recording) -> Option<(Bytes, Dialect)> {
    let mut demux = Demux::new(Config::default());
    demux.feed(&recording.bytes);
    let dialect = demux.metadata().dialect()?;
    if !DIALECTS.contains(&dialect) {
        return None;
    }
    let events = recording.events();
    let keys: Vec<Option<String>> = events
        .iter()
        .map(|event| delta_key(dialect, event.json.as_ref()?))
        .collect();
    let deltas = keys.iter().flatten().count();
    let times = EVENTS.checked_div(deltas)?.max(1);
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(key) = keys.get(at) {
        let same = keys.iter().skip(at).take_while(|next| *next == key).count();
        let run: Vec<u8> = events
            .iter()
            .skip(at)
            .take(same)
            .flat_map(|event| event.bytes)
            .copied()
            .collect();
        bytes.extend(run.repeat(if key.is_some() { times } else { 1 }));
        at += same;
    }
    Some((bytes.into(), dialect))
}

/// What an event continues, if it does nothing that happens only once.
fn delta_key(dialect: Dialect, event: &Value) -> Option<String> {
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let (is_delta, index) = match dialect {
        Dialect::Responses => {
            const KINDS: [&str; 4] = [
                "response.output_text.delta",
                "response.function_call_arguments.delta",
                "response.reasoning_text.delta",
                "response.reasoning_summary_text.delta",
            ];
            let kind = event["type"].as_str().unwrap_or_default();
            let is_delta = KINDS.contains(&kind) && is_text(&event["delta"]);
            (is_delta, &event["output_index"])
        }
        Dialect::Anthropic => {
            let texts = ["text", "thinking", "partial_json"].map(|key| &event["delta"][key]);
            let is_block = event["type"] == "content_block_delta";
            (is_block && texts.into_iter().any(is_text), &event["index"])
        }
        _ => {
            let candidates = event["candidates"]
                .as_array()
                .map_or(&[][..], Vec::as_slice);
            let is_one = matches!(candidates, [candidate] if candidate["finishReason"].is_null());
            let parts = event["candidates"][0]["content"]["parts"].as_array();
            let text = parts
                .filter(|parts| parts.len() == 1)
                .map(|p| &p[0]["text"]);
            (is_one && text.is_some_and(is_text), &Value::Null)
        }
    };
    is_delta.then(|| format!("{}{index}", event["type"]))
}

impl Row {
    fn measure(
        name: String,
        dialect: Dialect,
        stream: &Bytes,
        runtime: &Runtime,
        quick: bool,
    ) -> Self {
        let mut demux = Demux::new(Config::default());
        demux.feed(stream);
        demux.finish();
        let (events, hits) = template_hits(&demux);
        let reads = recordings::in_reads(stream);
        let today = today(dialect);
        let contenders = [
            Some(Contender::Source),
            today,
            Some(Contender::Demux),
            Some(Contender::Actors),
        ];
        let rounds: Vec<[Option<f64>; 4]> = (0..if quick { 3 } else { 7 })
            .map(|_| contenders.map(|c| Some(time(runtime, &reads, c?))))
            .collect();
        let all = events.max(1) as f64;
        let net = |round: &[Option<f64>; 4], at: usize| {
            let [source, ..] = round;
            let time = round.get(at).copied().flatten();
            Some(((time? - (*source)?) / all).max(1.0))
        };
        let ns = [1, 2, 3].map(|at| {
            let times: Vec<f64> = rounds.iter().filter_map(|round| net(round, at)).collect();
            (!times.is_empty()).then(|| median(times.into_iter()))
        });
        let ratios = rounds.iter().filter_map(|r| Some(net(r, 1)? / net(r, 3)?));
        let ratio = median(ratios);
        let delivered = |c: Contender| c.delivered(runtime, &reads);
        let is_same = today.is_some_and(|today| delivered(today) == delivered(Contender::Actors));
        Self {
            name,
            dialect,
            bytes_per_event: stream.len() as f64 / all,
            hits: hits as f64 / all,
            ns,
            ratio: is_same.then_some(ratio),
        }
    }

    fn to_json(&self) -> Value {
        let [today, demux, actors] = self.ns.map(|ns| ns.map(rounded));
        json!({
            "name": self.name,
            "dialect": self.dialect.as_str(),
            "bytes_per_event": rounded(self.bytes_per_event),
            "template_hits": rounded(self.hits),
            "ns_per_event": { "today": today, "demux": demux, "actors": actors },
            "today_over_actors": self.ratio.map(rounded),
        })
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let name: String = self.name.chars().take(72).collect();
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let [today, demux, actors] = self.ns.map(|ns| number(ns, 0));
        writeln!(
            out,
            "{name:<72} {:<10} {:>5.0} {:>4.0}% {today:>8} {demux:>8} {actors:>8} {:>8}",
            self.dialect.as_str(),
            self.bytes_per_event,
            self.hits * 100.0,
            number(self.ratio, 2),
        )
    }
}

/// The medians of each dialect.
fn summary(rows: &[Row]) -> Value {
    let mut summary = serde_json::Map::new();
    for dialect in DIALECTS {
        let own = || rows.iter().filter(|row| row.dialect == dialect);
        let ns = |at: usize| {
            let all = own().filter_map(|row| row.ns.get(at).copied().flatten());
            rounded(median(all))
        };
        let ratios = || own().filter_map(|row| row.ratio);
        let value = json!({
            "recordings": own().count(),
            "with_90_percent_on_templates": own().filter(|row| row.hits >= 0.9).count(),
            "today": ns(0),
            "demux": ns(1),
            "actors": ns(2),
            "today_over_actors": {
                "recordings": ratios().count(),
                "worst": ratios().reduce(f64::min).map(rounded),
                "median": rounded(median(ratios())),
            },
        });
        summary.insert(dialect.as_str().to_owned(), value);
    }
    summary.into()
}
