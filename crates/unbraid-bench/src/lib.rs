//! Benchmarks of unbraid against what its users have today; see `docs/performance.md`.
//!
//! Contenders run in one process, turn by turn; tables give medians, and ratios within one run.

// The migration guides are doc tests here, because this crate depends on the libraries that they migrate from.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-async-openai.md")]
struct FromAsyncOpenai;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/from-eventsource-stream.md")]
struct FromEventsourceStream;

mod body;
mod contender;
mod corpus;
mod feed;
mod growth;
mod http;
mod json;
mod latency;
pub mod memory;
mod pace;
#[doc(hidden)]
pub mod parts;
mod random;
mod stamps;
mod table;

use std::{
    io::{self, Write},
    process::ExitCode,
};

use serde_json::json;

use body::Shape;
use table::Effort;

const USAGE: &str = "usage: unbraid-bench [corpus | growth | http | json | latency | profile <contender> <delivery> <runtime>] [--quick] [--json] [--padded]";

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    what: Vec<String>,
    quick: bool,
    json: bool,
    padded: bool,
}

impl Asked {
    fn read(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut asked = Self::default();
        for argument in arguments {
            match &*argument {
                "--quick" => asked.quick = true,
                "--json" => asked.json = true,
                "--padded" => asked.padded = true,
                flag if flag.starts_with('-') => return None,
                _ => asked.what.push(argument),
            }
        }
        Some(asked)
    }
}

/// The command.
pub fn main() -> ExitCode {
    let Some(asked) = Asked::read(std::env::args().skip(1)) else {
        return usage();
    };
    let mut out = io::stdout().lock();
    let what: Vec<&str> = asked.what.iter().map(String::as_str).collect();
    let printed = match *what {
        [] => table(&asked, &mut out),
        ["corpus"] => corpus::run(&mut out),
        ["growth"] => growth::run(asked.quick, &mut out),
        ["http"] => http::run(asked.quick, asked.json, &mut out),
        ["latency"] => latency::run(asked.quick, asked.json, &mut out),
        ["json"] => json::run(&mut out),
        ["profile", contender, delivery, runtime] => {
            table::profile([contender, delivery, runtime], asked.quick, &mut out)
        }
        _ => return usage(),
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _told = writeln!(io::stderr(), "unbraid-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    let _told = writeln!(io::stderr(), "{USAGE}");
    ExitCode::from(2)
}

fn table(asked: &Asked, out: &mut impl Write) -> io::Result<()> {
    let effort = if asked.quick {
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
        padded: asked.padded,
        ..body::BRAIDED
    };
    let rows = table::measure(effort, shape)?;
    if !asked.json {
        return table::print(&rows, out);
    }
    let rows: Vec<_> = rows.iter().map(table::Row::to_json).collect();
    let report = json!({
        "rows": rows,
        "chunks": effort.chunks,
        "rounds": effort.rounds,
        "padded": asked.padded,
    });
    writeln!(out, "{report}")
}
