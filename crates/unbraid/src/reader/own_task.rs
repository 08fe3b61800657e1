//! The task in which an actor does its work.

use std::future::Future;

use tokio::task::JoinHandle;

/// A task that belongs to an actor. Dropping this, as a kill of the actor does, ends the task.
///
/// The work could be done in the actor's own task, but each wake-up would pass through the futures of ractor and its ports for
/// messages, which are many cache lines (docs/design/020).
#[derive(Debug)]
pub(super) struct OwnTask(JoinHandle<()>);

impl OwnTask {
    pub(super) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(work))
    }

    /// Waits for its end. It also ends if it is lost with its runtime.
    pub(super) async fn join(mut self) {
        let _ended = (&mut self.0).await;
    }
}

impl Drop for OwnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}
