//! How soon a reader that reconnects has its first byte.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Skipped,
    candidate::{Candidate, Running},
    load::Load,
    options::Options,
    upstream::{Plan, Upstream},
};
use crate::{random::Random, stamps::now, table::rounded};

/// The events of the stream: 4 choices of 1,000 deltas.
const PLAN: Plan = Plan {
    choices: 4,
    deltas: 1000,
    every: Duration::ZERO,
    stays_open: false,
};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct Row {
    name: String,
    /// Milliseconds.
    p50: f64,
    p99: f64,
    max: f64,
    resumes: usize,
}

/// Resumes a stream of 4,000 events so often, each time after a random event.
pub(super) fn measure(
    candidates: &[Candidate],
    upstream: &Upstream,
    resumes: usize,
    options: &Options,
    skipped: &mut Skipped<'_, impl Write>,
) -> io::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for candidate in candidates.iter().filter(|one| one.keeps_streams()) {
        if options.is_over() {
            break;
        }
        upstream.set_plan(PLAN);
        // Why one cannot be started is said above the first table.
        let Ok(running) = candidate.start(upstream.address, options) else {
            continue;
        };
        match resume(candidate, &running, upstream, resumes) {
            Ok(row) => rows.push(row),
            Err(error) => skipped.skip(&candidate.name, &error)?,
        }
    }
    Ok(rows)
}

fn resume(
    candidate: &Candidate,
    running: &Running,
    upstream: &Upstream,
    resumes: usize,
) -> io::Result<Row> {
    let address = running.target.address;
    // The first answers are those of a cold process.
    let warm = Load::start(
        &running.target,
        PLAN,
        4,
        Duration::ZERO,
        PATIENCE,
        upstream.clock,
    );
    warm.finish()?;
    let mut post = TcpStream::connect(address)?;
    post.set_read_timeout(Some(PATIENCE))?;
    post.write_all(&running.target.request(PLAN.choices))?;
    let answer = read_until(&mut post, b"data: [DONE]")?;
    let answer = String::from_utf8_lossy(&answer);
    let id = answer
        .lines()
        .find_map(|line| line.strip_prefix("x-stream-id: "));
    let id = id
        .ok_or_else(|| io::Error::other("the answer has no stream id"))?
        .trim();
    let mut random = Random::new(3);
    let mut times = Vec::new();
    for _ in 0..resumes {
        let cursor = random.below(PLAN.total() as usize);
        let started = now();
        let mut socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let request = format!(
            "GET /v1/streams/{id}/events HTTP/1.1\r\nhost: localhost\r\nlast-event-id: {cursor}\r\n\r\n"
        );
        socket.write_all(request.as_bytes())?;
        let first = read_until(&mut socket, b"\ndata: ")?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
        let text = String::from_utf8_lossy(&first);
        let next = text.lines().find_map(|line| line.strip_prefix("id: "));
        if next.and_then(|next| next.parse().ok()) != Some(cursor + 1) {
            return Err(io::Error::other(format!("after {cursor} comes {next:?}")));
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| {
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        times.get(index).copied().unwrap_or_default()
    };
    Ok(Row {
        name: candidate.name.clone(),
        p50: at(50),
        p99: at(99),
        max: at(100),
        resumes,
    })
}

/// Reads until the bytes contain something.
fn read_until(socket: &mut TcpStream, part: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while memchr::memmem::find(&bytes, part).is_none() {
        let read = socket.read(&mut buffer)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
    Ok(bytes)
}

/// Sends a GET, and reads the beginning of its answer.
pub(super) fn get(address: SocketAddr, path: &str) -> io::Result<Vec<u8>> {
    let mut socket = TcpStream::connect(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    socket.write_all(request.as_bytes())?;
    read_until(&mut socket, b"\r\n\r\n")
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "candidate": self.name,
            "p50_ms": rounded(self.p50),
            "p99_ms": rounded(self.p99),
            "max_ms": rounded(self.max),
            "resumes": self.resumes,
        })
    }
}

pub(super) fn print(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "\nfirst event after a reconnect to a stream of {} events, new connection included",
        PLAN.total()
    )?;
    writeln!(
        out,
        "{:<28} {:>9} {:>9} {:>9} {:>9}",
        "candidate", "p50 ms", "p99 ms", "max ms", "resumes"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<28} {:>9.2} {:>9.2} {:>9.2} {:>9}",
            row.name, row.p50, row.p99, row.max, row.resumes
        )?;
    }
    Ok(())
}
