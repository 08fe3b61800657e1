//! Updates at the pace of a model: eight choices with a hundred evenly spaced updates per second each.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::{
    runtime::Runtime,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinSet,
};
use unbraid::Completions;

use super::{Pipeline, body};
use crate::{
    body::{BRAIDED, Numbered, numbered},
    contender::actors,
    pace::{PER_SECOND, Pace},
    stamps::Timestamps,
};

pub(super) const CHOICES: usize = BRAIDED.choices;

/// Updates of each round before the measurement starts.
const WARM_UP: usize = PER_SECOND / 10;

/// The latencies of each pipeline. The pipelines run alternately.
pub(super) fn measure(
    runtime: &Runtime,
    quick: bool,
) -> io::Result<[Vec<Duration>; Pipeline::ALL.len()]> {
    let (rounds, deltas) = if quick {
        (1, PER_SECOND + WARM_UP)
    } else {
        (4, 2 * PER_SECOND + WARM_UP)
    };
    let events = numbered(deltas, BRAIDED);
    let mut all = [const { Vec::new() }; Pipeline::ALL.len()];
    for _ in 0..rounds {
        for (pipeline, times) in Pipeline::ALL.into_iter().zip(&mut all) {
            let timestamps = Timestamps::new(deltas);
            let round = round(pipeline, events.clone(), timestamps.clone());
            runtime
                .block_on(runtime.spawn(round))
                .map_err(io::Error::other)?;
            times.extend(timestamps.times(WARM_UP)?);
        }
    }
    Ok(all)
}

async fn round(pipeline: Pipeline, events: Vec<Numbered>, timestamps: Timestamps) {
    match pipeline {
        Pipeline::Channel => channels(events, timestamps).await,
        Pipeline::Actors => through_actors(events, timestamps).await,
    }
}

/// A channel and a task for each choice. Each read is sent to its choice.
async fn channels(events: Vec<Numbered>, timestamps: Timestamps) {
    let mut tasks = JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..CHOICES {
        let (send, reads) = mpsc::unbounded_channel();
        senders.push(send);
        tasks.spawn(consume(reads, timestamps.clone()));
    }
    let mut pace = Pace::start();
    for event in events {
        let (Some(number), Some(send)) = (event.number, senders.get(event.choice)) else {
            continue;
        };
        pace.next().await;
        timestamps.written(number);
        let _closed = send.send((number, event.bytes));
    }
    drop(senders);
    while tasks.join_next().await.is_some() {}
}

async fn consume(mut reads: UnboundedReceiver<(usize, Bytes)>, timestamps: Timestamps) {
    while let Some((number, _read)) = reads.recv().await {
        timestamps.received(number);
    }
}

async fn through_actors(events: Vec<Numbered>, timestamps: Timestamps) {
    let (send, reads) = mpsc::unbounded_channel();
    let completions = Completions::from_byte_stream(body(reads));
    let read = tokio::spawn(actors::read(completions, timestamps.clone()));
    write(events, send, timestamps).await;
    let _answer = read.await;
}

async fn write(events: Vec<Numbered>, send: UnboundedSender<Bytes>, timestamps: Timestamps) {
    let mut pace = Pace::start();
    for event in events {
        if let Some(number) = event.number {
            pace.next().await;
            timestamps.written(number);
        }
        let _closed = send.send(event.bytes);
    }
}
