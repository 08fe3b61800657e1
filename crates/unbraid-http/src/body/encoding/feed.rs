//! Drives a decoder so that all that it can decode is delivered before an error or an end behind it.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;
use unbraid::BoxError;

use super::Incoming;

/// Bytes that a decoder is given at once.
///
/// A decoder that fails drops what it had decoded in the same call. Given byte by byte, the call that fails is the one with
/// the first wrong byte, and everything before that byte has been delivered. It costs a tenth of a microsecond for a byte,
/// which is some ten bytes of text.
const STEP: usize = 1;

/// Bytes that are made room for at once.
const ROOM: usize = 4096;

/// Bytes that are delivered at once, so that what is kept is bounded: a byte may stand for any number of them.
const MOST: usize = 64 * 1024;

/// What a decoder reads from: the bytes that it is given, then nothing until there are more, or the end.
#[derive(Debug, Default)]
pub(super) struct Feed {
    bytes: Bytes,
    over: bool,
}

/// A body that is decompressed while it comes.
pub(super) struct Decoding<D> {
    compressed: Incoming,
    /// What has come and was not yet given to the decoder.
    read: Bytes,
    decoder: D,
    feed: fn(&mut D) -> &mut Feed,
    decoded: BytesMut,
    state: State,
}

enum State {
    Open,
    /// All that came before it is delivered first.
    Failed(BoxError),
    Over,
}

impl<D: AsyncRead + Unpin> Decoding<D> {
    pub(super) fn new(compressed: Incoming, decoder: D, feed: fn(&mut D) -> &mut Feed) -> Self {
        Self {
            compressed,
            read: Bytes::new(),
            decoder,
            feed,
            decoded: BytesMut::new(),
            state: State::Open,
        }
    }

    /// Decodes until the decoder has nothing more of what has come.
    fn decode(&mut self, cx: &mut Context<'_>) {
        while matches!(self.state, State::Open) && self.decoded.len() < MOST {
            if self.decoded.capacity() == self.decoded.len() {
                self.decoded.reserve(ROOM);
            }
            let decoder = Pin::new(&mut self.decoder);
            match poll_read_buf(decoder, cx, &mut self.decoded) {
                Poll::Ready(Ok(0)) => self.state = State::Over,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => self.state = State::Failed(error.into()),
                Poll::Pending if self.read.is_empty() => return,
                Poll::Pending => {
                    let step = self.read.len().min(STEP);
                    (self.feed)(&mut self.decoder).bytes = self.read.split_to(step);
                }
            }
        }
    }
}

impl<D: AsyncRead + Unpin> Stream for Decoding<D> {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            this.decode(cx);
            if !this.decoded.is_empty() {
                return Poll::Ready(Some(Ok(this.decoded.split().freeze())));
            }
            match std::mem::replace(&mut this.state, State::Over) {
                State::Open => this.state = State::Open,
                State::Failed(error) => return Poll::Ready(Some(Err(error))),
                State::Over => return Poll::Ready(None),
            }
            match this.compressed.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(bytes))) => this.read = bytes,
                Poll::Ready(Some(Err(error))) => this.state = State::Failed(error),
                Poll::Ready(None) => (this.feed)(&mut this.decoder).over = true,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl AsyncBufRead for Feed {
    /// Without a waker: the one that feeds polls the decoder again.
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let feed = self.get_mut();
        if feed.bytes.is_empty() && !feed.over {
            return Poll::Pending;
        }
        Poll::Ready(Ok(&feed.bytes))
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        self.bytes.advance(amount);
    }
}

/// Only because every [`AsyncBufRead`] is one.
impl AsyncRead for Feed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Poll::Ready(bytes) = self.as_mut().poll_fill_buf(cx)? else {
            return Poll::Pending;
        };
        let length = bytes.len().min(buf.remaining());
        buf.put_slice(bytes.get(..length).unwrap_or_default());
        self.consume(length);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
