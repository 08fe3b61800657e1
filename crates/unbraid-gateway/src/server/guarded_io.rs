//! A socket with deadlines for the head of a request, and for the idle time between two requests.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

use super::activity::Activity;
use crate::limits::{HEAD_TIMEOUT, KEEP_ALIVE};

/// The deadlines of a socket. hyper's own timeout for heads also closes a connection that is idle between two requests.
pub(super) struct GuardedIo<S> {
    socket: S,
    activity: Arc<Activity>,
    read: Deadline,
    /// The requests that had started when the deadline for reads was set.
    epoch: Option<u64>,
    /// Whether a part of a head has arrived since then.
    in_head: bool,
    /// The requests that had started when a part of the next head arrived beside the last one's answer.
    early_head: Option<u64>,
}

/// A timer that is created once.
#[derive(Default)]
pub(super) struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Deadline {
    pub(super) fn is_set(&self) -> bool {
        self.is_set
    }

    pub(super) fn set(&mut self, after: Duration) {
        let until = Instant::now() + after;
        self.is_set = true;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(until),
            None => self.timer = Some(Box::pin(sleep_until(until))),
        }
    }

    pub(super) fn clear(&mut self) {
        self.is_set = false;
    }

    /// An error once the deadline has passed.
    pub(super) fn check(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
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
    pub(super) fn new(socket: S, activity: Arc<Activity>) -> Self {
        Self {
            socket,
            activity,
            read: Deadline::default(),
            epoch: None,
            in_head: false,
            early_head: None,
        }
    }

    /// Sets the deadline for the next read, unless it is set already.
    fn prepare_read(&mut self) {
        if self.activity.is_active() {
            self.read.clear();
            self.epoch = None;
            self.in_head = false;
            return;
        }
        let started = self.activity.started();
        if self.epoch != Some(started) {
            self.epoch = Some(started);
            self.in_head = self.early_head == Some(started);
            // The first head is due from the start of the connection, and one that has begun during an answer from its end.
            self.read.set(if started == 0 || self.in_head {
                HEAD_TIMEOUT
            } else {
                KEEP_ALIVE
            });
        }
    }

    /// Bytes have arrived: between two requests, and after the body of one, they begin a head. HTTP/2 has frames of its own
    /// between them.
    fn has_read(&mut self) {
        let started = self.activity.started();
        if started == 0 || self.in_head || self.activity.is_http2() {
            return;
        }
        if self.epoch.is_some() {
            self.in_head = true;
            self.read.set(HEAD_TIMEOUT);
        } else if !self.activity.has_unread_body() {
            self.early_head = Some(started);
        }
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
        Pin::new(&mut self.socket).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use hyper::Version;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;
    use crate::server::activity::{ActiveRequest, UnreadBody};

    /// How long after an answer a connection is closed, if these bytes arrived during the answer: `body` before the request
    /// was read to its end, and `head` after that.
    async fn closed_after(body: &[u8], head: &[u8]) -> Duration {
        let (near, mut far) = duplex(1024);
        let activity = Arc::new(Activity::default());
        let mut io = GuardedIo::new(near, Arc::clone(&activity));
        let mut bytes = [0; 1024];
        far.write_all(b"POST").await.unwrap();
        assert_eq!(io.read(&mut bytes).await.unwrap(), 4);
        let request = ActiveRequest::new(&activity, Version::HTTP_11);
        let unread = UnreadBody::new(&request);
        for (part, held) in [(body, Some(unread)), (head, None)] {
            if !part.is_empty() {
                far.write_all(part).await.unwrap();
                assert_eq!(io.read(&mut bytes).await.unwrap(), part.len());
            }
            drop(held);
        }
        drop(request);
        let ended = Instant::now();
        let error = io.read(&mut bytes).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        Duration::from_secs(ended.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_begins_during_an_answer_has_as_long_as_any_other() {
        assert_eq!(closed_after(b"", b"GET /").await, HEAD_TIMEOUT);
        assert_eq!(closed_after(b"{}", b"GET /").await, HEAD_TIMEOUT);
        assert_eq!(closed_after(b"", b"").await, KEEP_ALIVE);
        assert_eq!(closed_after(b"{}", b"").await, KEEP_ALIVE);
    }
}
