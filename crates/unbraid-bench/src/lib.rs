//! Benchmarks of unbraid against the libraries in use today; see `docs/performance.md`.
//!
//! The contenders run alternately in one process. The tables show medians, and ratios within one run.

// The migration guides are doc tests here, because this crate depends on the libraries that they migrate from.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-async-openai.md")]
struct FromAsyncOpenai;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-eventsource-stream.md")]
struct FromEventsourceStream;

mod body;
mod brokers;
mod cli;
mod contender;
mod contest;
mod corpus;
mod counters;
mod dialects;
mod feed;
mod fixed;
#[cfg(target_os = "linux")]
mod gateway;
mod growth;
mod http;
mod json;
mod latency;
mod log;
mod many;
pub mod memory;
mod pace;
#[doc(hidden)]
pub mod parts;
mod random;
mod recordings;
mod scale;
mod shapes;
mod stamps;
mod table;
mod whole;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde_json::json;

use body::Shape;
use table::Effort;

const USAGE: &str = "usage: unbraid-bench [cli | corpus | dialects [<contender> <recording>] | fixed [<contender> <choices>] | gateway [soak [<generations> [<seed>]]] | gateway [full] [only=<part of a name>,..] [rounds=<n>] [minutes=<n>] [against=<another unbraid>] | growth | http | json | latency | log [<log> [<kept streams>]] | many [<contender>] | shapes [<contender> <recording>] | whole [<contender> <start of a name>] | scale [<name>=<value> ..] | profile <contender> <delivery> <runtime>] [--quick] [--json] [--padded]";

/// The command-line arguments.
#[derive(Debug, Default)]
struct Args {
    mode: Vec<String>,
    quick: bool,
    json: bool,
    padded: bool,
    /// What follows `--`: a command to run, or the options of one more gateway.
    command: Vec<String>,
}

impl Args {
    fn read(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut args = Self::default();
        while let Some(argument) = arguments.next() {
            match &*argument {
                "--" => args.command.extend(arguments.by_ref()),
                "--quick" => args.quick = true,
                "--json" => args.json = true,
                "--padded" => args.padded = true,
                flag if flag.starts_with('-') => return None,
                _ => args.mode.push(argument),
            }
        }
        Some(args)
    }
}

/// The command.
pub fn main() -> ExitCode {
    let Some(args) = Args::read(std::env::args().skip(1)) else {
        return usage();
    };
    let mut out = io::stdout().lock();
    let mode: Vec<&str> = args.mode.iter().map(String::as_str).collect();
    let result = match *mode {
        [] => table(&args, &mut out),
        ["cli"] if args.command.is_empty() => cli::run(args.quick, args.json, &mut out),
        ["cli"] => cli::run_once(&args.command, &mut out),
        ["fixed"] => fixed::run(args.quick, args.json, &mut out),
        ["fixed", contender, choices] => fixed::profile(contender, choices, &mut out),
        #[cfg(target_os = "linux")]
        ["gateway", "soak", ref arguments @ ..] => {
            gateway::run_soak(args.quick, arguments, &args.command, &mut out)
        }
        #[cfg(target_os = "linux")]
        ["gateway", "full", ref changes @ ..] => {
            gateway::run_full(args.quick, args.json, changes, &args.command, &mut out)
        }
        #[cfg(target_os = "linux")]
        ["gateway", ref changes @ ..] => {
            gateway::run(args.quick, args.json, changes, &args.command, &mut out)
        }
        // Started by the benchmark itself.
        #[cfg(target_os = "linux")]
        ["guard", group] => gateway::guard::run(group),
        ["many"] => many::run(args.quick, args.json, &mut out),
        ["many", contender] => many::measure(contender, args.quick, &mut out),
        ["corpus"] => corpus::run(&mut out),
        ["dialects"] => dialects::run(args.quick, args.json, &mut out),
        ["dialects", contender, recording] => {
            dialects::profile(recording, contender, args.quick, &mut out)
        }
        ["growth"] => growth::run(args.quick, &mut out),
        ["http"] => http::run(args.quick, args.json, &mut out),
        ["latency"] => latency::run(args.quick, args.json, &mut out),
        ["json"] => json::run(&mut out),
        ["log"] => log::run(args.quick, args.json, &mut out),
        ["log", backend] => log::measure(backend, None, args.quick, &mut out),
        ["log", backend, kept] => log::measure(backend, Some(kept), args.quick, &mut out),
        ["scale", ref changes @ ..] => scale::run(changes, args.quick, args.json, &mut out),
        ["shapes"] => shapes::run(args.quick, args.json, &mut out),
        ["shapes", contender, recording] => {
            shapes::profile(recording, contender, args.quick, &mut out)
        }
        ["whole"] => whole::run(args.quick, args.json, &mut out),
        ["whole", contender, recording] => {
            whole::profile(contender, recording, args.quick, &mut out)
        }
        ["profile", contender, delivery, runtime] => {
            table::profile([contender, delivery, runtime], args.quick, &mut out)
        }
        _ => return usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _result = writeln!(io::stderr(), "unbraid-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    let _result = writeln!(io::stderr(), "{USAGE}");
    ExitCode::from(2)
}

fn table(args: &Args, out: &mut impl Write) -> io::Result<()> {
    let effort = if args.quick {
        Effort {
            chunks: 20_000,
            rounds: 5,
        }
    } else {
        Effort {
            chunks: 100_000,
            rounds: 11,
        }
    };
    let shape = Shape {
        padded: args.padded,
        ..body::BRAIDED
    };
    let rows = table::measure(effort, shape)?;
    if !args.json {
        return table::print(&rows, out);
    }
    let rows: Vec<_> = rows.iter().map(table::Row::to_json).collect();
    let report = json!({
        "rows": rows,
        "chunks": effort.chunks,
        "rounds": effort.rounds,
        "padded": args.padded,
    });
    writeln!(out, "{report}")
}
