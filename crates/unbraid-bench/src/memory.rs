//! The allocations of a chunk, and the memory of an open completion.

pub(crate) mod resident;

use std::{
    io::{self, Write},
    time::Duration,
};

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::runtime::Runtime;
use unbraid::{Choice, Completions};
use unbraid_core::{Config, Demux};

use crate::{
    body::{self, BRAIDED},
    feed::Delivery,
    fixed,
    table::runtime,
};

/// The allocations that some work made in this thread.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// The number of allocations. Reallocations are not counted.
    pub allocations: u64,
    /// The number of bytes that are still allocated.
    pub held: i64,
}

/// Counts the allocations of some work.
pub type Measure = fn(&mut dyn FnMut()) -> Counted;

/// Prints all measurements, or the one that a child process was started for.
///
/// # Errors
///
/// Returns an error if writing, or starting a runtime or a process, fails.
pub fn run(arguments: &[String], measure: Measure, out: &mut impl Write) -> io::Result<()> {
    match arguments {
        [] => measurements(measure, out),
        [what] if what == fixed::COMMAND => {
            let allocations = fixed::allocations(measure)?;
            writeln!(out, "{allocations}")
        }
        [what, choices, open] if what == resident::COMMAND => resident::run(choices, open, out),
        _ => Err(io::Error::other("unexpected arguments")),
    }
}

fn measurements(measure: Measure, out: &mut impl Write) -> io::Result<()> {
    let body = body::body(100_000, BRAIDED);
    for delivery in Delivery::ALL {
        let reads = delivery.cut(&body);
        let counted = measure(&mut || {
            let mut demux = Demux::new(Config::default());
            for read in reads.bytes() {
                demux.feed(read);
                while demux.next_event().is_some() {}
            }
        });
        writeln!(
            out,
            "Demux, {:<7} {:>8.4} allocations a chunk",
            delivery.name(),
            counted.allocations as f64 / body.chunks as f64
        )?;
    }
    for choices in [1, 8] {
        for open in [1, 100, 10_000] {
            let held = held(measure, choices, open)?;
            let resident = resident::each(choices, open)?;
            writeln!(
                out,
                "{open:>6} open completions of {choices} choices: {:>8.1} kB of heap each, {resident}",
                held / 1000.0
            )?;
        }
    }
    Ok(())
}

/// The bytes on the heap for each of `open` completions when all its choices have started.
pub(crate) fn held(measure: Measure, choices: usize, open: usize) -> io::Result<f64> {
    let runtime = runtime("current_thread")?;
    let mut all = Vec::with_capacity(open);
    let read = roles(choices);
    let counted = measure(&mut || begin(&runtime, &read, choices, &mut all));
    drop(all);
    Ok(counted.held as f64 / open as f64)
}

/// The handles that a caller keeps of a completion.
type Handles = (Completions, Vec<Choice>);

/// Opens completions up to the capacity of `all`, and waits for their choices to start.
fn begin(runtime: &Runtime, read: &Bytes, choices: usize, all: &mut Vec<Handles>) {
    runtime.block_on(async {
        for _ in 0..all.capacity() {
            let read = Ok::<_, io::Error>(read.clone());
            let source = stream::iter([read]).chain(stream::pending());
            let completions = Completions::from_byte_stream(source);
            let mut seen = completions.choices();
            let mut handles = Vec::with_capacity(choices);
            for _ in 0..choices {
                if let Some(Ok(choice)) = seen.next().await {
                    handles.push(choice);
                }
            }
            all.push((completions, handles));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    });
}

/// A read that starts all choices.
fn roles(choices: usize) -> Bytes {
    let read: String = (0..choices).map(role).collect();
    Bytes::from(read)
}

fn role(choice: usize) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-4o-2024-08-06\",\"choices\":[{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\"finish_reason\":null}}]}}\n\n"
    )
}
