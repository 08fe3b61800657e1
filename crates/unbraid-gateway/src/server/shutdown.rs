//! How a connection ends once the gateway drains.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use tokio::sync::watch;

use super::{activity::Activity, guarded_io::Deadline};
use crate::{
    limits::{CLOSE_GRACE, GOAWAY_DELAY, GOAWAY_TIMEOUT, LAST_WRITES},
    sync::wake_gate::WakeGate,
};

/// Serves a connection to its end. Once the gateway drains, that is the end of the current requests.
///
/// Every delta passes through it, and what it points to has left the caches by then. So it contains the connection of HTTP/1.1,
/// which has one stream; that of HTTP/2 is larger, and lies in a box.
pub(super) struct Served<C, F> {
    connection: C,
    shut_down: F,
    shutdown: Shutdown,
    /// Ready when the gateway drains; `None` once it does.
    drained: Option<BoxFuture<'static, ()>>,
    gate: WakeGate,
}

impl<C, F> Served<C, F>
where
    C: Future + Unpin,
    F: Fn(&mut C) + Unpin,
{
    pub(super) fn new(
        connection: C,
        shut_down: F,
        shutdown: Shutdown,
        mut drained: watch::Receiver<bool>,
    ) -> Self {
        let drained = async move {
            // The server is never dropped before its connections.
            let _drained = drained.wait_for(|drained| *drained).await;
        };
        Self {
            connection,
            shut_down,
            shutdown,
            drained: Some(drained.boxed()),
            gate: WakeGate::default(),
        }
    }

    fn poll_drained(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(drained) = &mut self.drained {
            ready!(self.gate.poll(cx, |cx| drained.as_mut().poll(cx)));
            self.drained = None;
            self.shutdown.activity.begin_drain();
        }
        Poll::Ready(())
    }
}

impl<C, F> Future for Served<C, F>
where
    C: Future + Unpin,
    F: Fn(&mut C) + Unpin,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        loop {
            // A connection that fails has nobody left to report it to.
            if Pin::new(&mut this.connection).poll(cx).is_ready() {
                return Poll::Ready(());
            }
            ready!(this.poll_drained(cx));
            if this.shutdown.is_announced {
                return this.shutdown.poll_close(cx);
            }
            ready!(this.shutdown.poll_announce(cx));
            (this.shut_down)(&mut this.connection);
        }
    }
}

/// When a connection is closed because the gateway drains.
pub(super) struct Shutdown {
    is_http2: bool,
    activity: Arc<Activity>,
    /// Bounds how long a moment without requests is waited for.
    moment: Deadline,
    /// Whether the connection takes no further requests.
    is_announced: bool,
    grace: Deadline,
    /// The writes of the connection when the grace was last set.
    writes: u64,
}

impl Shutdown {
    pub(super) fn new(is_http2: bool, activity: Arc<Activity>) -> Self {
        Self {
            is_http2,
            activity,
            moment: Deadline::default(),
            is_announced: false,
            grace: Deadline::default(),
            writes: 0,
        }
    }

    /// Waits until a connection is to take no further requests, after the gateway has begun to drain.
    fn poll_announce(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.activity.register(cx.waker());
        if self.is_http2 {
            ready!(self.poll_moment(cx));
        }
        self.grace.clear();
        self.is_announced = true;
        Poll::Ready(())
    }

    /// Waits for the moment to send a GOAWAY.
    ///
    /// Released clients (h2 for Python, and with it httpx) fail the requests that are being answered when they read one, and
    /// those whose ends they read together with it. So it is sent a moment after the answers that were begun before the
    /// drain, and until then new POSTs get 503. On a busy connection other requests follow without a pause: they are short,
    /// and are waited for only so long.
    fn poll_moment(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.activity.has_early() {
            return Poll::Pending;
        }
        if !self.moment.is_set() {
            self.moment.set(GOAWAY_TIMEOUT);
        }
        if self.moment.check(cx).is_ready() {
            return Poll::Ready(());
        }
        if self.activity.is_active() {
            return Poll::Pending;
        }
        while let Some(rest) = self.rest_of_delay() {
            self.grace.set(rest);
            let _passed = ready!(self.grace.check(cx));
        }
        Poll::Ready(())
    }

    /// How much longer the last answer is too recent for a GOAWAY.
    fn rest_of_delay(&self) -> Option<Duration> {
        let rest = GOAWAY_DELAY.checked_sub(self.activity.idle_for()?)?;
        Some(rest).filter(|rest| !rest.is_zero())
    }

    /// Waits until a connection without a request is to be closed that does not end by itself: half a head has arrived, or the
    /// client does not react to a GOAWAY.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.activity.register(cx.waker());
        if self.activity.is_active() {
            self.grace.clear();
            return Poll::Pending;
        }
        match self.activity.idle_for() {
            // It ends once everything is written, and a client that does not read it is disconnected. The request may have
            // been answered during a grace.
            Some(_) if !self.is_http2 => return Poll::Pending,
            // What was written answers no request: a client that sends pings is not waited for.
            None if self.grace.is_set() => {}
            None => self.grace.set(CLOSE_GRACE),
            Some(idle) => self.grant_last_writes(idle),
        }
        self.grace.check(cx).map(drop)
    }

    /// Gives a slow client time to read the end of the last answers, which the connection still holds: as long as it accepts
    /// some of it. The drain's own timeout bounds that.
    fn grant_last_writes(&mut self, idle: Duration) {
        let writes = self.activity.writes();
        if !self.grace.is_set() {
            // A socket that accepts nothing holds something back, however long ago the last answer ended.
            let waited = if self.activity.is_blocked() {
                Duration::ZERO
            } else {
                idle
            };
            self.grace
                .set(LAST_WRITES.saturating_sub(waited).max(CLOSE_GRACE));
        } else if writes != self.writes {
            self.grace.set(LAST_WRITES);
        }
        self.writes = writes;
    }
}

#[cfg(test)]
mod tests;
