//! `cargo run --release -p unbraid-bench`

use std::process::ExitCode;

fn main() -> ExitCode {
    unbraid_bench::main()
}
