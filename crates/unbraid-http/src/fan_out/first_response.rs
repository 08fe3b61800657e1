//! Waits for the first response of a fan-out.

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use unbraid::{Completions, StreamError};

use crate::error::HttpError;

/// At most one message for each request. A request that is cancelled before its response begins drops its sender.
type Message = (u32, Result<(), HttpError>);

/// Creates the report of each request.
pub(super) struct Reports(UnboundedSender<Message>);

/// Reports whether the response to one request has begun.
pub(super) struct RequestReport {
    index: u32,
    sender: UnboundedSender<Message>,
}

/// Receives the reports.
pub(super) struct FirstResponse(UnboundedReceiver<Message>);

pub(super) fn channel() -> (Reports, FirstResponse) {
    let (sender, receiver) = unbounded_channel();
    (Reports(sender), FirstResponse(receiver))
}

impl Reports {
    pub(super) fn of(&self, index: u32) -> RequestReport {
        RequestReport {
            index,
            sender: self.0.clone(),
        }
    }
}

impl RequestReport {
    /// Reports that the response has begun, or the error of the last attempt.
    pub(super) fn send(&self, error: Option<&HttpError>) {
        let outcome = error.map_or(Ok(()), |error| Err(error.clone()));
        // `Client::fan_out` does not wait for a response, and drops the receiver.
        let _unreceived = self.sender.send((self.index, outcome));
    }
}

impl FirstResponse {
    /// Waits for the first response. If every request failed, returns the error of one of them: the server's refusal with the
    /// lowest index, because it has a message, else the error with the lowest index.
    pub(super) async fn wait(mut self, completions: &Completions) -> Result<(), HttpError> {
        let mut errors = Vec::new();
        while let Some((index, outcome)) = self.0.recv().await {
            match outcome {
                Ok(()) => return Ok(()),
                Err(error) => errors.push((error.status_error().is_none(), index, error)),
            }
        }
        errors.sort_by_key(|(no_status, index, _)| (*no_status, *index));
        match errors.into_iter().next() {
            Some((.., error)) => Err(error),
            None => check_unsent(completions).await,
        }
    }
}

/// Every request was dropped before its response began: the completion ended, or there were no requests.
async fn check_unsent(completions: &Completions) -> Result<(), HttpError> {
    match completions.closed().await {
        Err(StreamError::TimedOut(timed_out)) => Err(HttpError::TimedOut(timed_out)),
        _ => Ok(()),
    }
}
