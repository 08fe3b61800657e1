//! The log of the stream itself: which choices there are, the stream's own events, and how it closed.

use std::sync::Arc;

use unbraid_core::{Metadata, Prompt, Stamped, StreamError, Usage, Warning};

use crate::{log::Log, watched::Watched};

/// What the root handles read.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// In order of first appearance.
    pub(crate) choices: Vec<Arc<Log>>,
    pub(crate) events: Vec<Stamped>,
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

pub(crate) type Board = Watched<Listing>;

/// The one who writes the board; dropped, it closes the stream as lost.
#[derive(Debug)]
pub(crate) struct BoardWriter(pub(crate) Arc<Board>);

impl BoardWriter {
    /// The first end of a stream wins.
    pub(crate) fn close(&self, closed: Closed) {
        self.0.change(|listing| {
            listing.closed.get_or_insert(closed);
        });
    }
}

impl Drop for BoardWriter {
    fn drop(&mut self) {
        self.close(Closed {
            result: Err(StreamError::Lost),
            told_by_choices: true,
            events: 0,
        });
    }
}
