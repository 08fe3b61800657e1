//! Recorded streams, with a row for each producer: the ratios, and the share of events that match a template.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use bytes::Bytes;
use unbraid_core::{Config, Demux};

use crate::{
    contender::Contender,
    feed::Reads,
    table::{median, runtime, time},
};

const READ_BYTES: usize = 16 * 1024;
const ROUNDS: usize = 5;

/// Recordings are short, so each is repeated until a round has about this many bytes.
const ROUND_BYTES: usize = 2_000_000;

pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    let folder = std::env::var_os("UNBRAID_CORPUS")
        .map_or_else(|| PathBuf::from("../shared/corpus"), PathBuf::from);
    let mut producers: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    collect(&folder, &mut producers)?;
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

/// Every stream below a folder, by the part of its name before `__`.
fn collect(folder: &Path, producers: &mut BTreeMap<String, Vec<Vec<u8>>>) -> io::Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<_>>()?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, producers)?;
        } else if path.extension().is_some_and(|extension| extension == "sse") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let producer = name.split("__").next().unwrap_or_default().to_owned();
            producers.entry(producer).or_default().push(fs::read(path)?);
        }
    }
    Ok(())
}

struct Row {
    events: u64,
    hits: f64,
    ns: [f64; 3],
}

fn row(streams: &[Vec<u8>]) -> io::Result<Row> {
    let (mut events, mut matched) = (0, 0);
    for stream in streams {
        let mut demux = Demux::new(Config::default());
        demux.feed(stream);
        demux.finish();
        let (seen, hits) = demux.template_hits();
        (events, matched) = (events + seen, matched + hits);
    }
    let reads: Vec<Reads> = streams.iter().map(|stream| cut(stream)).collect();
    let bytes: usize = streams.iter().map(Vec::len).sum();
    let times = ROUND_BYTES / bytes.max(1) + 1;
    let runtime = runtime("current_thread")?;
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

fn cut(stream: &[u8]) -> Reads {
    let stream = Bytes::copy_from_slice(stream);
    let starts = (0..stream.len()).step_by(READ_BYTES);
    let reads = starts.map(|start| stream.slice(start..stream.len().min(start + READ_BYTES)));
    Reads::new(reads.collect())
}
