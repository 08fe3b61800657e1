//! Which requests of a fan-out were answered, for the one who waits for the first answer.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use unbraid::{Completions, StreamError};

use crate::error::HttpError;

/// One message for each request at most. A request that is cancelled before its answer begins drops its sender.
type Message = (u32, Result<(), HttpError>);

/// Where the requests report.
pub(super) struct Starts(UnboundedSender<Message>);

/// Where one request reports.
pub(super) struct Start {
    index: u32,
    reports: UnboundedSender<Message>,
}

/// What the requests reported.
pub(super) struct Waiting(UnboundedReceiver<Message>);

pub(super) fn channel() -> (Starts, Waiting) {
    let (sender, receiver) = unbounded_channel();
    (Starts(sender), Waiting(receiver))
}

impl Starts {
    pub(super) fn of(&self, index: u32) -> Start {
        Start {
            index,
            reports: self.0.clone(),
        }
    }
}

impl Start {
    /// The answer has begun, or the request has failed for good.
    pub(super) fn report(&self, failed: Option<&HttpError>) {
        let outcome = failed.map_or(Ok(()), |error| Err(error.clone()));
        // `fan_out` waits for no answer, and drops the receiver.
        let _unread = self.reports.send((self.index, outcome));
    }
}

impl Waiting {
    /// Waits for the first answer. If there is none, the error is that of a request: a refusal by the server if there was
    /// one, because it has a message, and of several the one of the lowest index.
    pub(super) async fn first(mut self, completions: &Completions) -> Result<(), HttpError> {
        let mut errors = Vec::new();
        while let Some((index, outcome)) = self.0.recv().await {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => errors.push((error.status_error().is_none(), index, error)),
            }
        }
        errors.sort_by_key(|(unanswered, index, _)| (*unanswered, *index));
        match errors.into_iter().next() {
            Some((.., error)) => Err(error),
            None => unsent(completions).await,
        }
    }
}

/// Every request was dropped before its answer began: the whole completion ended, or there were none.
async fn unsent(completions: &Completions) -> Result<(), HttpError> {
    match completions.closed().await {
        Err(StreamError::TimedOut(passed)) => Err(HttpError::TimedOut(passed)),
        _ => Ok(()),
    }
}
