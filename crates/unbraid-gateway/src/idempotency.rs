//! Requests with an idempotency key whose answer has not begun: the others with the same key wait for it here.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::HeaderMap;
use tokio::sync::watch;
use unbraid_log::StreamId;

use crate::{api_error::ApiError, fan_out::BufferedAnswer};

/// The result of a request.
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    /// The stream can be read. The headers are those of the upstream's response.
    Opened(HeaderMap),
    /// There is no stream, and the key is free again.
    Whole(BufferedAnswer),
    Failed(ApiError),
    /// Another gateway holds the key: this one was silent for too long.
    Lost,
}

/// The requests that wait for their answers, by the id of the stream that each would open.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingRequests(Arc<Mutex<Table>>);

type Table = HashMap<StreamId, watch::Receiver<Option<Outcome>>>;

/// A request that was entered. Dropping it without a result is a failure.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    requests: PendingRequests,
    id: StreamId,
    result: watch::Sender<Option<Outcome>>,
}

impl PendingRequests {
    /// Enters a request, before it claims its key.
    pub(crate) fn enter(&self, id: &StreamId) -> PendingRequest {
        let (result, receiver) = watch::channel(None);
        self.table().insert(id.clone(), receiver);
        PendingRequest {
            requests: self.clone(),
            id: id.clone(),
            result,
        }
    }

    /// Waits for the result of a request; `None` if none with this id waits in this gateway.
    pub(crate) async fn wait(&self, id: &StreamId) -> Option<Outcome> {
        let mut receiver = self.table().get(id).cloned()?;
        let result = receiver.wait_for(Option::is_some).await;
        Some(match result {
            Ok(outcome) => outcome
                .clone()
                .unwrap_or(Outcome::Failed(ApiError::INTERNAL)),
            Err(_) => Outcome::Failed(ApiError::INTERNAL),
        })
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> usize {
        self.table().len()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingRequest {
    /// Gives the result to those who wait for it; returns whether anyone does. Who comes later finds the result in the log.
    pub(crate) fn finish(self, outcome: Outcome) -> bool {
        // First, so that nobody begins to wait after they are counted.
        self.requests.table().remove(&self.id);
        let has_waiters = self.result.receiver_count() > 0;
        self.result.send_replace(Some(outcome));
        has_waiters
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.requests.table().remove(&self.id);
    }
}
