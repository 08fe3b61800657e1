//! What all readers of a stream share: its journal, its choices, and the cuts of its chunks.

use std::sync::Arc;

use unbraid_core::ChoiceIndex;
use unbraid_log::{End, Journal, Meta, Seq, StreamEnd};

use super::{Target, ViewError, ViewReader, ViewRequest};

/// One stream as this gateway reads it. There is one for each stream; all its readers share it.
#[derive(Debug)]
pub(crate) struct StreamView {
    journal: Journal,
    meta: Arc<Meta>,
}

/// The result of opening a view.
#[derive(Debug)]
pub(crate) enum Opened {
    /// 200: the events.
    Events(ViewReader),
    /// 204: the cursor is that of the view's last event.
    Complete,
}

/// The state of a stream, for its status object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamStatus {
    /// The number of the last event; that of the end once there is one.
    pub(crate) seq: Seq,
    pub(crate) end: Option<StreamEnd>,
    /// All choices that were requested or have appeared, by index.
    pub(crate) choices: Vec<ChoiceStatus>,
}

/// The state of one choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChoiceStatus {
    pub(crate) index: ChoiceIndex,
    /// The number of its last event; 0 if it has not appeared.
    pub(crate) seq: Seq,
    /// How it ended. The choices that are open at the end of the stream end with it.
    pub(crate) end: Option<End>,
    pub(crate) finish_reason: Option<String>,
}

impl StreamView {
    /// The view of a journal. Whoever fills the journal keeps it in step with the log.
    pub(crate) fn new(journal: Journal, meta: Arc<Meta>) -> Arc<Self> {
        Arc::new(Self { journal, meta })
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn meta(&self) -> &Arc<Meta> {
        &self.meta
    }

    /// Opens a view as events.
    pub(crate) fn open(self: &Arc<Self>, request: &ViewRequest) -> Result<Opened, ViewError> {
        let _ = request;
        unimplemented!()
    }

    /// The message so far: `chat.completion` or `text_completion`. `with_state` adds the field `unbraid`, which a GET has and
    /// the answer to a POST has not.
    ///
    /// It decodes all events, which takes milliseconds for an ordinary answer.
    pub(crate) fn json(&self, target: Target, with_state: bool) -> Result<String, ViewError> {
        let _ = (target, with_state);
        unimplemented!()
    }

    /// The usage so far, as JSON text.
    pub(crate) fn usage(&self) -> Option<String> {
        unimplemented!()
    }

    pub(crate) fn status(&self) -> StreamStatus {
        unimplemented!()
    }
}
