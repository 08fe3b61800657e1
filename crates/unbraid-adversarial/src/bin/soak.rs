//! Opens completions with random faults for some minutes, and counts hangs and leaks:
//! `cargo run --release -p unbraid-adversarial --bin soak -- [minutes [first seed]]`.
//!
//! An hour on an idle machine is about ten million completions. The program fails if a completion hangs or leaks.

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use peak_alloc::PeakAlloc;
use tokio::runtime::Runtime;
use unbraid_adversarial::soak::{Tally, silence_scripted_panics, soak};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// Completions between two counts.
const ROUND: u64 = 20_000;

fn main() -> io::Result<ExitCode> {
    let mut args = env::args().skip(1).map(|number| number.parse::<u64>());
    let (Some(Ok(minutes)), Ok(first)) = (
        args.next().or(Some(Ok(60))),
        args.next().unwrap_or(Ok(10_000_000)),
    ) else {
        writeln!(io::stderr(), "usage: soak [minutes [first seed]]")?;
        return Ok(ExitCode::from(2));
    };
    silence_scripted_panics();
    let runtimes = [current_thread()?, multi_thread()?];
    run(&runtimes, Duration::from_secs(minutes * 60), first)
}

#[expect(clippy::disallowed_methods, reason = "it runs for a given time")]
fn run(runtimes: &[Runtime; 2], length: Duration, first: u64) -> io::Result<ExitCode> {
    let mut out = io::stdout();
    let mut tally = Tally::default();
    let mut seed = first;
    let start = Instant::now();
    // After the first round, everything that is allocated once is allocated.
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
            "{:5} s: {opened} opened, {ended} ended, {hung} hung, {unclosed} sources open, {actors} actors alive, {leaked} bytes more",
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

/// How much an idle heap may grow without a leak, because the runtime's tables grow with the peak load.
const SLACK: i64 = 256 * 1024;

fn current_thread() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn multi_thread() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
}
