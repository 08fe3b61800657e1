//! Checks that cost grows linearly with the input. Each line multiplies one dimension, and the cost of a chunk or byte must
//! stay the same.

use std::io::{self, Write};

use bytes::Bytes;
use cpu_time::ProcessTime;
use futures::{StreamExt, stream};
use unbraid::Completions;
use unbraid_core::{Config, Demux, Limits};

use crate::{
    body::{BRAIDED, Shape, Writer},
    table::runtime,
};

pub(crate) fn run(quick: bool, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "bytes of a stream through Demux, n = 8")?;
    let longest = if quick { 100 } else { 1_000 };
    for megabytes in [1, 10, 100, 1_000].into_iter().filter(|mb| *mb <= longest) {
        let ns = stream_of(megabytes * 1_000_000 / 290, BRAIDED);
        writeln!(out, "  {megabytes:>6} MB {ns:>10.1} ns a chunk")?;
    }
    writeln!(out, "choices of a stream of 30 MB")?;
    for choices in [1, 8, 128] {
        let shape = Shape { choices, ..BRAIDED };
        let ns = stream_of(100_000, shape);
        writeln!(out, "  {choices:>6}    {ns:>10.1} ns a chunk")?;
    }
    writeln!(out, "concurrent completions, n = 8: open, end and drop")?;
    for open in [1, 100, 10_000] {
        writeln!(out, "  {open:>6}    {:>10.1} us each", opened(open)?)?;
    }
    writeln!(out, "one line in reads of 64 bytes")?;
    for megabytes in [1, 4, 16] {
        let ns = long_line(megabytes << 20);
        writeln!(out, "  {megabytes:>6} MiB {ns:>9.2} ns a byte")?;
    }
    Ok(())
}

/// CPU time for each chunk, in nanoseconds. The stream is generated while it is read; the cost of generating is subtracted.
fn stream_of(chunks: usize, shape: Shape) -> f64 {
    let limits = Limits::default()
        .with_completion_bytes(u64::MAX)
        .with_choice_bytes(u64::MAX);
    let options = Config::default().with_limits(limits);
    let mut demux = Demux::new(options);
    let both = written(chunks, shape, |read| {
        demux.feed(read.as_bytes());
        while demux.next_event().is_some() {}
    });
    let alone = written(chunks, shape, |_| ());
    (both - alone) / chunks as f64
}

fn written(chunks: usize, shape: Shape, mut take: impl FnMut(&str)) -> f64 {
    const READ_BYTES: usize = 16 * 1024;
    let started = ProcessTime::now();
    let mut writer = Writer::new(chunks, shape);
    let mut read = String::new();
    while writer.event(&mut read).is_some() {
        if read.len() >= READ_BYTES {
            take(&read);
            read.clear();
        }
    }
    take(&read);
    started.elapsed().as_secs_f64() * 1e9
}

/// CPU time to open, end and drop a completion, in microseconds.
fn opened(count: usize) -> io::Result<f64> {
    let runtime = runtime("current_thread")?;
    let body = crate::body::body(16, BRAIDED).bytes;
    let started = ProcessTime::now();
    runtime.block_on(async {
        let open = |_| {
            let read: Bytes = body.clone();
            let gate = async move { Ok::<_, io::Error>(read) };
            Completions::from_byte_stream(stream::once(gate).boxed())
        };
        let all: Vec<Completions> = (0..count).map(open).collect();
        for completions in &all {
            let _result = completions.closed().await;
        }
    });
    Ok(started.elapsed().as_secs_f64() * 1e6 / count as f64)
}

fn long_line(bytes: usize) -> f64 {
    let mut line = String::from("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"");
    line.extend(std::iter::repeat_n('x', bytes));
    line.push_str("\"}}]}\n\n");
    let started = ProcessTime::now();
    let mut demux = Demux::new(Config::default());
    for read in line.as_bytes().chunks(64) {
        demux.feed(read);
    }
    demux.finish();
    started.elapsed().as_secs_f64() * 1e9 / bytes as f64
}
