//! From the server's write to the consumer's hand, at a hundred updates a second for each of eight choices.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::runtime::Runtime;

use super::{
    peer::{Clients, Peer, blamed},
    runtime,
    server::{Script, Server},
};
use crate::{
    body::{BRAIDED, Numbered, numbered},
    pace::PER_SECOND,
    stamps::{Spread, Stamps},
    table::RUNTIMES,
};

/// Updates of each round before the count begins.
const WARM: usize = PER_SECOND / 10;

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    peer: Peer,
    runtime: &'static str,
    spread: Spread,
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        let mut row = self.spread.to_json();
        if let Value::Object(row) = &mut row {
            row.insert("contender".to_owned(), self.peer.name().into());
            row.insert("runtime".to_owned(), self.runtime.into());
        }
        row
    }
}

pub(super) fn measure(quick: bool) -> io::Result<Vec<Row>> {
    let (rounds, pieces) = if quick {
        (2, PER_SECOND + WARM)
    } else {
        (5, 2 * PER_SECOND + WARM)
    };
    let events: Arc<[Numbered]> = numbered(pieces, BRAIDED).into();
    let mut rows = Vec::new();
    for runtime_name in RUNTIMES {
        let runtime = runtime(runtime_name)?;
        let mut all = [const { Vec::new() }; Peer::READERS.len()];
        for _ in 0..rounds {
            for (peer, times) in Peer::READERS.into_iter().zip(&mut all) {
                times.extend(round(&runtime, peer, &events, WARM)?);
            }
        }
        rows.extend(Peer::READERS.into_iter().zip(all).map(|(peer, times)| Row {
            peer,
            runtime: runtime_name,
            spread: Spread::of(times),
        }));
    }
    Ok(rows)
}

/// How long each update took, without the first ones.
pub(super) fn round(
    runtime: &Runtime,
    peer: Peer,
    events: &Arc<[Numbered]>,
    warm: usize,
) -> io::Result<Vec<Duration>> {
    let pieces = events.iter().filter(|event| event.number.is_some());
    let stamps = Stamps::new(pieces.count());
    let server = Server::start(Script::Paced(Arc::clone(events), stamps.clone()))?;
    let clients = Clients::new(server.address)?;
    let answer = runtime.spawn(clients.ask(peer, stamps.clone()));
    let answer = runtime.block_on(answer).map_err(io::Error::other)?;
    answer.map_err(|error| blamed(peer, error))?;
    stamps.times(warm).map_err(|error| blamed(peer, error))
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
            row.spread.p50,
            row.spread.p99,
            row.spread.max
        )?;
    }
    writeln!(
        out,
        "from the server's write to the consumer's hand, {} choices, 100 updates a second for each",
        BRAIDED.choices
    )
}
