//! Lets a reader that stalls be disconnected although nothing polls it: over HTTP/2 its stream is reset, over HTTP/1.1
//! its connection is closed.

use std::future::Future;

use hyper::rt::Executor;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    static KILL: CancellationToken;
}

/// The switch of the connection or HTTP/2 stream that runs this task; `None` in a server that is not ours.
pub(crate) fn current() -> Option<CancellationToken> {
    KILL.try_with(CancellationToken::clone).ok()
}

/// Runs a future with a switch that ends it.
pub(super) async fn with_switch<F: Future>(future: F) -> Option<F::Output> {
    let token = CancellationToken::new();
    let killed = token.clone();
    KILL.scope(token, async move {
        tokio::select! {
            output = future => Some(output),
            () = killed.cancelled() => None,
        }
    })
    .await
}

/// Spawns the streams of HTTP/2 connections, each with a switch of its own.
#[derive(Debug, Clone)]
pub(super) struct StreamExecutor;

impl<F> Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, future: F) {
        // Dropping a stream's future resets the stream, if its response has not ended.
        tokio::spawn(with_switch(future));
    }
}
