//! The resident memory of an open completion.
//!
//! Each measurement runs in its own process, because reused memory of an earlier one would not be counted.

use std::{
    fs,
    io::{self, Write},
    process::Command,
};

use super::{begin, roles};
use crate::table::runtime;

/// The first argument of the child process.
pub(super) const COMMAND: &str = "resident";

/// Measures the resident memory of each of `open` completions in a child process, and returns its output.
pub(super) fn each(choices: usize, open: usize) -> io::Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([COMMAND, &choices.to_string(), &open.to_string()]);
    let output = command.output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(error.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Runs and prints a measurement in the child process.
pub(super) fn run(choices: &str, open: &str, out: &mut impl Write) -> io::Result<()> {
    let choices = choices.parse().map_err(io::Error::other)?;
    let open = open.parse().map_err(io::Error::other)?;
    let runtime = runtime("current_thread")?;
    let read = roles(choices);
    let mut all = Vec::with_capacity(open);
    let before = Resident::now();
    begin(&runtime, &read, choices, &mut all);
    let after = Resident::now();
    let (Some(before), Some(after)) = (before, after) else {
        return writeln!(out, "resident memory is not available on this system");
    };
    let each = |before, after| (after - before) * 1.024 / open as f64;
    writeln!(
        out,
        "{:.1} kB resident, {:.1} kB of it anonymous",
        each(before.all, after.all),
        each(before.anonymous, after.anonymous)
    )
}

/// The resident memory of a process, in KiB.
pub(crate) struct Resident {
    pub(crate) all: f64,
    pub(crate) anonymous: f64,
}

impl Resident {
    /// That of this process.
    pub(crate) fn now() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Reads the kernel's sum over all pages, because the counters of `statm` lag. Returns `None` if the system has no such sum.
    pub(crate) fn of(process: u32) -> Option<Self> {
        let sums = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).ok()?;
        let sum = |name| {
            let line = sums.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Self {
            all: sum("Rss:")?,
            anonymous: sum("Anonymous:")?,
        })
    }
}
