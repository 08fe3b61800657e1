//! The memory of generations that run and of readers that wait, while nothing is sent.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    Skipped,
    candidate::{Candidate, Running},
    load::Load,
    options::Options,
    process, raise_file_limit,
    upstream::{Plan, Upstream},
};
use crate::table::rounded;

/// Four choices that have begun.
const PLAN: Plan = Plan {
    choices: 4,
    deltas: 1,
    every: Duration::ZERO,
    stays_open: true,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// Generations before the first count: what is allocated once is allocated.
const WARM_UP: usize = 50;

#[derive(Debug)]
pub(super) struct Row {
    name: String,
    /// KiB of each running generation, with the connections of its client and its upstream.
    generation: f64,
    /// KiB of each further reader that waits.
    reader: Option<f64>,
    count: usize,
}

/// Measures the candidates that can be started.
pub(super) fn measure(
    candidates: &[Candidate],
    upstream: &Upstream,
    count: usize,
    options: &Options,
    skipped: &mut Skipped<'_, impl Write>,
) -> io::Result<Vec<Row>> {
    raise_file_limit()?;
    let mut rows = Vec::new();
    for candidate in candidates.iter().filter(|candidate| !candidate.is_direct()) {
        if options.is_over() {
            break;
        }
        // Why one cannot be started is said above the first table.
        let Ok(running) = candidate.start(upstream.address, options) else {
            continue;
        };
        match idle(candidate, &running, upstream, count) {
            Ok(row) => rows.push(row),
            Err(error) => skipped.skip(&candidate.name, &error)?,
        }
    }
    Ok(rows)
}

fn idle(
    candidate: &Candidate,
    running: &Running,
    upstream: &Upstream,
    count: usize,
) -> io::Result<Row> {
    let finished = Plan {
        stays_open: false,
        ..PLAN
    };
    upstream.set_plan(finished);
    let warm = Load::start(
        &running.target,
        finished,
        WARM_UP as u32,
        Duration::from_secs(1),
        PATIENCE,
        upstream.clock,
    );
    warm.finish()?;
    upstream.set_plan(PLAN);
    let resident = || {
        // Until what has just been done has been done with.
        thread::sleep(Duration::from_secs(2));
        process::usage(&running.pids).memory as f64 / 1024.0
    };
    let before = resident();
    let (posts, ids) = open_generations(running, count)?;
    let with_generations = resident();
    let reader = if ids.is_empty() {
        None
    } else {
        let readers = open_readers(running, &ids)?;
        let with_readers = resident();
        drop(readers);
        Some((with_readers - with_generations) / count as f64)
    };
    drop(posts);
    Ok(Row {
        name: candidate.name.clone(),
        generation: (with_generations - before) / count as f64,
        reader,
        count,
    })
}

/// Starts generations, each with its client. Returns their connections, and the ids of those that are kept.
fn open_generations(running: &Running, count: usize) -> io::Result<(Vec<TcpStream>, Vec<String>)> {
    let request = running.target.request(PLAN.choices);
    let (mut posts, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let mut socket = TcpStream::connect(running.target.address)?;
        socket.write_all(&request)?;
        posts.push(socket);
    }
    for socket in &mut posts {
        let answer = read_choices(socket)?;
        let id = answer
            .lines()
            .find_map(|line| line.strip_prefix("x-stream-id: "));
        ids.extend(id.map(|id| id.trim().to_owned()));
    }
    Ok((posts, ids))
}

/// Opens a reader of each stream, and waits until it has everything.
fn open_readers(running: &Running, ids: &[String]) -> io::Result<Vec<TcpStream>> {
    let open = ids.iter().map(|id| {
        let mut socket = TcpStream::connect(running.target.address)?;
        let request = format!("GET /v1/streams/{id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
        socket.write_all(request.as_bytes())?;
        read_choices(&mut socket)?;
        Ok(socket)
    });
    open.collect()
}

/// Reads until a delta of every choice has arrived.
fn read_choices(socket: &mut TcpStream) -> io::Result<String> {
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while memchr::memchr_iter(b'@', &bytes).count() < PLAN.choices {
        let read = socket.read(&mut buffer)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(buffer.get(..read).unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Row {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "candidate": self.name,
            "kib_per_generation": rounded(self.generation),
            "kib_per_reader": self.reader.map(rounded),
            "count": self.count,
        })
    }
}

pub(super) fn print(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\nresident memory while nothing is sent, 4 choices")?;
    writeln!(
        out,
        "{:<28} {:>16} {:>16} {:>9}",
        "candidate", "KiB/generation", "KiB/idle reader", "count"
    )?;
    for row in rows {
        let reader = row
            .reader
            .map_or_else(|| "-".to_owned(), |reader| format!("{reader:.1}"));
        writeln!(
            out,
            "{:<28} {:>16.1} {:>16} {:>9}",
            row.name, row.generation, reader, row.count
        )?;
    }
    Ok(())
}
