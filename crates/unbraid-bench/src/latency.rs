//! How long one update takes from the hand that writes it to the hand that reads it, through the library and through
//! a plain task with a channel: in a pipeline that is warm and idle, and at the pace of a model.

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
    stamps::{Spread, now},
    table::{RUNTIMES, runtime},
};

const UPDATES: usize = 20_000;

/// Updates before the count begins.
const WARM: usize = 2_000;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    Channel,
    Actors,
}

impl Way {
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
    way: Way,
    spread: Spread,
}

impl Row {
    fn to_json(&self) -> Value {
        let mut row = self.spread.to_json();
        if let Value::Object(row) = &mut row {
            row.insert("runtime".to_owned(), self.runtime.into());
            row.insert("pace".to_owned(), self.pace.into());
            row.insert("way".to_owned(), self.way.name().into());
        }
        row
    }
}

pub(crate) fn run(quick: bool, as_json: bool, out: &mut impl Write) -> io::Result<()> {
    let mut rows = Vec::new();
    for name in RUNTIMES {
        let runtime = runtime(name)?;
        for way in Way::ALL {
            let spread = Spread::of(back_to_back(&runtime, way)?);
            rows.push(Row {
                runtime: name,
                pace: "warm",
                way,
                spread,
            });
        }
        for (way, times) in Way::ALL.into_iter().zip(paced::measure(&runtime, quick)?) {
            rows.push(Row {
                runtime: name,
                pace: "100/s",
                way,
                spread: Spread::of(times),
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
            row.way.name(),
            row.spread.p50,
            row.spread.p99,
            row.spread.max
        )?;
    }
    writeln!(
        out,
        "warm: one choice, each update when the last was had; 100/s: {} choices, so many updates a second for each",
        paced::CHOICES
    )
}

fn back_to_back(runtime: &Runtime, way: Way) -> io::Result<Vec<Duration>> {
    let measured = runtime.spawn(async move {
        match way {
            Way::Channel => channel().await,
            Way::Actors => actors().await,
        }
    });
    runtime.block_on(measured).map_err(io::Error::other)
}

/// What is sent into a channel, as the body of an answer.
fn body(reads: UnboundedReceiver<Bytes>) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
    stream::unfold(reads, async |mut reads| {
        let read = reads.recv().await?;
        Some((Ok(read), reads))
    })
}

/// Sends one read at a time, each when the last has been had; how long each took.
async fn times(send: UnboundedSender<Bytes>, mut had: UnboundedReceiver<()>) -> Vec<Duration> {
    let read = Bytes::from_static(READ);
    let mut times = Vec::with_capacity(UPDATES);
    for nth in 0..WARM + UPDATES {
        let started = now();
        if send.send(read.clone()).is_err() || had.recv().await.is_none() {
            break;
        }
        if nth >= WARM {
            times.push(started.elapsed());
        }
    }
    times
}

async fn channel() -> Vec<Duration> {
    let (send, mut reads) = mpsc::unbounded_channel::<Bytes>();
    let (told, had) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while reads.recv().await.is_some() {
            let _gone = told.send(());
        }
    });
    times(send, had).await
}

async fn actors() -> Vec<Duration> {
    let (send, reads) = mpsc::unbounded_channel::<Bytes>();
    let (told, had) = mpsc::unbounded_channel();
    let completions = Completions::from_byte_stream(body(reads));
    tokio::spawn(async move {
        let Ok(choice) = completions.first().await else {
            return;
        };
        let mut content = choice.content();
        while let Some(Ok(_piece)) = content.next().await {
            let _gone = told.send(());
        }
    });
    times(send, had).await
}

const READ: &[u8] = b"data: {\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-4o-2024-08-06\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
