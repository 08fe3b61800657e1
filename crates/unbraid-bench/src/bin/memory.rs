//! `cargo run --release -p unbraid-bench --bin memory`
//!
//! A separate command, because the counting allocator slows down code that allocates, which would favour the library.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use unbraid_bench::memory::{self, Counted};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout().lock();
    match memory::run(&arguments, measure, &mut out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _result = writeln!(io::stderr(), "memory: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(work: &mut dyn FnMut()) -> Counted {
    let counted = allocation_counter::measure(work);
    Counted {
        allocations: counted.count_total,
        held: counted.bytes_current,
    }
}
