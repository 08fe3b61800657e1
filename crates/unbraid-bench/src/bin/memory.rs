//! `cargo run --release -p unbraid-bench --bin memory`
//!
//! A command of its own: the counting allocator would slow whatever allocates, and so flatter the library.

use std::{io, process::ExitCode};

use unbraid_bench::memory::{self, Counted};

fn main() -> ExitCode {
    let mut out = io::stdout().lock();
    match memory::run(measure, &mut out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn measure(work: &mut dyn FnMut()) -> Counted {
    let counted = allocation_counter::measure(work);
    Counted {
        allocations: counted.count_total,
        held: counted.bytes_current,
    }
}
