//! The latency from the server's write to the consumer, at a hundred updates per second for each of eight choices.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::runtime::Runtime;

use super::{
    peer::{Clients, Peer, peer_error},
    runtime,
    server::{Script, Server},
};
use crate::{
    body::{BRAIDED, Numbered, numbered},
    pace::PER_SECOND,
    stamps::{Percentiles, Timestamps},
    table::RUNTIMES,
};

/// Updates of each round before the measurement starts.
const WARM_UP: usize = PER_SECOND / 10;

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    peer: Peer,
    runtime: &'static str,
    percentiles: Percentiles,
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        let mut row = self.percentiles.to_json();
        if let Value::Object(row) = &mut row {
            row.insert("contender".to_owned(), self.peer.name().into());
            row.insert("runtime".to_owned(), self.runtime.into());
        }
        row
    }
}

pub(super) fn measure(quick: bool) -> io::Result<Vec<Row>> {
    let (rounds, deltas) = if quick {
        (2, PER_SECOND + WARM_UP)
    } else {
        (5, 2 * PER_SECOND + WARM_UP)
    };
    let events: Arc<[Numbered]> = numbered(deltas, BRAIDED).into();
    let mut rows = Vec::new();
    for runtime_name in RUNTIMES {
        let runtime = runtime(runtime_name)?;
        let mut all = [const { Vec::new() }; Peer::READERS.len()];
        for _ in 0..rounds {
            for (peer, times) in Peer::READERS.into_iter().zip(&mut all) {
                times.extend(round(&runtime, peer, &events, WARM_UP)?);
            }
        }
        rows.extend(Peer::READERS.into_iter().zip(all).map(|(peer, times)| Row {
            peer,
            runtime: runtime_name,
            percentiles: Percentiles::from_times(times),
        }));
    }
    Ok(rows)
}

/// The latencies of the updates after the first `warm_up`.
pub(super) fn round(
    runtime: &Runtime,
    peer: Peer,
    events: &Arc<[Numbered]>,
    warm_up: usize,
) -> io::Result<Vec<Duration>> {
    let deltas = events.iter().filter(|event| event.number.is_some());
    let timestamps = Timestamps::new(deltas.count());
    let server = Server::start(Script::Paced(Arc::clone(events), timestamps.clone()))?;
    let clients = Clients::new(server.address)?;
    let answer = runtime.spawn(clients.run(peer, timestamps.clone()));
    let answer = runtime.block_on(answer).map_err(io::Error::other)?;
    answer.map_err(|error| peer_error(peer, error))?;
    timestamps
        .times(warm_up)
        .map_err(|error| peer_error(peer, error))
}

pub(super) fn print(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\n{:<15} {:<13} {:>10} {:>10} {:>10}",
        "runtime", "contender", "p50 us", "p99 us", "max us"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<15} {:<13} {:>10.1} {:>10.1} {:>10.1}",
            row.runtime,
            row.peer.name(),
            row.percentiles.p50,
            row.percentiles.p99,
            row.percentiles.max
        )?;
    }
    writeln!(
        out,
        "from the server's write to the consumer, {} choices, 100 updates per second for each",
        BRAIDED.choices
    )
}
