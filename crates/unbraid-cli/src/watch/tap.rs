//! Keeps the first bytes of what is read.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

use crate::read::HEAD_BYTES;

/// A reader whose first bytes can be looked at afterwards.
#[derive(Debug)]
pub(crate) struct Tap<R> {
    reader: R,
    head: Head,
}

/// The first bytes of a stream, as a [`Tap`] keeps them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head(Arc<Mutex<Vec<u8>>>);

impl<R> Tap<R> {
    pub(crate) fn new(reader: R) -> (Self, Head) {
        let head = Head::default();
        let tap = Self {
            reader,
            head: head.clone(),
        };
        (tap, head)
    }
}

impl Head {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn keep(&self, bytes: &[u8]) {
        let mut head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HEAD_BYTES.saturating_sub(head.len());
        head.extend(bytes.iter().take(room));
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Tap<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(cx, buffer))?;
        self.head
            .keep(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}
