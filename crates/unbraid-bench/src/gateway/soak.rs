//! Generations with random faults of the upstream and of the clients, many at once, through one gateway.
//!
//! Nothing may hang, no reader may get an event twice or a clean end of an answer that was cut, and the memory of the gateway
//! must stay flat.

mod client;
mod fault;
mod provider;

use std::{
    collections::BTreeMap,
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use tokio::time::timeout;

use self::{client::Soaker, fault::Plan, provider::Provider};
use super::{candidate, options::Options, process, raise_file_limit};
use crate::stamps::now;

/// Much longer than any generation takes. Reaching it counts as a hang.
const DEADLINE: Duration = Duration::from_secs(60);

const CONCURRENT: usize = 128;

/// What the gateway is started with: short times, so that every limit is reached in the run.
const OPTIONS: [&str; 14] = [
    "--idle-timeout",
    "400ms",
    "--first-byte-timeout",
    "600ms",
    "--reader-stall",
    "1s",
    "--ping",
    "50ms",
    "--max-connection-age",
    "500ms",
    "--ttl",
    "2s",
    "--max-stream-bytes",
    "256KiB",
];

/// Evicts streams, and forgets those that have expired.
const MEMORY: [&str; 2] = ["--max-memory", "24MiB"];

/// Generations between two lines of the report.
const REPORT: u64 = 5_000;

/// What became of the generations.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) opened: u64,
    pub(super) ended: u64,
    pub(super) hung: u64,
    /// What a reader should not have got, with the first seed that shows it.
    pub(super) wrong: BTreeMap<String, u64>,
    /// The ends of all streams.
    pub(super) ends: BTreeMap<String, u64>,
}

impl Tally {
    fn has_failed(&self) -> bool {
        self.hung > 0 || !self.wrong.is_empty() || self.opened != self.ended
    }
}

/// Starts the gateway, and soaks it. Fails if something hangs, is wrong, or grows.
pub(super) fn run(
    generations: u64,
    first_seed: u64,
    more: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    raise_file_limit()?;
    let options: Vec<String> = OPTIONS
        .iter()
        .chain(&MEMORY)
        .map(ToString::to_string)
        .collect();
    let options = [&options[..], more].concat();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let provider = runtime.block_on(Provider::start())?;
    let running =
        candidate::Candidate::gateway(options).start(provider.address, &Options::default())?;
    let soaker = Arc::new(Soaker::new(running.target.address, provider)?);
    let started = now();
    let mut tally = Tally::default();
    let mut samples = Vec::new();
    let mut seed = first_seed;
    while tally.opened < generations {
        let count = REPORT.min(generations - tally.opened);
        runtime.block_on(soak(&soaker, seed..seed + count, &mut tally));
        seed += count;
        let memory = process::usage(&running.pids).memory as f64 / 1e6;
        samples.push(memory);
        writeln!(
            out,
            "{:5} s: {} opened, {} ended, {} hung, {} wrong, {memory:.1} MB",
            started.elapsed().as_secs(),
            tally.opened,
            tally.ended,
            tally.hung,
            tally.wrong.len()
        )?;
        out.flush()?;
    }
    writeln!(out, "{:?}", tally.ends)?;
    for (what, seed) in &tally.wrong {
        writeln!(out, "wrong: {what} (seed {seed})")?;
    }
    runtime.block_on(soaker.is_quiet(running.target.address))?;
    let grown = growth(&samples);
    writeln!(
        out,
        "the second half of the run took {grown:.1} MB more than the first"
    )?;
    if tally.has_failed() || grown > ALLOWED_GROWTH {
        return Err(io::Error::other("the soak failed"));
    }
    Ok(())
}

/// How much more memory the second half of a run may take, in MB: the allocator's own fluctuation.
const ALLOWED_GROWTH: f64 = 12.0;

/// The greatest sample of the last quarter, less the greatest one of the second quarter. The first quarter warms up.
fn growth(samples: &[f64]) -> f64 {
    let quarter = samples.len() / 4;
    let greatest = |range: &[f64]| range.iter().copied().fold(0.0, f64::max);
    match (
        samples.get(quarter..2 * quarter),
        samples.get(3 * quarter..),
    ) {
        (Some(early), Some(late)) if !early.is_empty() => greatest(late) - greatest(early),
        _ => 0.0,
    }
}

/// Runs one generation for each seed, many of them at once.
async fn soak(soaker: &Arc<Soaker>, seeds: std::ops::Range<u64>, tally: &mut Tally) {
    let one = |seed| {
        let soaker = Arc::clone(soaker);
        async move {
            let plan = Plan::of(seed);
            let running = tokio::spawn(async move { soaker.generation(seed, plan).await });
            (seed, plan, timeout(DEADLINE, running).await)
        }
    };
    let mut running = futures::stream::iter(seeds.map(one)).buffer_unordered(CONCURRENT);
    while let Some((seed, plan, result)) = running.next().await {
        tally.opened += 1;
        match result {
            Err(_elapsed) => {
                tally.hung += 1;
                tally
                    .wrong
                    .entry(format!("hangs: {plan:?}"))
                    .or_insert(seed);
            }
            Ok(Err(panicked)) => {
                tally.wrong.entry(panicked.to_string()).or_insert(seed);
            }
            Ok(Ok(Err(wrong))) => {
                tally.ended += 1;
                tally
                    .wrong
                    .entry(format!("{wrong}: {plan:?}"))
                    .or_insert(seed);
            }
            Ok(Ok(Ok(end))) => {
                tally.ended += 1;
                *tally.ends.entry(end).or_default() += 1;
            }
        }
    }
}

/// Where a gateway is that the caller has started, for a test.
#[cfg(test)]
pub(super) async fn with(
    start: impl AsyncFnOnce(std::net::SocketAddr) -> std::net::SocketAddr,
    seeds: std::ops::Range<u64>,
) -> io::Result<Tally> {
    let provider = Provider::start().await?;
    let address = start(provider.address).await;
    let soaker = Arc::new(Soaker::new(address, provider)?);
    let mut tally = Tally::default();
    soak(&soaker, seeds, &mut tally).await;
    soaker.is_quiet(address).await?;
    Ok(tally)
}
