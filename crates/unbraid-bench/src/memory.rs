//! What is allocated for a chunk, and what an open completion holds.

mod resident;

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
    table::runtime,
};

/// What a counter of allocations counted while some work was done in this thread.
#[derive(Debug, Clone, Copy)]
pub struct Counted {
    /// Allocations, reallocations not counted apart.
    pub allocations: u64,
    /// Bytes that are still held.
    pub held: i64,
}

/// Counts allocations while the work is done.
pub type Measure = fn(&mut dyn FnMut()) -> Counted;

/// Prints all figures, or the one that a process of its own was started for.
///
/// # Errors
///
/// What writing, or starting a runtime or a process, comes to.
pub fn run(arguments: &[String], measure: Measure, out: &mut impl Write) -> io::Result<()> {
    match arguments {
        [] => figures(measure, out),
        [what, choices, open] if what == resident::COMMAND => resident::run(choices, open, out),
        _ => Err(io::Error::other("it takes no arguments")),
    }
}

fn figures(measure: Measure, out: &mut impl Write) -> io::Result<()> {
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

/// Bytes that each of so many completions holds when all its choices have begun.
fn held(measure: Measure, choices: usize, open: usize) -> io::Result<f64> {
    let runtime = runtime("current_thread")?;
    let mut all = Vec::with_capacity(open);
    let read = roles(choices);
    let counted = measure(&mut || begin(&runtime, &read, choices, &mut all));
    drop(all);
    Ok(counted.held as f64 / open as f64)
}

/// What a caller holds of a completion.
type Handles = (Completions, Vec<Choice>);

/// Opens completions up to the capacity of what holds them, and sees all their choices begin.
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

/// One read that begins all choices.
fn roles(choices: usize) -> Bytes {
    let read: String = (0..choices).map(role).collect();
    Bytes::from(read)
}

fn role(choice: usize) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-4o-2024-08-06\",\"choices\":[{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\"finish_reason\":null}}]}}\n\n"
    )
}
