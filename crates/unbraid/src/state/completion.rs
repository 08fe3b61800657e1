//! The log of the stream itself: which choices there are, the stream's own events, and how it closed.

use std::sync::Arc;

use unbraid_core::{Metadata, Prompt, Sequenced, StreamError, Usage, Warning};

use crate::{
    state::choice_log::Log,
    state::merged::Joined,
    sync::shared::{Settle, Watched},
};

/// What the root handles read.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// In order of first appearance.
    pub(crate) choices: Vec<Log>,
    pub(crate) events: Vec<Sequenced>,
    pub(crate) metadata: Metadata,
    pub(crate) warnings: Vec<Warning>,
    /// As reported, once the stream has closed.
    pub(crate) usage: Usage,
    /// With what was missing counted, once somebody asked.
    #[cfg(feature = "tokens")]
    pub(crate) estimated: Arc<tokio::sync::OnceCell<Usage>>,
    /// What was asked, if the caller told.
    #[cfg_attr(
        not(feature = "tokens"),
        expect(dead_code, reason = "only counting needs it")
    )]
    pub(crate) prompt: Arc<Prompt>,
    /// Where several sources are joined: what is known of each.
    pub(crate) joined: Option<Box<Joined>>,
    pub(crate) closed: Option<Closed>,
}

/// How a stream closed.
#[derive(Debug, Clone)]
pub(crate) struct Closed {
    pub(crate) result: Result<(), StreamError>,
    /// Whether the error ended a choice, kept one from coming, or no choice had come: only then do the choices tell it.
    pub(crate) told_by_choices: bool,
    /// Events that were read.
    pub(crate) events: u64,
}

impl Settle for Listing {
    /// Nothing is ever put off.
    fn settle(&mut self) {}
}

pub(crate) type Board = Watched<Listing>;

/// What a reader has to tell after a read.
#[derive(Debug)]
pub(crate) struct News<'r> {
    pub(crate) choices: Vec<Log>,
    pub(crate) events: Vec<Sequenced>,
    pub(crate) metadata: &'r Metadata,
    pub(crate) warnings: Vec<Warning>,
}

/// A reader's hold on the board; dropped, it closes its stream as lost.
#[derive(Debug)]
pub(crate) struct BoardWriter {
    board: Arc<Board>,
    /// Which source it reads, if several are joined.
    part: Option<usize>,
}

impl BoardWriter {
    pub(crate) fn new(board: &Arc<Board>) -> Self {
        Self {
            board: Arc::clone(board),
            part: None,
        }
    }

    pub(crate) fn of_part(board: &Arc<Board>, number: usize) -> Self {
        Self {
            board: Arc::clone(board),
            part: Some(number),
        }
    }

    /// Whether the metadata are on the board as they are.
    pub(crate) fn knows(&self, metadata: &Metadata) -> bool {
        self.board.read(|listing| match self.part {
            None => listing.metadata == *metadata,
            Some(number) => listing
                .part(number)
                .is_some_and(|part| part.metadata == *metadata),
        })
    }

    pub(crate) fn tell(&self, news: News<'_>) {
        self.board.change(|listing| match self.part {
            None => {
                listing.choices.extend(news.choices);
                listing.events.extend(news.events);
                listing.metadata = news.metadata.clone();
                listing.warnings = news.warnings;
            }
            Some(number) => listing.tell_part(number, news),
        });
    }

    /// The first end of a stream wins.
    pub(crate) fn close(&self, closed: Closed, usage: Usage) {
        self.board.change(|listing| match self.part {
            None if listing.closed.is_some() => {}
            None => {
                listing.usage = usage;
                listing.closed = Some(closed);
            }
            Some(number) => listing.close_part(number, closed, usage),
        });
    }

    /// Nothing was read, and nothing will be.
    pub(crate) fn give_up(&self, error: StreamError) {
        let closed = Closed {
            result: Err(error),
            told_by_choices: true,
            events: 0,
        };
        self.close(closed, Usage::default());
    }
}

impl Drop for BoardWriter {
    fn drop(&mut self) {
        self.give_up(StreamError::Lost);
    }
}
