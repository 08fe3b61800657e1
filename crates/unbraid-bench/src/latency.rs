//! How long one update takes through a pipeline that is warm and idle, from the hand that writes it to the hand that
//! reads it: through the library, and through a plain task with a channel.

use std::{
    convert::Infallible,
    io::{self, Write},
    time::Duration,
};

use bytes::Bytes;
use futures::stream;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use unbraid::Completions;

use crate::table::{RUNTIMES, runtime};

const UPDATES: usize = 20_000;

/// Updates before the count begins.
const WARM: usize = 2_000;

pub(crate) fn run(out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<15} {:<10} {:>10} {:>10}",
        "runtime", "way", "p50 us", "p99 us"
    )?;
    for name in RUNTIMES {
        let runtime = runtime(name)?;
        for way in ["channel", "actors"] {
            let measured = runtime.spawn(async move {
                if way == "actors" {
                    actors().await
                } else {
                    channel().await
                }
            });
            let mut times = runtime.block_on(measured).map_err(io::Error::other)?;
            times.sort_unstable();
            let at = |share: usize| {
                let time = times.get(times.len() * share / 100).copied();
                time.unwrap_or_default().as_secs_f64() * 1e6
            };
            writeln!(
                out,
                "{name:<15} {way:<10} {:>10.2} {:>10.2}",
                at(50),
                at(99)
            )?;
        }
    }
    Ok(())
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
    let source = stream::unfold(reads, async |mut reads| {
        let read = reads.recv().await?;
        Some((Ok::<_, Infallible>(read), reads))
    });
    let completions = Completions::from_sse(source);
    tokio::spawn(async move {
        let Ok(choice) = completions.single().await else {
            return;
        };
        let mut content = choice.content();
        while let Some(Ok(_piece)) = content.next().await {
            let _gone = told.send(());
        }
    });
    times(send, had).await
}

#[expect(
    clippy::disallowed_methods,
    reason = "a benchmark wants the wall clock and never runs under paused time"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

const READ: &[u8] = b"data: {\"id\":\"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012\",\"object\":\"chat.completion.chunk\",\"created\":1730000000,\"model\":\"gpt-4o-2024-08-06\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,\"finish_reason\":null}]}\n\n";
