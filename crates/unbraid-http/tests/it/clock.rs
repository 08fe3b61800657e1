//! A clock that stands still.

use std::time::Duration;

/// Stops the clock until it is dropped, so that no timer influences a test unless the test moves the clock.
///
/// A paused clock advances by itself while the runtime is idle, as it is while it waits for a socket, unless a blocking task
/// runs.
pub(crate) struct StoppedClock {
    _running: std::sync::mpsc::Sender<()>,
}

impl StoppedClock {
    pub(crate) fn new() -> Self {
        let (running, stopped) = std::sync::mpsc::channel::<()>();
        tokio::time::pause();
        tokio::task::spawn_blocking(move || stopped.recv().is_err());
        Self { _running: running }
    }

    /// Moves the clock.
    pub(crate) async fn advance(&self, by: Duration) {
        tokio::time::advance(by).await;
    }

    /// Waits for something that needs sockets, and no time.
    pub(crate) async fn wait_until(&self, what: &str, mut is_true: impl FnMut() -> bool) {
        #[expect(
            clippy::disallowed_methods,
            reason = "the clock of the library stands still"
        )]
        let started = std::time::Instant::now();
        while !is_true() {
            assert!(started.elapsed() < Duration::from_secs(30), "{what}");
            tokio::task::yield_now().await;
        }
    }
}
