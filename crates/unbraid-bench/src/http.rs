//! HTTP on the loopback interface: `unbraid-http` against the client of `async-openai` with a handwritten demultiplexer.
//!
//! The server runs in its own thread and runtime, and its CPU time is subtracted.

mod latency;
mod peer;
mod server;
mod throughput;

use std::io::{self, Write};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let throughput = throughput::measure(quick)?;
    if !as_json {
        throughput::print(&throughput, out)?;
        out.flush()?;
    }
    let latency = latency::measure(quick)?;
    if !as_json {
        return latency::print(&latency, out);
    }
    let throughput: Vec<Value> = throughput.iter().map(throughput::Row::to_json).collect();
    let latency: Vec<Value> = latency.iter().map(latency::Row::to_json).collect();
    let report = json!({ "throughput": throughput, "latency": latency });
    writeln!(out, "{report}")
}

/// Like the runtimes of the other modes, with I/O enabled.
fn runtime(name: &str) -> io::Result<Runtime> {
    if name == "two_workers" {
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
    } else {
        Builder::new_current_thread().enable_all().build()
    }
}

#[cfg(test)]
mod tests;
