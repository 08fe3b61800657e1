//! Opens completions with random faults for as long as it is told, and counts what is left of them:
//! `cargo run --release -p unbraid-adversarial --bin soak -- [minutes [first seed]]`.
//!
//! An hour on a quiet machine is some ten million completions. It fails unless what hung, and what leaked, is zero and zero.

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use peak_alloc::PeakAlloc;
use tokio::runtime::Runtime;
use unbraid_adversarial::soak::{Tally, silence_panics_on_purpose, soak};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Completions between two counts.
const ROUND: u64 = 20_000;

fn main() -> io::Result<ExitCode> {
    let mut told = env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(minutes)), Ok(first)) = (
        told.next().or(Some(Ok(60))),
        told.next().unwrap_or(Ok(10_000_000)),
    ) else {
        writeln!(io::stderr(), "usage: soak [minutes [first seed]]")?;
        return Ok(ExitCode::from(2));
    };
    silence_panics_on_purpose();
    let runtimes = [current()?, several()?];
    run(&runtimes, Duration::from_secs(minutes * 60), first)
}

#[expect(clippy::disallowed_methods, reason = "it runs for a time")]
fn run(runtimes: &[Runtime; 2], length: Duration, first: u64) -> io::Result<ExitCode> {
    let mut out = io::stdout();
    let mut tally = Tally::default();
    let mut seed = first;
    let start = Instant::now();
    // What is allocated once, by the library or below it, is there after a round.
    let mut warm = None;
    loop {
        for runtime in runtimes {
            tally.add(runtime.block_on(soak(seed..seed + ROUND)));
            seed += ROUND;
        }
        let actors: usize = runtimes
            .iter()
            .map(|runtime| runtime.metrics().num_alive_tasks())
            .sum();
        let bytes = HEAP.current_usage() as i64;
        let leaked = bytes - *warm.get_or_insert(bytes);
        let Tally {
            opened,
            ended,
            hung,
            unclosed,
            ..
        } = tally;
        writeln!(
            out,
            "{:5} s: {opened} opened, {ended} ended, {hung} hung, {unclosed} sources open, {actors} actors left, {leaked} bytes more",
            start.elapsed().as_secs()
        )?;
        let failed = hung > 0 || unclosed > 0 || actors > 0 || opened != ended;
        if failed || start.elapsed() >= length {
            writeln!(out, "{:?}", tally.ends)?;
            let leaks = leaked > SLACK;
            return Ok(if failed || leaks {
                ExitCode::FAILURE
            } else {
                ExitCode::SUCCESS
            });
        }
    }
}

/// Bytes by which a quiet heap may differ from itself: tables of the runtime that grow with the busiest moment.
const SLACK: i64 = 256 * 1024;

fn current() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn several() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}
