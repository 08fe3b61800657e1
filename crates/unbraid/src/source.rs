//! What can be read: a byte stream, an `AsyncRead`, a stream of updates. The reader polls all of them in the same way.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;
use tokio::io::{AsyncRead, ReadBuf};
use unbraid_core::{BoxError, StreamError, Update};

/// One thing that a source gave.
#[derive(Debug)]
pub(crate) enum Piece<'p> {
    Bytes(&'p [u8]),
    Update(&'p Update<'static>),
}

/// Why a source ended before its time.
#[derive(Debug)]
pub(crate) enum Broken {
    Transport(BoxError),
    Stream(StreamError),
}

/// A source of one stream. It is not polled again behind its end or error.
pub(crate) trait Source: Send {
    /// Gives the next piece to `take`; `None` at the end.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Option<Result<(), Broken>>>;
}

/// Any stream of byte chunks.
pub(crate) struct Bytes<S>(pub(crate) Pin<Box<S>>);

impl<S, B, E> Source for Bytes<S>
where
    S: Stream<Item = Result<B, E>> + Send,
    B: AsRef<[u8]>,
    E: Into<BoxError>,
{
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Option<Result<(), Broken>>> {
        Poll::Ready(match ready!(self.0.as_mut().poll_next(cx)) {
            Some(Ok(bytes)) => {
                take(Piece::Bytes(bytes.as_ref()));
                Some(Ok(()))
            }
            Some(Err(error)) => Some(Err(Broken::Transport(error.into()))),
            None => None,
        })
    }
}

/// Any `AsyncRead`, with a buffer of our own.
pub(crate) struct Reads<R> {
    reader: Pin<Box<R>>,
    buffer: Box<[u8]>,
}

impl<R> Reads<R> {
    pub(crate) fn new(reader: R) -> Self {
        const READ_BYTES: usize = 16 * 1024; // one TLS record, and what hyper reads
        Self {
            reader: Box::pin(reader),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        }
    }
}

impl<R: AsyncRead + Send> Source for Reads<R> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Option<Result<(), Broken>>> {
        let mut read = ReadBuf::new(&mut self.buffer);
        Poll::Ready(
            match ready!(self.reader.as_mut().poll_read(cx, &mut read)) {
                Ok(()) if read.filled().is_empty() => None,
                Ok(()) => {
                    take(Piece::Bytes(read.filled()));
                    Some(Ok(()))
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    take(Piece::Bytes(&[]));
                    Some(Ok(()))
                }
                Err(error) => Some(Err(Broken::Transport(error.into()))),
            },
        )
    }
}

/// Any stream of updates, decoded elsewhere.
pub(crate) struct Updates<S>(pub(crate) Pin<Box<S>>);

impl<S, E> Source for Updates<S>
where
    S: Stream<Item = Result<Update<'static>, E>> + Send,
    E: Into<StreamError>,
{
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Option<Result<(), Broken>>> {
        Poll::Ready(match ready!(self.0.as_mut().poll_next(cx)) {
            Some(Ok(update)) => {
                take(Piece::Update(&update));
                Some(Ok(()))
            }
            Some(Err(error)) => Some(Err(Broken::Stream(error.into()))),
            None => None,
        })
    }
}
