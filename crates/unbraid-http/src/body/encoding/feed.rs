//! Drives a decoder so that all that it can decode is delivered before an error or an end behind it.
//!
//! A decoder that fails drops what it had decoded in the same call. If it is given its input byte by byte, the call that fails
//! is the one with the first wrong byte, and everything before it has been delivered. That is slow, and bodies are seldom
//! wrong. So a decoder is given whole reads, and the beginning of the body is kept: if it fails, another one decodes what is
//! kept byte by byte, and delivers what the first one dropped. A body that is too long to be kept is decoded byte by byte from
//! there on.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes, BytesMut};
use futures::{Stream, StreamExt};
use tokio::io::{AsyncBufRead, AsyncRead, ReadBuf};
use tokio_util::io::poll_read_buf;
use unbraid::BoxError;

use super::Incoming;

/// Bytes of a body that are kept. The answer of a model has 30 a token, compressed.
const MOST_KEPT: usize = 128 * 1024;

/// Decoded bytes after which nothing more is kept: a few bytes may stand for very many, which would all be decoded again.
const MOST_REPEATED: usize = 4 * 1024 * 1024;

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
    make: fn() -> D,
    decoder: D,
    feed: fn(&mut D) -> &mut Feed,
    decoded: BytesMut,
    /// What the decoder was given so far; `None` once it is given its input byte by byte.
    kept: Option<BytesMut>,
    /// How much it has made of what is kept.
    made: usize,
    /// How much of what it makes has been delivered by an earlier decoder.
    repeated: usize,
    state: State,
}

enum State {
    Open,
    /// All that came before it is delivered first.
    Failed(BoxError),
    Over,
}

impl<D: AsyncRead + Unpin> Decoding<D> {
    pub(super) fn new(
        compressed: Incoming,
        make: fn() -> D,
        feed: fn(&mut D) -> &mut Feed,
    ) -> Self {
        Self {
            compressed,
            read: Bytes::new(),
            make,
            decoder: make(),
            feed,
            decoded: BytesMut::new(),
            kept: Some(BytesMut::new()),
            made: 0,
            repeated: 0,
            state: State::Open,
        }
    }

    /// Decodes until the decoder has nothing more of what has come; false if that takes long, so that other tasks have
    /// their turn.
    fn decode(&mut self, cx: &mut Context<'_>) -> bool {
        let turn = self.repeated.saturating_sub(MOST);
        while matches!(self.state, State::Open) && self.decoded.len() < MOST {
            match self.poll_decoder(cx) {
                Poll::Ready(Ok(0)) => self.state = State::Over,
                Poll::Ready(Ok(length)) => self.made = self.made.saturating_add(length),
                Poll::Ready(Err(_)) if self.begin_again() => return false,
                Poll::Ready(Err(error)) => self.state = State::Failed(error.into()),
                Poll::Pending if self.read.is_empty() => return true,
                Poll::Pending => self.give(),
            }
            if turn > 0 && self.repeated <= turn {
                return false;
            }
        }
        true
    }

    fn poll_decoder(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let decoder = Pin::new(&mut self.decoder);
        if self.repeated == 0 {
            if self.decoded.capacity() == self.decoded.len() {
                self.decoded.reserve(ROOM);
            }
            return poll_read_buf(decoder, cx, &mut self.decoded);
        }
        let mut again = BytesMut::with_capacity(ROOM);
        let length = ready!(poll_read_buf(decoder, cx, &mut again))?;
        let repeated = self.repeated.min(length);
        again.advance(repeated);
        self.repeated -= repeated;
        self.decoded.extend_from_slice(&again);
        Poll::Ready(Ok(length))
    }

    /// Gives the decoder more of what has come.
    fn give(&mut self) {
        let room = MOST_KEPT.saturating_sub(self.kept.as_ref().map_or(0, BytesMut::len));
        let step = match &mut self.kept {
            Some(kept) if self.read.len() <= room && self.made <= MOST_REPEATED => {
                kept.extend_from_slice(&self.read);
                self.read.len()
            }
            kept => {
                *kept = None;
                1
            }
        };
        (self.feed)(&mut self.decoder).bytes = self.read.split_to(step);
    }

    /// Begins to decode byte by byte what is kept; false if nothing can come of it.
    fn begin_again(&mut self) -> bool {
        // Behind the last read there is nothing that the decoder has not delivered.
        let over = (self.feed)(&mut self.decoder).over;
        let Some(kept) = self.kept.take().filter(|_| !over) else {
            return false;
        };
        self.decoder = (self.make)();
        self.read = kept.freeze();
        self.repeated = self.made;
        true
    }
}

impl<D: AsyncRead + Unpin> Stream for Decoding<D> {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let done = this.decode(cx);
            if !this.decoded.is_empty() {
                return Poll::Ready(Some(Ok(this.decoded.split().freeze())));
            }
            if !done {
                cx.waker().wake_by_ref();
                return Poll::Pending;
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
