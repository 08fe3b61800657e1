//! Benchmarks: `cargo run --release -p unbraid-bench -- json`.
//!
//! Contenders run in one process, turn by turn; the table gives medians, and ratios within one run.

mod json;

use std::{io::Write, process::ExitCode};

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let printed = match std::env::args().nth(1).as_deref() {
        Some("json") | None => json::run(&mut out),
        Some(_) => {
            let _told = writeln!(std::io::stderr(), "usage: unbraid-bench [json]");
            return ExitCode::from(2);
        }
    };
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
