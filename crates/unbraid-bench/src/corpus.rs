//! Recorded streams, with a row for each producer: the ratios, and the share of events that match a template.

use std::{
    collections::BTreeMap,
    io::{self, Write},
};

use bytes::Bytes;
use unbraid_core::{Config, Demux, internal::template_hits};

use crate::{
    contender::Contender,
    feed::Reads,
    recordings,
    table::{median, runtime, time},
};

const ROUNDS: usize = 5;

/// Recordings are short, so each is repeated until a round has about this many bytes.
const ROUND_BYTES: usize = 2_000_000;

pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    let mut producers: BTreeMap<String, Vec<Bytes>> = BTreeMap::new();
    for recording in recordings::below(&recordings::folder())? {
        let streams = producers.entry(recording.producer().to_owned());
        streams.or_default().push(recording.bytes);
    }
    writeln!(
        out,
        "{:<28} {:>7} {:>7} {:>6} {:>8} {:>8} {:>8} {:>7} {:>7}",
        "producer", "streams", "events", "hits", "today", "demux", "actors", "/demux", "/actors"
    )?;
    for (producer, streams) in &producers {
        let row = row(streams)?;
        writeln!(
            out,
            "{producer:<28} {:>7} {:>7} {:>5.0}% {:>8.0} {:>8.0} {:>8.0} {:>7.2} {:>7.2}",
            streams.len(),
            row.events,
            row.hits * 100.0,
            row.ns[0],
            row.ns[1],
            row.ns[2],
            row.ns[0] / row.ns[1],
            row.ns[0] / row.ns[2]
        )?;
    }
    writeln!(
        out,
        "ns of CPU per event, including the opening of the streams"
    )
}

struct Row {
    events: u64,
    hits: f64,
    ns: [f64; 3],
}

fn row(streams: &[Bytes]) -> io::Result<Row> {
    let runtime = runtime("current_thread")?;
    let is_read = |stream: &&Bytes| {
        let reads = recordings::in_reads(stream);
        Contender::Today.delivered(&runtime, &reads).is_some()
    };
    let streams: Vec<&Bytes> = streams.iter().filter(is_read).collect();
    let (mut events, mut matched) = (0, 0);
    for stream in &streams {
        let mut demux = Demux::new(Config::default());
        demux.feed(stream);
        demux.finish();
        let (seen, hits) = template_hits(&demux);
        (events, matched) = (events + seen, matched + hits);
    }
    let reads: Vec<Reads> = streams
        .iter()
        .map(|stream| recordings::in_reads(stream))
        .collect();
    let bytes: usize = streams.iter().map(|stream| stream.len()).sum();
    let times = ROUND_BYTES / bytes.max(1) + 1;
    let contenders = [
        Contender::Source,
        Contender::Today,
        Contender::Demux,
        Contender::Actors,
    ];
    let mut rounds = vec![[0.0; 4]; ROUNDS];
    for round in &mut rounds {
        for (contender, slot) in contenders.into_iter().zip(round) {
            for reads in reads.iter().cycle().take(times * reads.len()) {
                *slot += time(&runtime, reads, contender);
            }
        }
    }
    let all = (events.max(1) as usize * times) as f64;
    let net = |index: usize| {
        let of = |round: &[f64; 4]| round.get(index).copied().unwrap_or_default() - round[0];
        median(rounds.iter().map(of)).max(1.0) / all
    };
    Ok(Row {
        events,
        hits: matched as f64 / events.max(1) as f64,
        ns: [net(1), net(2), net(3)],
    })
}
