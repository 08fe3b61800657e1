//! A complete answer as fast as the socket delivers it: CPU time of the client, and wall-clock time.

use std::io::{self, Write};

use bytes::Bytes;
use cpu_time::ProcessTime;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::{
    peer::{Clients, Peer, peer_error},
    runtime,
    server::{Script, Server},
};
use crate::{
    body::{BRAIDED, Body, body},
    feed::{Delivery, Reads},
    stamps::now,
    table::{RUNTIMES, median, rounded},
};

/// One event for each chunk of the transfer encoding, as API servers send them, and larger chunks as a proxy may send them.
pub(super) const DELIVERIES: [Delivery; 2] = [Delivery::Event, Delivery::Read16k];

/// One line of the table.
#[derive(Debug)]
pub(super) struct Row {
    peer: Peer,
    runtime: &'static str,
    delivery: Delivery,
    cpu_ns_per_chunk: f64,
    wall_ns_per_chunk: f64,
    /// The CPU time of async-openai's client divided by this one.
    async_openai_over_this: f64,
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "contender": self.peer.name(),
            "runtime": self.runtime,
            "chunks": self.delivery.name(),
            "cpu_ns_per_chunk": rounded(self.cpu_ns_per_chunk),
            "wall_ns_per_chunk": rounded(self.wall_ns_per_chunk),
            "async_openai_over_this": rounded(self.async_openai_over_this),
        })
    }
}

/// Nanoseconds of one answer.
#[derive(Debug, Default, Clone, Copy)]
struct Times {
    cpu: f64,
    wall: f64,
}

type Round = [Times; Peer::ALL.len()];

pub(super) fn measure(quick: bool) -> io::Result<Vec<Row>> {
    let (chunks, rounds) = if quick { (20_000, 5) } else { (20_000, 21) };
    let body = body(chunks, BRAIDED);
    let mut rows = Vec::new();
    for delivery in DELIVERIES {
        let server = Server::start(script(&body, delivery))?;
        for runtime_name in RUNTIMES {
            let runtime = runtime(runtime_name)?;
            let clients = Clients::new(server.address)?;
            compare(&runtime, &clients, &body)?;
            let rounds = (0..rounds)
                .map(|round| turns(&runtime, &server, &clients, round))
                .collect::<io::Result<Vec<Round>>>()?;
            rows.extend(evaluate(&rounds, &body, runtime_name, delivery));
        }
    }
    Ok(rows)
}

pub(super) fn script(body: &Body, delivery: Delivery) -> Script {
    let reads = delivery.cut(body);
    Script::Whole(reads.bytes().map(Bytes::copy_from_slice).collect())
}

/// Returns an error if the texts and items of a peer differ from those of the generator.
pub(super) fn compare(runtime: &Runtime, clients: &Clients, body: &Body) -> io::Result<()> {
    for peer in Peer::ALL {
        let (_feed, tally) = Reads::new(Vec::new()).feed(true);
        let answer = runtime.spawn(clients.clone().run(peer, tally));
        let answer = runtime.block_on(answer).map_err(io::Error::other)?;
        let answer = answer.map_err(|error| peer_error(peer, error))?;
        if answer.is_some_and(|answer| answer != body.answer) {
            return Err(peer_error(peer, "the answer differs from what was sent"));
        }
    }
    Ok(())
}

/// The times of all peers, in the order of [`Peer::ALL`]. Each round starts with the next peer.
fn turns(runtime: &Runtime, server: &Server, clients: &Clients, round: usize) -> io::Result<Round> {
    let mut times = Round::default();
    for turn in 0..times.len() {
        let index = (turn + round) % times.len();
        if let (Some(peer), Some(slot)) = (Peer::ALL.get(index), times.get_mut(index)) {
            *slot = time(runtime, server, clients, *peer)?;
        }
    }
    Ok(times)
}

fn time(runtime: &Runtime, server: &Server, clients: &Clients, peer: Peer) -> io::Result<Times> {
    let (_feed, tally) = Reads::new(Vec::new()).feed(false);
    let served = server.cpu()?;
    let (cpu_start, wall_start) = (ProcessTime::now(), now());
    let answer = runtime.spawn(clients.clone().run(peer, tally));
    let answer = runtime.block_on(answer).map_err(io::Error::other)?;
    let (cpu, wall) = (cpu_start.elapsed(), wall_start.elapsed());
    answer.map_err(|error| peer_error(peer, error))?;
    let served = server.cpu()?.saturating_sub(served);
    Ok(Times {
        cpu: cpu.saturating_sub(served).as_secs_f64() * 1e9,
        wall: wall.as_secs_f64() * 1e9,
    })
}

fn evaluate(rounds: &[Round], body: &Body, runtime: &'static str, delivery: Delivery) -> Vec<Row> {
    let of = |round: &Round, wanted| {
        let position = Peer::ALL.iter().position(|peer| *peer == wanted);
        let times = position.and_then(|index| round.get(index)).copied();
        times.unwrap_or_default()
    };
    let chunks = body.chunks as f64;
    let row = |peer: Peer| Row {
        peer,
        runtime,
        delivery,
        cpu_ns_per_chunk: median(rounds.iter().map(|round| of(round, peer).cpu / chunks)),
        wall_ns_per_chunk: median(rounds.iter().map(|round| of(round, peer).wall / chunks)),
        async_openai_over_this: median(
            rounds
                .iter()
                .map(|round| of(round, Peer::AsyncOpenai).cpu / of(round, peer).cpu.max(1.0)),
        ),
    };
    Peer::ALL.into_iter().map(row).collect()
}

pub(super) fn print(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<15} {:<7} {:<13} {:>13} {:>14} {:>18}",
        "runtime", "chunks", "contender", "CPU ns/chunk", "wall ns/chunk", "async-openai/this"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<15} {:<7} {:<13} {:>13.0} {:>14.0} {:>18.2}",
            row.runtime,
            row.delivery.name(),
            row.peer.name(),
            row.cpu_ns_per_chunk,
            row.wall_ns_per_chunk,
            row.async_openai_over_this
        )?;
    }
    writeln!(
        out,
        "the server's CPU time is subtracted; `reqwest` reads the body and drops it"
    )
}
