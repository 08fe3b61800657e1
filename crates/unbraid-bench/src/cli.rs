//! The command `collect`: its time and memory on a small and on large streams.

mod streams;

use std::{
    env,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::table::{median, rounded};

/// A run of the command.
struct Case {
    name: &'static str,
    stream: &'static str,
    args: &'static [&'static str],
}

const CASES: [Case; 6] = [
    Case {
        name: "two short choices",
        stream: streams::TINY,
        args: &[],
    },
    Case {
        name: "two short choices, tokens counted",
        stream: streams::TINY,
        args: &["--usage", "estimate"],
    },
    Case {
        name: "eight choices of text",
        stream: streams::TEXT,
        args: &[],
    },
    Case {
        name: "eight choices of text, tokens counted",
        stream: streams::TEXT,
        args: &["--usage", "estimate"],
    },
    Case {
        name: "eight choices, text alone",
        stream: streams::TEXT,
        args: &["--text"],
    },
    Case {
        name: "four choices with log probabilities",
        stream: streams::LOGPROBS,
        args: &[],
    },
];

/// Names the command, if it is not beside this one.
const PATH_VARIABLE: &str = "UNBRAID_COMMAND";

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let (megabytes, rounds) = if quick { (10, 3) } else { (100, 7) };
    let command = command()?;
    let dir = env::temp_dir().join(format!("unbraid-bench-{}", std::process::id()));
    std::fs::create_dir_all(&dir)?;
    let measured =
        streams::write(&dir, megabytes * 1_000_000).and_then(|()| measure(&command, &dir, rounds));
    std::fs::remove_dir_all(&dir)?;
    let rows = measured?;
    if as_json {
        let report = json!({ "rows": rows, "megabytes": megabytes, "rounds": rounds });
        return writeln!(out, "{report}");
    }
    writeln!(
        out,
        "{:<40} {:>8} {:>10} {:>10} {:>10}",
        "collect", "MB", "wall ms", "CPU ms", "MB peak"
    )?;
    for row in &rows {
        let name = row["name"].as_str().unwrap_or_default();
        let (mb, wall, cpu) = (&row["megabytes"], &row["wall_ms"], &row["cpu_ms"]);
        let peak = &row["peak_mb"];
        writeln!(out, "{name:<40} {mb:>8} {wall:>10} {cpu:>10} {peak:>10}")?;
    }
    Ok(())
}

/// The path of the command `unbraid`.
pub(crate) fn command() -> io::Result<PathBuf> {
    let name = format!("unbraid{}", env::consts::EXE_SUFFIX);
    let beside = env::current_exe()?.with_file_name(name);
    let path = env::var_os(PATH_VARIABLE).map_or(beside, PathBuf::from);
    if path.is_file() {
        return Ok(path);
    }
    let message = format!("build unbraid-cli first, or set {PATH_VARIABLE}");
    Err(io::Error::other(message))
}

fn measure(command: &Path, dir: &Path, rounds: usize) -> io::Result<Vec<Value>> {
    let mut runs: [Vec<Value>; CASES.len()] = Default::default();
    for _ in 0..rounds {
        for (case, runs) in CASES.iter().zip(&mut runs) {
            runs.push(in_child(command, &dir.join(case.stream), case.args)?);
        }
    }
    let rows = CASES.iter().zip(&runs).map(|(case, runs)| {
        let of = |key: &str| rounded(median(runs.iter().filter_map(|run| run[key].as_f64())));
        let bytes = std::fs::metadata(dir.join(case.stream))?.len();
        Ok(json!({
            "name": case.name,
            "megabytes": rounded(bytes as f64 / 1e6),
            "wall_ms": of("wall_ms"),
            "cpu_ms": of("cpu_ms"),
            "peak_mb": of("peak_mb"),
        }))
    });
    rows.collect()
}

/// Runs the command in a process that has no other children, because the system keeps one sum for all of them.
fn in_child(command: &Path, stream: &Path, args: &[&str]) -> io::Result<Value> {
    let output = Command::new(env::current_exe()?)
        .args(["cli", "--"])
        .arg(command)
        .arg("collect")
        .args(args)
        .arg(stream)
        .output()?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(error.trim().to_owned()));
    }
    serde_json::from_slice(&output.stdout).map_err(io::Error::other)
}

/// Runs a command once, and prints its time and memory as JSON.
pub(crate) fn run_once(command: &[String], out: &mut impl Write) -> io::Result<()> {
    let [program, args @ ..] = command else {
        return Err(io::Error::other("no command"));
    };
    let started = Instant::now();
    let status = Command::new(program)
        .args(args)
        .stdout(Stdio::null())
        .status()?;
    let wall = started.elapsed();
    if !status.success() {
        return Err(io::Error::other(format!("the command failed: {status}")));
    }
    let (cpu_ms, peak_mb) = Option::unzip(of_children());
    let report = json!({
        "wall_ms": wall.as_secs_f64() * 1e3,
        "cpu_ms": cpu_ms,
        "peak_mb": peak_mb,
    });
    writeln!(out, "{report}")
}

/// The CPU time of the child processes in milliseconds, and the peak of their resident memory in MB.
#[cfg(target_os = "linux")]
fn of_children() -> Option<(f64, f64)> {
    use nix::sys::{
        resource::{UsageWho, getrusage},
        time::TimeValLike,
    };
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).ok()?;
    let microseconds = usage.user_time() + usage.system_time();
    let cpu_ms = microseconds.num_microseconds() as f64 / 1e3;
    Some((cpu_ms, usage.max_rss() as f64 * 1.024 / 1e3))
}

/// Other systems count in other units, or not at all.
#[cfg(not(target_os = "linux"))]
fn of_children() -> Option<(f64, f64)> {
    None
}
