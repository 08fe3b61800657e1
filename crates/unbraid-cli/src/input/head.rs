//! Keeps the first bytes of an input, to recognize what it is if it is not a stream.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, ReadBuf};

/// How many bytes of an input are kept.
pub(super) const HEAD_BYTES: usize = 256;

/// A reader that keeps a copy of the first bytes that it reads.
#[derive(Debug)]
pub(crate) struct HeadReader<R> {
    reader: R,
    head: Head,
}

/// The first bytes of an input. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head(Arc<Mutex<Vec<u8>>>);

impl<R> HeadReader<R> {
    pub(crate) fn new(reader: R) -> (Self, Head) {
        let head = Head::default();
        let reader = Self {
            reader,
            head: head.clone(),
        };
        (reader, head)
    }
}

impl Head {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Adds the next bytes of the input, up to [`HEAD_BYTES`] in total.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut head = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HEAD_BYTES.saturating_sub(head.len());
        head.extend(bytes.iter().take(room));
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for HeadReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(cx, buffer))?;
        self.head
            .push(buffer.filled().get(filled_before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}
