//! The contenders, each from reads to what eight consumers have in their hands.

pub(crate) mod actors;
mod demux;
mod floor;
mod sse_core;
mod today;

use tokio::{sync::mpsc, task::JoinHandle};

use crate::{
    body::{Answer, Part},
    feed::{Feed, Tally},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    /// The source alone; its cost is taken off every other.
    Source,
    Today,
    SseCore,
    Demux,
    Actors,
    Memchr,
}

impl Contender {
    pub(crate) const ALL: [Self; 6] = [
        Self::Source,
        Self::Today,
        Self::SseCore,
        Self::Demux,
        Self::Actors,
        Self::Memchr,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Today => "today",
            Self::SseCore => "sse-core",
            Self::Demux => "demux",
            Self::Actors => "actors",
            Self::Memchr => "memchr",
        }
    }

    /// Reads the source to its end; `None` from those that take nothing apart.
    pub(crate) async fn run(self, feed: Feed, tally: Tally) -> Option<Answer> {
        match self {
            Self::Source => floor::source(feed, tally).await,
            Self::Memchr => floor::memchr(feed, tally).await,
            Self::Today => return Some(today::run(feed, tally).await),
            Self::SseCore => return Some(sse_core::run(feed, tally).await),
            Self::Demux => return Some(demux::run(feed, tally).await),
            Self::Actors => return Some(actors::run(feed, tally).await),
        }
        None
    }
}

/// Where a consumer tells that it has a piece of text in its hand.
pub(crate) trait Take: Clone + Send + Sync + 'static {
    fn take(&self, piece: &str, kept: &mut String);
}

impl Take for Tally {
    fn take(&self, piece: &str, kept: &mut String) {
        Self::take(self, piece, kept);
    }
}

/// One piece, on its way through a hand-written demultiplexer.
#[derive(Debug)]
pub(crate) enum Item {
    Text(String),
    Arguments(String),
}

/// A hand-written demultiplexer: a channel and a task for each choice.
pub(crate) struct Hand<T> {
    tally: T,
    choices: Vec<Option<(mpsc::UnboundedSender<Item>, JoinHandle<Part>)>>,
}

impl<T: Take> Hand<T> {
    pub(crate) fn new(tally: T) -> Self {
        Self {
            tally,
            choices: Vec::new(),
        }
    }

    pub(crate) fn give(&mut self, choice: u32, item: Item) {
        let choice = choice as usize;
        if self.choices.len() <= choice {
            self.choices.resize_with(choice + 1, || None);
        }
        if let Some(slot) = self.choices.get_mut(choice) {
            let (sender, _) = slot.get_or_insert_with(|| {
                let (sender, receiver) = mpsc::unbounded_channel();
                (sender, tokio::spawn(consume(receiver, self.tally.clone())))
            });
            let _gone = sender.send(item);
        }
    }

    pub(crate) async fn finish(self) -> Answer {
        let mut answer = Answer::default();
        for (at, choice) in self.choices.into_iter().enumerate() {
            let Some((sender, task)) = choice else {
                continue;
            };
            drop(sender);
            answer.add(at, task.await.unwrap_or_default());
        }
        answer
    }
}

async fn consume(mut receiver: mpsc::UnboundedReceiver<Item>, tally: impl Take) -> Part {
    let mut part = Part::default();
    while let Some(item) = receiver.recv().await {
        part.items += 1;
        match item {
            Item::Text(text) => tally.take(&text, &mut part.text),
            Item::Arguments(text) => tally.take(&text, &mut part.arguments),
        }
    }
    part
}
