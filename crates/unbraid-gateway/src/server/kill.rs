//! Lets a reader that stalls be disconnected although nothing polls it: over HTTP/2 its stream is reset, over HTTP/1.1
//! its connection is closed.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::rt::Executor;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::sync::wake_gate::WakeGate;

tokio::task_local! {
    static KILL: CancellationToken;
}

/// The switch of the connection or HTTP/2 stream that runs this task; `None` in a server that is not ours, and before a connection
/// has sent its first bytes.
pub(crate) fn current() -> Option<CancellationToken> {
    KILL.try_with(CancellationToken::clone).ok()
}

/// Ends the HTTP/2 streams of the connection that runs this task, and shows its bodies that their reader was slow.
pub(super) fn switch_off() {
    if let Some(switch) = current() {
        switch.cancel();
    }
}

/// Runs a connection with a switch, which ends its streams. The connection itself ends with the write that has turned it off.
pub(super) fn with_switch<F: Future>(connection: F) -> impl Future<Output = F::Output> {
    KILL.scope(CancellationToken::new(), connection)
}

/// Runs a stream with a switch that ends it.
fn stream_with_token<F: Future + Unpin>(
    token: CancellationToken,
    future: F,
) -> impl Future<Output = Option<F::Output>> {
    let switched = Switched {
        future,
        switched_off: Box::pin(token.clone().cancelled_owned()),
        gate: WakeGate::default(),
    };
    KILL.scope(token, switched)
}

struct Switched<F> {
    future: F,
    switched_off: Pin<Box<WaitForCancellationFutureOwned>>,
    gate: WakeGate,
}

impl<F: Future + Unpin> Future for Switched<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Poll::Ready(output) = Pin::new(&mut this.future).poll(cx) {
            return Poll::Ready(Some(output));
        }
        let switched_off = this.switched_off.as_mut();
        this.gate
            .poll(cx, |cx| switched_off.poll(cx))
            .map(|()| None)
    }
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
        tokio::spawn(stream_with_token(token, Box::pin(future)));
    }
}
