//! The contenders. Each one turns reads into the texts of eight consumers.

pub(crate) mod actors;
mod demux;
mod floor;
mod providers;
mod sse_core;
pub(crate) mod today;

use std::panic;

use tokio::{runtime::Runtime, sync::mpsc, task::JoinHandle};

use crate::{
    body::{Answer, MAX_CHOICES, Part},
    feed::{Feed, Reads, Tally},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contender {
    /// The source alone. Its cost is subtracted from that of the others.
    Source,
    Today,
    /// `Today` for a stream of another dialect than chat.
    TodayOf(Provider),
    SseCore,
    Demux,
    Actors,
    Memchr,
}

/// A provider whose streams are measured in its own dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    Responses,
    #[cfg(feature = "dialect-peers")]
    Anthropic,
    #[cfg(feature = "dialect-peers")]
    Gemini,
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
            Self::Today | Self::TodayOf(_) => "today",
            Self::SseCore => "sse-core",
            Self::Demux => "demux",
            Self::Actors => "actors",
            Self::Memchr => "memchr",
        }
    }

    /// How many deltas it delivers; `None` if it panics. `eventsource-stream` does so at a byte order mark, and that is not
    /// reported.
    pub(crate) fn delivered(self, runtime: &Runtime, reads: &Reads) -> Option<usize> {
        let (feed, tally) = reads.feed(true);
        let is_peer = !matches!(self, Self::Demux | Self::Actors);
        let report = is_peer.then(panic::take_hook);
        if report.is_some() {
            panic::set_hook(Box::new(|_| {}));
        }
        let answer = runtime.block_on(runtime.spawn(self.run(feed, tally)));
        if let Some(report) = report {
            panic::set_hook(report);
        }
        answer.ok().flatten().map(|answer| answer.items)
    }

    /// Reads the source to its end. Returns `None` for those that do not separate the choices.
    pub(crate) async fn run(self, feed: Feed, tally: Tally) -> Option<Answer> {
        match self {
            Self::Source => floor::source(feed, tally).await,
            Self::Memchr => floor::memchr(feed, tally).await,
            Self::Today => return Some(today::run(feed, tally).await),
            Self::TodayOf(provider) => return Some(providers::run(provider, feed, tally).await),
            Self::SseCore => return Some(sse_core::run(feed, tally).await),
            Self::Demux => return Some(demux::run(feed, tally).await),
            Self::Actors => return Some(actors::run(feed, tally).await),
        }
        None
    }
}

/// Records that a consumer has received text.
pub(crate) trait Record: Clone + Send + Sync + 'static {
    fn record(&self, text: &str, kept: &mut String);
}

impl Record for Tally {
    fn record(&self, text: &str, kept: &mut String) {
        Self::record(self, text, kept);
    }
}

/// A delta inside a handwritten demultiplexer.
#[derive(Debug)]
pub(crate) enum Item {
    Text(String),
    Arguments(String),
}

/// A handwritten demultiplexer: a channel and a task for each choice.
pub(crate) struct ManualDemux<T> {
    tally: T,
    choices: Vec<Option<(mpsc::UnboundedSender<Item>, JoinHandle<Part>)>>,
}

impl<T: Record> ManualDemux<T> {
    pub(crate) fn new(tally: T) -> Self {
        Self {
            tally,
            choices: Vec::new(),
        }
    }

    pub(crate) fn send(&mut self, choice: u32, item: Item) {
        let choice = choice as usize;
        if choice >= MAX_CHOICES {
            return;
        }
        if self.choices.len() <= choice {
            self.choices.resize_with(choice + 1, || None);
        }
        if let Some(slot) = self.choices.get_mut(choice) {
            let (sender, _) = slot.get_or_insert_with(|| {
                let (sender, receiver) = mpsc::unbounded_channel();
                (sender, tokio::spawn(consume(receiver, self.tally.clone())))
            });
            let _closed = sender.send(item);
        }
    }

    pub(crate) async fn finish(self) -> Answer {
        let mut answer = Answer::default();
        for (index, choice) in self.choices.into_iter().enumerate() {
            let Some((sender, task)) = choice else {
                continue;
            };
            drop(sender);
            answer.add(index, task.await.unwrap_or_default());
        }
        answer
    }
}

async fn consume(mut receiver: mpsc::UnboundedReceiver<Item>, tally: impl Record) -> Part {
    let mut part = Part::default();
    while let Some(item) = receiver.recv().await {
        part.items += 1;
        match item {
            Item::Text(text) => tally.record(&text, &mut part.text),
            Item::Arguments(text) => tally.record(&text, &mut part.arguments),
        }
    }
    part
}
