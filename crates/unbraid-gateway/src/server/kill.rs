//! Lets a reader that stalls be disconnected although nothing polls it: over HTTP/2 its stream is reset, over HTTP/1.1
//! its connection is closed.

use std::future::Future;

use futures::{
    FutureExt,
    future::{Either, select},
};
use hyper::rt::Executor;
use tokio_util::sync::CancellationToken;

tokio::task_local! {
    static KILL: CancellationToken;
}

/// The switch of the connection or HTTP/2 stream that runs this task; `None` in a server that is not ours.
pub(crate) fn current() -> Option<CancellationToken> {
    KILL.try_with(CancellationToken::clone).ok()
}

/// Ends the connection that runs this task, and its HTTP/2 streams.
pub(super) fn switch_off() {
    if let Some(switch) = current() {
        switch.cancel();
    }
}

/// Runs a future with a switch that ends it. The switch of a connection also ends its streams.
pub(super) fn with_switch<F: Future + Unpin>(future: F) -> impl Future<Output = Option<F::Output>> {
    with_token(CancellationToken::new(), future)
}

/// Not an async function, which would hold the future several times.
fn with_token<F: Future + Unpin>(
    token: CancellationToken,
    future: F,
) -> impl Future<Output = Option<F::Output>> {
    let killed = Box::pin(token.clone().cancelled_owned());
    let either = select(future, killed).map(|either| match either {
        Either::Left((output, _)) => Some(output),
        Either::Right(((), _)) => None,
    });
    KILL.scope(token, either)
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
        let token = current().map_or_else(CancellationToken::new, |switch| switch.child_token());
        tokio::spawn(with_token(token, Box::pin(future)));
    }
}
