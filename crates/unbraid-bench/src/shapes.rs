//! The steady state of recorded streams: the body of each recording repeated to 2,000 events.
//!
//! Recordings are short, so their own cost is mostly that of opening and ending a stream; `whole` measures that.

use std::{
    collections::HashSet,
    io::{self, Write},
};

use bytes::Bytes;
use serde_json::{Value, json};
use unbraid_core::{Config, Demux, internal::template_hits};

use crate::{
    contender::Contender,
    contest::{self, Contest},
    recordings::{self, Recording},
    table::{self, median, rounded, runtime},
};

const EVENTS: usize = 2_000;

/// What makes the chunks of a recording hard to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Chunks differ only in the index, the text and the padding.
    Regular,
    /// Other parts vary, or there are unknown fields, log probabilities or usage in each chunk.
    Varying,
    /// Content is a list of parts.
    Lists,
}

/// One recording, repeated and measured.
struct Row {
    name: String,
    class: Class,
    events: u64,
    bytes_per_event: f64,
    /// The share of events that a template decoded.
    hits: f64,
    contest: Contest,
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let folder = recordings::folder();
    let rounds = if quick { 3 } else { 7 };
    let runtime = runtime("current_thread")?;
    let mut rows = Vec::new();
    if !as_json {
        writeln!(
            out,
            "{:<72} {:>5} {:>5} {}",
            "recording",
            "bytes",
            "hits",
            contest::TITLES
        )?;
    }
    for recording in recordings::below(&folder)? {
        let Some((stream, class)) = repeated(&recording) else {
            continue; // another protocol, or no delta
        };
        let mut demux = Demux::new(Config::default());
        demux.feed(&stream);
        demux.finish();
        let (events, hits) = template_hits(&demux);
        let row = Row {
            name: recording.name,
            class,
            events,
            bytes_per_event: stream.len() as f64 / events.max(1) as f64,
            hits: hits as f64 / events.max(1) as f64,
            contest: Contest::new(&runtime, &recordings::in_reads(&stream), events, 1, rounds),
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

/// Runs one contender on the shape of one recording, long enough for a profiler.
pub(crate) fn profile(
    name: &str,
    contender: &str,
    quick: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let all = recordings::below(&recordings::folder())?;
    let recording = all
        .iter()
        .find(|recording| recording.name.starts_with(name));
    let stream = recording.and_then(repeated);
    let contender = Contender::ALL.into_iter().find(|c| c.name() == contender);
    let (Some((stream, _)), Some(contender)) = (stream, contender) else {
        return Err(io::Error::other("no such recording or contender"));
    };
    let (runtime, reads) = (runtime("current_thread")?, recordings::in_reads(&stream));
    table::repeat(&runtime, &reads, contender, EVENTS as u64, quick, out)
}

/// The recording with its deltas repeated, and their class; `None` if it has fewer than two deltas.
fn repeated(recording: &Recording) -> Option<(Bytes, Class)> {
    let events = recording.events();
    let is_delta = |n: &usize| {
        events
            .get(*n)
            .and_then(|e| e.json.as_ref())
            .is_some_and(is_delta)
    };
    let deltas: Vec<usize> = (0..events.len()).filter(is_delta).collect();
    let (_, last) = (deltas.get(1)?, deltas.last()?);
    let missing = EVENTS.saturating_sub(events.len());
    // The first pass includes the headers of calls, which open a call only once.
    let order = (0..=*last)
        .chain(deltas.iter().copied().cycle().take(missing))
        .chain(last + 1..events.len());
    let bytes: Vec<u8> = order
        .filter_map(|n| events.get(n))
        .flat_map(|e| e.bytes)
        .copied()
        .collect();
    let values = deltas.iter().filter_map(|n| events.get(*n)?.json.as_ref());
    Some((bytes.into(), class(values)))
}

/// Whether a chunk continues a choice and does nothing that happens only once.
fn is_delta(chunk: &Value) -> bool {
    let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
    let continues = |choice: &Value| {
        let calls = choice["delta"]["tool_calls"].as_array();
        let opens = |call: &Value| call["id"].is_string() || call["function"]["name"].is_string();
        let is_payload = |name: &str| {
            let value = &choice["delta"][name];
            value.as_str().is_some_and(|text| !text.is_empty()) || value.is_array()
        };
        let names = [
            "content",
            "reasoning",
            "reasoning_content",
            "refusal",
            "tool_calls",
        ];
        choice["finish_reason"].as_str().is_none_or(str::is_empty)
            && !calls.into_iter().flatten().any(opens)
            && (names.into_iter().any(is_payload) || choice["text"].is_string())
    };
    !choices.is_empty() && choices.iter().all(continues)
}

fn class<'v>(chunks: impl Iterator<Item = &'v Value>) -> Class {
    /// Text, reasoning and a few calls.
    const FORMS: usize = 6;
    let mut forms = HashSet::new();
    let mut has_extra = false;
    for chunk in chunks {
        let mut form = chunk.clone();
        for padding in ["obfuscation", "nonce"] {
            form.as_object_mut().map(|fields| fields.remove(padding));
        }
        has_extra |= !form["usage"].is_null();
        for choice in form["choices"].as_array_mut().into_iter().flatten() {
            if choice["delta"]["content"].is_array() {
                return Class::Lists;
            }
            choice["index"] = Value::Null;
            choice["text"] = Value::Null;
            has_extra |= extra(choice, &["index", "text", "delta", "finish_reason"]);
            let delta = &mut choice["delta"];
            for text in ["content", "reasoning", "reasoning_content", "refusal"] {
                delta[text] = Value::Null;
            }
            has_extra |= extra(delta, &["role", "tool_calls"]);
            for call in delta["tool_calls"].as_array_mut().into_iter().flatten() {
                call["function"]["arguments"] = Value::Null;
            }
        }
        forms.insert(form.to_string());
    }
    if has_extra || forms.len() > FORMS {
        Class::Varying
    } else {
        Class::Regular
    }
}

/// Whether an object has a value under another name.
fn extra(object: &Value, known: &[&str]) -> bool {
    let mut fields = object.as_object().into_iter().flatten();
    fields.any(|(name, value)| !value.is_null() && !known.contains(&&**name))
}

impl Row {
    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "class": format!("{:?}", self.class).to_lowercase(),
            "events": self.events,
            "bytes_per_event": rounded(self.bytes_per_event),
            "template_hits": rounded(self.hits),
            "ns_per_event": self.contest.to_json(),
        })
    }

    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let name: String = self.name.chars().take(72).collect();
        let (bytes, hits) = (self.bytes_per_event, self.hits * 100.0);
        writeln!(
            out,
            "{name:<72} {bytes:>5.0} {hits:>4.0}% {}",
            self.contest.columns()
        )
    }
}

/// One line for each goal.
fn summary(rows: &[Row]) -> Value {
    let templated = |row: &&Row| row.hits >= 0.9;
    let ns = |kept: &dyn Fn(&Row) -> bool, contender: usize| {
        let kept = rows.iter().filter(|row| kept(row));
        let ns: Vec<f64> = kept
            .filter_map(|row| row.contest.ns.get(contender).copied())
            .collect();
        json!({ "recordings": ns.len(), "median_ns": rounded(median(ns.into_iter())) })
    };
    let is_short = |row: &Row| row.bytes_per_event <= 400.0;
    let regular = |row: &Row| row.class == Class::Regular && row.hits >= 0.9;
    let varying = |row: &Row| row.class == Class::Varying && is_short(row) && row.hits >= 0.9;
    let unknown = |row: &Row| row.class != Class::Lists && is_short(row) && row.hits < 0.9;
    let lists = |row: &Row| row.class == Class::Lists;
    let (demux, actors) = (2, 3);
    let ratios = |of: fn(&Contest) -> Option<f64>| {
        let ratios: Vec<f64> = rows.iter().filter_map(|row| of(&row.contest)).collect();
        let below = ratios.iter().filter(|ratio| **ratio < 1.0).count();
        json!({
            "recordings": ratios.len(),
            "below_1": below,
            "worst": ratios.iter().copied().reduce(f64::min).map(rounded),
            "median": rounded(median(ratios.iter().copied())),
        })
    };
    json!({
        "recordings": rows.len(),
        "recordings_with_90_percent_of_events_on_templates": rows.iter().filter(templated).count(),
        "regular_shape_demux": ns(&regular, demux),
        "regular_shape_actors": ns(&regular, actors),
        "varying_parts_up_to_400_bytes_demux": ns(&varying, demux),
        "varying_parts_up_to_400_bytes_actors": ns(&varying, actors),
        "unknown_shape_up_to_400_bytes_demux": ns(&unknown, demux),
        "unknown_shape_up_to_400_bytes_actors": ns(&unknown, actors),
        "content_lists_demux": ns(&lists, demux),
        "content_lists_actors": ns(&lists, actors),
        "today_over_actors": ratios(Contest::today_over_actors),
        "sse_core_over_actors": ratios(Contest::sse_core_over_actors),
    })
}
