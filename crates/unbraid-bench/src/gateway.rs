//! The gateway against other proxies: one upstream stamps each delta with a monotonic time, and one client subtracts it.
//!
//! The upstream and the client are threads of this process. The candidates are processes of their own, so only their own CPU
//! time and memory are counted. They run in turn, in another order in each round, and each gets the same load.

mod candidate;
pub(crate) mod guard;
mod idle;
mod load;
mod measure;
mod meter;
mod options;
mod process;
mod report;
mod resume;
mod soak;
mod upstream;

use std::{
    env,
    io::{self, Write},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use self::{candidate::Candidate, measure::Effort, options::Options, upstream::Upstream};
use crate::stamps::now;

/// The directory of a virtual environment with LiteLLM, if it is not `target/bench/venv`.
const VENV_VARIABLE: &str = "UNBRAID_BENCH_VENV";

/// The clock that the upstream and the client share.
#[derive(Debug, Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(now())
    }

    fn nanos(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// All candidates: latency, CPU and memory under the same load, then memory of what is idle, then resumes.
pub(crate) fn run(
    quick: bool,
    as_json: bool,
    changes: &[&str],
    more: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    let options = Options::read(changes)?;
    let candidates = candidate::all(more, &options);
    let upstream = Upstream::start()?;
    let effort = Effort::half(quick).with(&options);
    let mut skipped = Skipped::new(as_json, out);
    let rows = measure::measure(&candidates, &upstream, effort, &options, &mut skipped)?;
    if !as_json {
        report::print(&rows, effort, skipped.out)?;
        skipped.out.flush()?;
    }
    let count = if quick { 200 } else { 1000 };
    let idle = idle::measure(&candidates, &upstream, count, &options, &mut skipped)?;
    let count = if quick { 100 } else { 500 };
    let resumes = resume::measure(&candidates, &upstream, count, &options, &mut skipped)?;
    if !as_json {
        idle::print(&idle, out)?;
        return resume::print(&resumes, out);
    }
    let report = json!({
        "rows": rows.iter().map(report::Row::to_json).collect::<Vec<_>>(),
        "idle": idle.iter().map(idle::Row::to_json).collect::<Vec<_>>(),
        "resume": resumes.iter().map(resume::Row::to_json).collect::<Vec<_>>(),
        "effort": effort.to_json(),
    });
    writeln!(out, "{report}")
}

/// The full load at once: 2,000 generations of 4 choices with 5 deltas a second each, of which nothing may be lost.
pub(crate) fn run_full(
    quick: bool,
    as_json: bool,
    changes: &[&str],
    more: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    let options = Options::read(changes)?;
    let candidates: Vec<Candidate> = candidate::all(more, &options)
        .into_iter()
        .filter(|candidate| candidate.carries_the_full_load())
        .collect();
    let upstream = Upstream::start()?;
    let effort = Effort::full(quick).with(&options);
    let mut skipped = Skipped::new(as_json, out);
    let rows = measure::measure(&candidates, &upstream, effort, &options, &mut skipped)?;
    if as_json {
        let rows: Vec<_> = rows.iter().map(report::Row::to_json).collect();
        writeln!(
            out,
            "{}",
            json!({ "rows": rows, "effort": effort.to_json() })
        )?;
    } else {
        report::print(&rows, effort, out)?;
    }
    match rows.iter().find(|row| row.lost > 0) {
        Some(row) => Err(io::Error::other(format!(
            "{} lost {} deltas",
            row.name, row.lost
        ))),
        None => Ok(()),
    }
}

/// Says what has no row, and why.
struct Skipped<'o, W> {
    out: &'o mut W,
    is_quiet: bool,
}

impl<'o, W: Write> Skipped<'o, W> {
    fn new(is_quiet: bool, out: &'o mut W) -> Self {
        Self { out, is_quiet }
    }

    fn skip(&mut self, name: &str, error: &io::Error) -> io::Result<()> {
        if self.is_quiet {
            return Ok(());
        }
        writeln!(self.out, "skipped: {name}: {error}")?;
        self.out.flush()
    }
}

/// Generations with random faults, through one gateway.
pub(crate) fn run_soak(
    quick: bool,
    arguments: &[&str],
    more: &[String],
    out: &mut impl Write,
) -> io::Result<()> {
    let number = |index: usize, default: u64| match arguments.get(index) {
        Some(text) => text.parse().map_err(io::Error::other),
        None => Ok(default),
    };
    let generations = number(0, if quick { 5_000 } else { 100_000 })?;
    soak::run(generations, number(1, 1)?, more, out)
}

/// The virtual environment with LiteLLM.
fn venv() -> io::Result<PathBuf> {
    if let Some(path) = env::var_os(VENV_VARIABLE) {
        return Ok(path.into());
    }
    // `target/release/unbraid-bench` and `target/release/deps/..` have the same ancestor.
    let target = env::current_exe()?;
    let target = target.ancestors().find(|path| path.ends_with("target"));
    Ok(target
        .unwrap_or_else(|| "target".as_ref())
        .join("bench/venv"))
}

/// Runs a future in a runtime of this thread.
fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(future))
}

/// Waits for something that a process does.
fn wait_for(
    what: &str,
    limit: Duration,
    mut is_done: impl FnMut() -> io::Result<bool>,
) -> io::Result<()> {
    let started = now();
    while !is_done()? {
        if started.elapsed() > limit {
            return Err(io::Error::other(format!(
                "{what} takes longer than {limit:?}"
            )));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Allows this process, and those that it starts, as many open files as the system does.
fn raise_file_limit() -> io::Result<()> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok(setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?)
}

#[cfg(test)]
mod tests;
