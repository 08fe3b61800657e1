//! A socket with deadlines: for the head of a request, for the idle time between two requests, and for a peer that accepts
//! no data.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use super::{connection::Activity, kill};
use crate::limits::{HEAD_TIMEOUT, KEEP_ALIVE};

/// The deadlines of a socket. hyper's own timeout for heads also closes a connection that is idle between two requests.
pub(super) struct GuardedIo<S> {
    socket: S,
    activity: Arc<Activity>,
    stall: Duration,
    read: Deadline,
    write: Deadline,
    /// The requests that had started when the deadline for reads was set.
    epoch: Option<u64>,
    /// Whether a part of a head has arrived since then.
    in_head: bool,
}

/// A timer that is created once.
#[derive(Default)]
struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Deadline {
    fn set(&mut self, after: Duration) {
        let until = Instant::now() + after;
        self.is_set = true;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(until),
            None => self.timer = Some(Box::pin(sleep_until(until))),
        }
    }

    fn clear(&mut self) {
        self.is_set = false;
    }

    /// An error once the deadline has passed.
    fn check(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        match &mut self.timer {
            Some(timer) if self.is_set => timer
                .as_mut()
                .poll(cx)
                .map(|()| io::ErrorKind::TimedOut.into()),
            _ => Poll::Pending,
        }
    }
}

impl<S> GuardedIo<S> {
    pub(super) fn new(socket: S, activity: Arc<Activity>, stall: Duration) -> Self {
        Self {
            socket,
            activity,
            stall,
            read: Deadline::default(),
            write: Deadline::default(),
            epoch: None,
            in_head: false,
        }
    }

    /// Sets the deadline for the next read, unless it is set already.
    fn prepare_read(&mut self) {
        if self.activity.is_active() {
            self.read.clear();
            self.epoch = None;
            return;
        }
        let started = self.activity.started();
        if self.epoch != Some(started) {
            self.epoch = Some(started);
            self.in_head = false;
            // The first head is due from the start of the connection.
            self.read.set(if started == 0 {
                HEAD_TIMEOUT
            } else {
                KEEP_ALIVE
            });
        }
    }

    /// Bytes have arrived: between two requests they begin a head. HTTP/2 has frames of its own between them.
    fn has_read(&mut self) {
        let is_head = self.epoch.is_some() && self.activity.started() > 0;
        if is_head && !self.in_head && !self.activity.is_http2() {
            self.in_head = true;
            self.read.set(HEAD_TIMEOUT);
        }
    }

    /// Bounds how long writing may be pending.
    fn guard_write<T>(
        &mut self,
        cx: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.write.clear();
            return polled;
        }
        if !self.write.is_set {
            self.write.set(self.stall);
        }
        let error = ready!(self.write.check(cx));
        // The bodies of this connection see by the switch that their reader was slow, and did not leave.
        kill::switch_off();
        Poll::Ready(Err(error))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for GuardedIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        this.prepare_read();
        match Pin::new(&mut this.socket).poll_read(cx, buf) {
            Poll::Ready(result) => {
                this.has_read();
                Poll::Ready(result)
            }
            Poll::Pending => this.read.check(cx).map(Err),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for GuardedIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.guard_write(cx, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.socket).poll_flush(cx);
        self.guard_write(cx, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.socket).poll_shutdown(cx);
        self.guard_write(cx, polled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::{super::kill::with_switch, *};

    #[tokio::test(start_paused = true)]
    async fn a_write_that_stalls_switches_its_connection_off() {
        let (socket, peer) = tokio::io::duplex(1);
        let stall = Duration::from_secs(1);
        let mut io = GuardedIo::new(socket, Arc::default(), stall);
        let stalled = with_switch(async {
            let error = io.write_all(b"long").await.unwrap_err();
            (error.kind(), kill::current().unwrap().is_cancelled())
        });
        assert_eq!(stalled.await, Some((io::ErrorKind::TimedOut, true)));
        drop(peer);
    }
}
