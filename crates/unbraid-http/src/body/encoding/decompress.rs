//! Drives a decoder so that everything that it can decode is delivered before an error or the end that follows.
//!
//! A decoder that fails drops the output of the same call. If its input comes byte by byte, the call that fails is the one with
//! the first wrong byte, and everything before it has been delivered. That is slow, and wrong bodies are rare. So a decoder
//! gets whole reads, and the beginning of the body is kept for a replay: if the decoder fails, a new one decodes the kept bytes
//! one by one, and delivers what the first one dropped. A body that is too long to be kept is decoded byte by byte from there
//! on.

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

use super::ByteStream;

/// Compressed bytes that are kept for a replay. A model's response has about 30 for each token.
const MAX_REPLAY_BYTES: usize = 128 * 1024;

/// Decoded bytes after which nothing more is kept: a few compressed bytes may stand for very many, and a replay would decode
/// all of them again.
const MAX_REPLAY_OUTPUT: usize = 4 * 1024 * 1024;

/// The capacity that one call of the decoder gets.
const READ_CAPACITY: usize = 4096;

/// Decoded bytes that are delivered at once. It bounds the buffer, because one byte may stand for any number of them.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// Compressed bytes that the decoder is given at once, and after which other tasks get their turn if nothing was decoded: an empty
/// member of gzip has 20 bytes, and takes as long as kilobytes of text.
const MAX_SILENT_BYTES: usize = 4096;

/// The input of a decoder: the bytes that it was given, then `Pending` until it gets more, or the end.
#[derive(Debug, Default)]
pub(super) struct Input {
    bytes: Bytes,
    ended: bool,
}

/// A body that is decompressed while it arrives.
pub(super) struct Decompressed<D> {
    compressed: ByteStream,
    /// Bytes that have arrived and that the decoder has not been given yet.
    unread: Bytes,
    new_decoder: fn() -> D,
    decoder: D,
    input: fn(&mut D) -> &mut Input,
    decoded: BytesMut,
    /// What the decoder has been given so far. `None` once its input comes byte by byte.
    replay: Option<BytesMut>,
    /// How many bytes the decoder has produced from what is kept.
    produced: usize,
    /// How many compressed bytes the decoder was given since it produced something.
    silent: usize,
    /// How many of the next bytes an earlier decoder has delivered.
    to_skip: usize,
    state: State,
}

enum State {
    Open,
    /// Everything that was decoded before the error is delivered first.
    Failed(BoxError),
    Ended,
}

impl<D: AsyncRead + Unpin> Decompressed<D> {
    pub(super) fn new(
        compressed: ByteStream,
        new_decoder: fn() -> D,
        input: fn(&mut D) -> &mut Input,
    ) -> Self {
        Self {
            compressed,
            unread: Bytes::new(),
            new_decoder,
            decoder: new_decoder(),
            input,
            decoded: BytesMut::new(),
            replay: Some(BytesMut::new()),
            produced: 0,
            silent: 0,
            to_skip: 0,
            state: State::Open,
        }
    }

    /// Decodes until the decoder needs more input. Returns false if it stops before, so that other tasks get their turn.
    fn decode(&mut self, cx: &mut Context<'_>) -> bool {
        let skip_until = self.to_skip.saturating_sub(MAX_CHUNK_BYTES);
        while matches!(self.state, State::Open) && self.decoded.len() < MAX_CHUNK_BYTES {
            match self.poll_decoder(cx) {
                Poll::Ready(Ok(0)) => self.state = State::Ended,
                Poll::Ready(Ok(length)) => {
                    self.produced = self.produced.saturating_add(length);
                    self.silent = 0;
                }
                Poll::Ready(Err(_)) if self.start_replay() => return false,
                Poll::Ready(Err(error)) => self.state = State::Failed(error.into()),
                Poll::Pending if self.unread.is_empty() => return true,
                Poll::Pending if self.silent >= MAX_SILENT_BYTES => {
                    self.silent = 0;
                    return false;
                }
                Poll::Pending => self.feed_decoder(),
            }
            if skip_until > 0 && self.to_skip <= skip_until {
                return false;
            }
        }
        true
    }

    fn poll_decoder(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let decoder = Pin::new(&mut self.decoder);
        if self.to_skip == 0 {
            if self.decoded.capacity() == self.decoded.len() {
                self.decoded.reserve(READ_CAPACITY);
            }
            return poll_read_buf(decoder, cx, &mut self.decoded);
        }
        let mut replayed = BytesMut::with_capacity(READ_CAPACITY);
        let length = ready!(poll_read_buf(decoder, cx, &mut replayed))?;
        let skipped = self.to_skip.min(length);
        replayed.advance(skipped);
        self.to_skip -= skipped;
        self.decoded.extend_from_slice(&replayed);
        Poll::Ready(Ok(length))
    }

    /// Gives the decoder more input: a part of a read, or one byte if it is not kept for a replay.
    fn feed_decoder(&mut self) {
        let kept = self.replay.as_ref().map_or(0, BytesMut::len);
        let room = MAX_REPLAY_BYTES.saturating_sub(kept);
        let length = self.unread.len().min(MAX_SILENT_BYTES);
        let is_kept = length <= room && self.produced <= MAX_REPLAY_OUTPUT;
        let part = match &mut self.replay {
            Some(replay) if is_kept => {
                let part = self.unread.split_to(length);
                replay.extend_from_slice(&part);
                part
            }
            replay => {
                *replay = None;
                self.unread.split_to(1)
            }
        };
        self.silent += part.len();
        (self.input)(&mut self.decoder).bytes = part;
    }

    /// Starts to decode the kept bytes one by one. Returns false if that cannot deliver anything more.
    fn start_replay(&mut self) -> bool {
        // After the last read the decoder has delivered everything.
        let ended = (self.input)(&mut self.decoder).ended;
        let Some(replay) = self.replay.take().filter(|_| !ended) else {
            return false;
        };
        self.decoder = (self.new_decoder)();
        self.unread = replay.freeze();
        self.to_skip = self.produced;
        true
    }
}

impl<D: AsyncRead + Unpin> Stream for Decompressed<D> {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            let needs_input = this.decode(cx);
            if !this.decoded.is_empty() {
                return Poll::Ready(Some(Ok(this.decoded.split().freeze())));
            }
            if !needs_input {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match std::mem::replace(&mut this.state, State::Ended) {
                State::Open => this.state = State::Open,
                State::Failed(error) => return Poll::Ready(Some(Err(error))),
                State::Ended => return Poll::Ready(None),
            }
            match this.compressed.poll_next_unpin(cx) {
                Poll::Ready(Some(Ok(bytes))) => this.unread = bytes,
                Poll::Ready(Some(Err(error))) => this.state = State::Failed(error),
                Poll::Ready(None) => (this.input)(&mut this.decoder).ended = true,
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

impl AsyncBufRead for Input {
    /// Registers no waker: `Decompressed` polls the decoder again after it has given it more input.
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let input = self.get_mut();
        if input.bytes.is_empty() && !input.ended {
            return Poll::Pending;
        }
        Poll::Ready(Ok(&input.bytes))
    }

    fn consume(mut self: Pin<&mut Self>, amount: usize) {
        self.bytes.advance(amount);
    }
}

/// The decoders use only `AsyncBufRead`, of which this is a supertrait.
impl AsyncRead for Input {
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
#[cfg(all(feature = "gzip", feature = "brotli", feature = "zstd"))]
mod tests;
