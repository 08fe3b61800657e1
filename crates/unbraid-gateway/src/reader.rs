//! The body of a response that follows a stream: a cursor over the log, pings, and the reasons to close it.

pub(crate) mod stalls;

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use unbraid_log::LogError;

use self::stalls::{Progress, Stalls};
use crate::{
    gateway::Gateway,
    metrics::{DisconnectReason, Metrics, ViewKind},
    streams::ReaderPermit,
    sync::wake_gate::WakeGate,
    timer::Timer,
    view::{PING, ViewReader},
};

/// What a reader needs beside its view.
pub(crate) struct ReaderArgs {
    pub(crate) permit: ReaderPermit,
    pub(crate) kind: ViewKind,
    /// Whether the reader continues after a cursor.
    pub(crate) resumed: bool,
    /// Zero for no pings.
    pub(crate) ping: Duration,
    /// After how long the view closes; `None` for the body of a POST.
    pub(crate) max_age: Option<Duration>,
    pub(crate) drain: CancellationToken,
    pub(crate) stalls: Stalls,
    pub(crate) metrics: Metrics,
    pub(crate) gateway: Gateway,
}

/// The body of one response. Dropping it disconnects the reader.
// What a delta needs comes first: see docs/design/020.
#[repr(C)]
pub(crate) struct ReaderBody {
    is_over: bool,
    /// Whether nothing was written. A view that is opened during a drain has one frame of what is ready: over HTTP/2 its client
    /// may resume at this gateway again, and would else get nowhere.
    is_new: bool,
    /// Why the view closes before its end.
    closed: Option<DisconnectReason>,
    kind: ViewKind,
    closes_at: Option<Instant>,
    /// Ready when the gateway drains; `None` for the body of a POST, which continues.
    drain: Option<(WakeGate, Pin<Box<WaitForCancellationFutureOwned>>)>,
    permit: ReaderPermit,
    metrics: Metrics,
    last_write: Instant,
    progress: Progress,
    view: ViewReader,
    ping: Option<Duration>,
    timer: Timer,
    /// The generation that is read ends with the gateway.
    _gateway: Gateway,
}

impl ReaderBody {
    pub(crate) fn new(view: ViewReader, args: ReaderArgs) -> Self {
        let now = Instant::now();
        args.metrics.reader_connected(args.kind, args.resumed);
        let is_post = args.kind == ViewKind::Post;
        Self {
            view,
            permit: args.permit,
            kind: args.kind,
            metrics: args.metrics,
            ping: Some(args.ping).filter(|ping| !ping.is_zero()),
            last_write: now,
            closes_at: args.max_age.and_then(|age| now.checked_add(age)),
            drain: (!is_post)
                .then(|| (WakeGate::default(), Box::pin(args.drain.cancelled_owned()))),
            timer: Timer::default(),
            progress: args.stalls.progress(),
            closed: None,
            is_over: false,
            is_new: true,
            _gateway: args.gateway,
        }
    }

    fn close(&mut self, reason: DisconnectReason) -> Poll<Option<Result<Frame<Bytes>, LogError>>> {
        self.closed = Some(reason);
        self.is_over = true;
        Poll::Ready(None)
    }

    fn is_draining(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((gate, drain)) = &mut self.drain else {
            return false;
        };
        gate.poll(cx, |cx| drain.as_mut().poll(cx)).is_ready()
    }

    fn write(
        &mut self,
        bytes: Bytes,
        now: Instant,
    ) -> Poll<Option<Result<Frame<Bytes>, LogError>>> {
        self.is_new = false;
        self.last_write = now;
        self.progress.has_written(now);
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    /// Nothing is ready: waits for the next ping and for the view's age.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, LogError>>> {
        let mut now = Instant::now();
        loop {
            let ping_at = self.ping.and_then(|ping| self.last_write.checked_add(ping));
            let next = ping_at.into_iter().chain(self.closes_at).min();
            let Some(next) = next else {
                return Poll::Pending;
            };
            ready!(self.timer.poll_until(cx, next, now));
            now = Instant::now();
            if self.closes_at.is_some_and(|at| at <= now) {
                return self.close(DisconnectReason::Age);
            }
            if ping_at.is_some_and(|at| at <= now) {
                return self.write(Bytes::from_static(PING), now);
            }
        }
    }
}

impl Body for ReaderBody {
    type Data = Bytes;
    type Error = LogError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, LogError>>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        // A client that resumes gets a whole event again, so half of one would be sent for nothing.
        let closes = this.view.is_between_events();
        let drains = closes && this.is_draining(cx);
        if drains && !this.is_new {
            return this.close(DisconnectReason::Drain);
        }
        // Also for a view that is always ready, and never reaches its timer.
        if closes && this.closes_at.is_some_and(|at| at <= Instant::now()) {
            return this.close(DisconnectReason::Age);
        }
        match this.view.poll_frame(cx) {
            Poll::Ready(Some(Ok(bytes))) => {
                let now = Instant::now();
                let since = this.permit.since_received(now);
                // What is older than the last write was delivered with it, or before this reader came; the rest is the gateway's own.
                // The body of a POST begins with its generation, whose first read may be older than this reader.
                let begins = this.is_new && this.kind == ViewKind::Post;
                let is_new = |since: &Duration| begins || *since < now - this.last_write;
                if let Some(since) = since.filter(is_new) {
                    this.metrics.delivered(since);
                }
                this.write(bytes, now)
            }
            Poll::Ready(Some(Err(error))) => {
                this.is_over = true;
                Poll::Ready(Some(Err(error)))
            }
            Poll::Ready(None) => {
                this.is_over = true;
                Poll::Ready(None)
            }
            Poll::Pending if drains => this.close(DisconnectReason::Drain),
            Poll::Pending => {
                this.progress.waits();
                this.poll_timer(cx)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}

impl Drop for ReaderBody {
    fn drop(&mut self) {
        let reason = match self.closed {
            Some(reason) => Some(reason),
            None if self.is_over => None,
            None if self.progress.has_stalled() => Some(DisconnectReason::Slow),
            None => Some(DisconnectReason::Client),
        };
        tracing::debug!(cursor = self.view.cursor().0, ?reason, "a reader left");
        self.metrics.reader_left(self.kind, reason);
    }
}
