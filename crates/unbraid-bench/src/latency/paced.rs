//! Updates at a model's pace: eight choices, a hundred updates a second for each, evenly spaced.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::{
    runtime::Runtime,
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinSet,
};
use unbraid::Completions;

use super::{Way, body};
use crate::{
    body::{BRAIDED, Numbered, numbered},
    contender::actors,
    pace::{PER_SECOND, Pace},
    stamps::Stamps,
};

pub(super) const CHOICES: usize = BRAIDED.choices;

/// Updates of each round before the count begins.
const WARM: usize = PER_SECOND / 10;

/// How long each update took, for each way; the ways take turns.
pub(super) fn measure(
    runtime: &Runtime,
    quick: bool,
) -> io::Result<[Vec<Duration>; Way::ALL.len()]> {
    let (rounds, pieces) = if quick {
        (1, PER_SECOND + WARM)
    } else {
        (4, 2 * PER_SECOND + WARM)
    };
    let events = numbered(pieces, BRAIDED);
    let mut all = [const { Vec::new() }; Way::ALL.len()];
    for _ in 0..rounds {
        for (way, times) in Way::ALL.into_iter().zip(&mut all) {
            let stamps = Stamps::new(pieces);
            let round = round(way, events.clone(), stamps.clone());
            runtime
                .block_on(runtime.spawn(round))
                .map_err(io::Error::other)?;
            times.extend(stamps.times(WARM)?);
        }
    }
    Ok(all)
}

async fn round(way: Way, events: Vec<Numbered>, stamps: Stamps) {
    match way {
        Way::Channel => channels(events, stamps).await,
        Way::Actors => through_actors(events, stamps).await,
    }
}

/// A channel and a task for each choice, each read sent to whom it is for.
async fn channels(events: Vec<Numbered>, stamps: Stamps) {
    let mut tasks = JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..CHOICES {
        let (send, reads) = mpsc::unbounded_channel();
        senders.push(send);
        tasks.spawn(consume(reads, stamps.clone()));
    }
    let mut pace = Pace::begin();
    for event in events {
        let (Some(number), Some(send)) = (event.number, senders.get(event.choice)) else {
            continue;
        };
        pace.next().await;
        stamps.written(number);
        let _gone = send.send((number, event.bytes));
    }
    drop(senders);
    while tasks.join_next().await.is_some() {}
}

async fn consume(mut reads: UnboundedReceiver<(usize, Bytes)>, stamps: Stamps) {
    while let Some((number, _read)) = reads.recv().await {
        stamps.had(number);
    }
}

async fn through_actors(events: Vec<Numbered>, stamps: Stamps) {
    let (send, reads) = mpsc::unbounded_channel();
    let completions = Completions::from_byte_stream(body(reads));
    let read = tokio::spawn(actors::read(completions, stamps.clone()));
    write(events, send, stamps).await;
    let _answer = read.await;
}

async fn write(events: Vec<Numbered>, send: UnboundedSender<Bytes>, stamps: Stamps) {
    let mut pace = Pace::begin();
    for event in events {
        if let Some(number) = event.number {
            pace.next().await;
            stamps.written(number);
        }
        let _gone = send.send(event.bytes);
    }
}
