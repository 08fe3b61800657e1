//! The latency of one update from writer to consumer, through the library and through a task with a channel: in an idle
//! pipeline after a warm-up, and at the pace of a model.

mod paced;

use std::{
    convert::Infallible,
    io::{self, Write},
    time::Duration,
};

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::{
    runtime::Runtime,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
};
use unbraid::Completions;

use crate::{
    stamps::{Percentiles, now},
    table::{RUNTIMES, runtime},
};

const UPDATES: usize = 20_000;

/// Updates before the measurement starts.
const WARM_UP: usize = 2_000;

/// How an update reaches its consumer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Pipeline {
    Channel,
    Actors,
}

impl Pipeline {
    const ALL: [Self; 2] = [Self::Channel, Self::Actors];

    fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Actors => "actors",
        }
    }
}

/// One line of the table.
struct Row {
    runtime: &'static str,
    pace: &'static str,
    pipeline: Pipeline,
    percentiles: Percentiles,
}

impl Row {
    fn to_json(&self) -> Value {
        let mut row = self.percentiles.to_json();
        if let Value::Object(row) = &mut row {
            row.insert("runtime".to_owned(), self.runtime.into());
            row.insert("pace".to_owned(), self.pace.into());
            row.insert("way".to_owned(), self.pipeline.name().into());
        }
        row
    }
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let mut rows = Vec::new();
    for name in RUNTIMES {
        let runtime = runtime(name)?;
        for pipeline in Pipeline::ALL {
            let percentiles = Percentiles::from_times(measure_idle(&runtime, pipeline)?);
            rows.push(Row {
                runtime: name,
                pace: "warm",
                pipeline,
                percentiles,
            });
        }
        for (pipeline, times) in Pipeline::ALL
            .into_iter()
            .zip(paced::measure(&runtime, quick)?)
        {
            rows.push(Row {
                runtime: name,
                pace: "100/s",
                pipeline,
                percentiles: Percentiles::from_times(times),
            });
        }
    }
    if as_json {
        let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
        return writeln!(out, "{}", json!({ "rows": rows }));
    }
    writeln!(
        out,
        "{:<15} {:<8} {:<10} {:>10} {:>10} {:>10}",
        "runtime", "pace", "way", "p50 us", "p99 us", "max us"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<15} {:<8} {:<10} {:>10.2} {:>10.2} {:>10.2}",
            row.runtime,
            row.pace,
            row.pipeline.name(),
            row.percentiles.p50,
            row.percentiles.p99,
            row.percentiles.max
        )?;
    }
    writeln!(
        out,
        "warm: one choice, each update after the previous one is received; 100/s: {} choices, 100 updates per second for each",
        paced::CHOICES
    )
}

fn measure_idle(runtime: &Runtime, pipeline: Pipeline) -> io::Result<Vec<Duration>> {
    let measured = runtime.spawn(async move {
        match pipeline {
            Pipeline::Channel => channel().await,
            Pipeline::Actors => actors().await,
        }
    });
    runtime.block_on(measured).map_err(io::Error::other)
}

/// The reads sent into a channel, as the body of an answer.
fn body(reads: UnboundedReceiver<Bytes>) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    stream::unfold(reads, async |mut reads| {
        let read = reads.recv().await?;
        Some((Ok(read), reads))
    })
}

/// Sends each read after the previous one is received, and returns the latencies.
async fn times(send: UnboundedSender<Bytes>, mut received: UnboundedReceiver<()>) -> Vec<Duration> {
    let read = Bytes::from_static(READ);
    let mut times = Vec::with_capacity(UPDATES);
    for nth in 0..WARM_UP + UPDATES {
        let started = now();
        if send.send(read.clone()).is_err() || received.recv().await.is_none() {
            break;
        }
        if nth >= WARM_UP {
            times.push(started.elapsed());
        }
    }
    times
}

async fn channel() -> Vec<Duration> {
    let (send, mut reads) = mpsc::unbounded_channel::<Bytes>();
    let (notify, received) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while reads.recv().await.is_some() {
            let _closed = notify.send(());
        }
    });
    times(send, received).await
}

async fn actors() -> Vec<Duration> {
    let (send, reads) = mpsc::unbounded_channel::<Bytes>();
    let (notify, received) = mpsc::unbounded_channel();
    let completions = Completions::from_byte_stream(body(reads));
    tokio::spawn(async move {
        let Ok(choice) = completions.first().await else {
            return;
        };
        let mut content = choice.content();
        while let Some(Ok(_delta)) = content.next().await {
            let _closed = notify.send(());
        }
    });
    times(send, received).await
}

const READ: &[u8] = b"data: {\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-4o-2024-08-06\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
