//! Gateways and brokers that fail while clients read: the program `chaos`.
//!
//! A run starts an upstream whose answers are known in advance, the broker of a log, and gateways as child processes, with a
//! proxy between each gateway and the broker. Clients create streams, drop their connections, and resume at other
//! gateways. Meanwhile processes are killed, suspended, emptied and cut off, as a seed decides. At the end of each round
//! everything works again, and what each client received is compared with the answer.
//!
//! The schedule of faults depends on the seed only. When a process notices them does not, so a run with the same seed has the
//! same faults at the same times, and not the same interleaving.

mod answer;
mod attempts;
mod broker;
mod checker;
mod client;
mod faults;
mod gateways;
mod history;
mod process;
mod reader;
mod report;
mod round;
mod sse;
mod streams;
mod upstream;

use std::{fmt, io, path::PathBuf, sync::Arc, time::Duration};

use broker::Broker;
use faults::Possible;
use futures::future::try_join_all;
use gateways::{Gateways, Restart};
pub use report::Summary;
use report::Totals;
use round::Stage;
use tempfile::TempDir;
use tokio::time::Instant;
use upstream::Upstream;

/// Where the gateways keep their streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogKind {
    /// In the memory of one gateway.
    Memory,
    /// In a file of one gateway.
    File,
    /// In Redis.
    Redis,
    /// In NATS JetStream.
    Nats,
}

impl LogKind {
    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Redis => "redis",
            Self::Nats => "nats",
        }
    }

    /// The program of its broker and the package that contains it.
    fn broker(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Memory | Self::File => None,
            Self::Redis => Some(("redis-server", "redis-server")),
            Self::Nats => Some(("nats-server", "nats-server")),
        }
    }

    fn is_durable(self) -> bool {
        self != Self::Memory
    }
}

/// What happens to the processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// The faults of the seed.
    Chaos,
    /// Each gateway is drained and started again, one after the other.
    Rolling,
}

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the gateways keep their streams.
    pub log: LogKind,
    /// What happens to the processes.
    pub plan: Plan,
    /// How many processes are killed.
    pub kills: usize,
    /// What decides the faults.
    pub seed: u64,
    /// The round of the seed to begin with, from 1.
    pub first_round: u64,
    /// How many clients read at once.
    pub clients: usize,
    /// The lease of the gateways.
    pub lease: Duration,
    /// No round begins after this time.
    pub time: Duration,
    /// The program of the gateways.
    pub unbraid: PathBuf,
}

/// How many gateways share a log.
const GATEWAYS: usize = 3;

impl Options {
    /// The seed of a round.
    fn seed_of(&self, round: u64) -> u64 {
        let before = round.saturating_sub(1);
        self.seed.wrapping_add(before.wrapping_mul(0x5851_f42d))
    }

    fn gateways(&self) -> usize {
        match self.log.broker() {
            Some(_) => GATEWAYS,
            None => 1,
        }
    }
}

/// Why there is no result: something that a run needs is absent or does not start.
#[derive(Debug)]
pub struct CannotRun {
    message: String,
    is_absent: bool,
}

impl CannotRun {
    fn new(message: String) -> Self {
        Self {
            message,
            is_absent: false,
        }
    }

    fn absent(message: String) -> Self {
        Self {
            message,
            is_absent: true,
        }
    }

    fn io(error: io::Error) -> Self {
        Self::new(error.to_string())
    }

    /// Whether a program is not installed.
    pub fn is_absent(&self) -> bool {
        self.is_absent
    }
}

impl fmt::Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CannotRun {}

/// Runs rounds until the number of kills is reached, and reports the progress after each of them.
///
/// # Errors
///
/// If the broker is not installed, or a process does not start.
pub async fn run(options: Options, mut progress: impl FnMut(&str)) -> Result<Summary, CannotRun> {
    let start = Instant::now();
    let folder = TempDir::with_prefix("unbraid-chaos-").map_err(CannotRun::io)?;
    let broker = Broker::start(options.log, folder.path()).await?;
    let upstream = Upstream::start().await.map_err(CannotRun::io)?;
    let gateways = Arc::new(Gateways::new(&options, broker.as_ref(), folder.path()).await?);
    let starts =
        (0..gateways.len()).map(|slot| gateways.start(slot, &upstream, Restart::default()));
    try_join_all(starts).await?;
    let possible = Possible {
        log: options.log,
        disk: broker.as_ref().is_some_and(Broker::has_disk),
        clock: gateways::faketime().is_some(),
    };
    let stage = Stage {
        gateways,
        broker,
        upstream,
        possible,
    };
    let mut totals = Totals::default();
    let (mut number, mut reported) = (options.first_round, 0);
    let more = |totals: &Totals| match options.plan {
        Plan::Rolling => totals.rounds == 0,
        Plan::Chaos => {
            totals.kills() < options.kills && (totals.rounds == 0 || start.elapsed() < options.time)
        }
    };
    while more(&totals) {
        round::run(&stage, &options, number, &mut totals).await?;
        for found in totals.found.iter().skip(reported) {
            progress(&found.to_string());
        }
        reported = totals.found.len();
        progress(&format!(
            "round {number}: {} kills, {} streams, {} connections, {} violations, {} s",
            totals.kills(),
            totals.created,
            totals.connections,
            totals.found.len(),
            start.elapsed().as_secs()
        ));
        number += 1;
    }
    // The broker's disk is in the folder.
    drop(stage);
    let is_kept = !totals.found.is_empty();
    let folder = is_kept.then(|| folder.keep().display().to_string());
    Ok(Summary {
        totals,
        options,
        possible,
        elapsed: start.elapsed(),
        folder,
    })
}
