//! What an open completion adds to the memory that its process has in RAM.
//!
//! Each figure comes from a process of its own: what another one had freed before would be used again, and not be seen.

use std::{
    fs,
    io::{self, Write},
    process::Command,
};

use super::{begin, roles};
use crate::table::runtime;

/// The first argument of such a process.
pub(super) const COMMAND: &str = "resident";

/// Says what each of so many completions adds, or that it is not known here.
pub(super) fn each(choices: usize, open: usize) -> io::Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([COMMAND, &choices.to_string(), &open.to_string()]);
    let told = command.output()?;
    if !told.status.success() {
        let error = String::from_utf8_lossy(&told.stderr);
        return Err(io::Error::other(error.trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

/// What such a process does and prints.
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
        return writeln!(out, "resident memory is not known here");
    };
    let each = |before, after| (after - before) * 1.024 / open as f64;
    writeln!(
        out,
        "{:.1} kB resident, {:.1} kB of it in pages of no file",
        each(before.all, after.all),
        each(before.anonymous, after.anonymous)
    )
}

/// What this process has in RAM, in KiB.
struct Resident {
    all: f64,
    anonymous: f64,
}

impl Resident {
    /// By the kernel's sum over all pages, since the counters of `statm` lag behind it; `None` where there is no such sum.
    fn now() -> Option<Self> {
        let sums = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
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
