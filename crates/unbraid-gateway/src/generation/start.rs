//! What a generation begins with: the request, its log, and the upstream's answer.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio::sync::mpsc;
use unbraid_core::ChoiceIndex;

use super::{GenerationLog, PartSource};
use crate::{
    fan_out::DroppedChoices,
    metrics::Metrics,
    streams::{Command, Registration},
};

/// The upstream's answer to a request: what a generation reads.
pub(crate) struct Started {
    pub(crate) parts: Vec<StartedPart>,
    /// Sends the request for one further choice, if the first body turns out to have one choice only.
    pub(crate) singles: Option<Singles>,
}

impl Started {
    /// Whether each choice has a request of its own. More may follow from the first body.
    pub(crate) fn is_fan_out(&self) -> bool {
        self.parts.iter().any(|part| part.choice.is_some())
    }
}

pub(crate) struct StartedPart {
    pub(crate) source: PartSource,
    /// The choice of the body; `None` if it has all of them.
    pub(crate) choice: Option<ChoiceIndex>,
}

/// Requests for single choices that may become necessary.
pub(crate) struct Singles {
    pub(crate) n: u32,
    /// The number of prompts. Of several, an answer with one choice each only shows what the model gives: its choices have other
    /// indices than they would have with `n`, so nothing can be added to them.
    pub(crate) prompts: usize,
    /// Requests a choice. `None` once none is missing: it keeps the body of the request.
    pub(crate) request: Option<Box<dyn FnMut(ChoiceIndex) -> PartSource + Send>>,
    /// Called once it is known that the model gives one choice only.
    pub(crate) remember: Box<dyn FnOnce() + Send>,
}

/// Why a request has no answer: the error object of the stream's status, as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RefusedError(pub(crate) String);

/// A request whose answer has not begun.
pub(crate) type Start = BoxFuture<'static, Result<Started, RefusedError>>;

/// What a generation needs.
pub(crate) struct GenerationArgs {
    pub(crate) start: Start,
    pub(crate) log: GenerationLog,
    /// Whether gateways in other processes may have readers.
    pub(crate) is_shared: bool,
    pub(crate) registration: Registration,
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    pub(crate) endpoint: &'static str,
    /// When the stream was created, in Unix seconds.
    pub(crate) created: u64,
    /// The model that was requested.
    pub(crate) model: Option<String>,
    /// The number of choices that were requested.
    pub(crate) expected: u32,
    /// Choices that are cancelled before the answer has begun.
    pub(crate) dropped: Arc<DroppedChoices>,
    pub(crate) orphan_after: Option<Duration>,
    /// Whether the client asked for usage in the stream.
    pub(crate) wants_usage: bool,
    /// Called if the request was refused, before the log is sealed.
    pub(crate) on_refused: Option<BoxFuture<'static, ()>>,
    pub(crate) metrics: Metrics,
}
