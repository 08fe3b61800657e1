//! What can be read: a byte stream, an `AsyncRead`, a stream of updates. The reader polls all of them in the same way.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use futures::Stream;
use tokio::io::{AsyncRead, ReadBuf};
use unbraid_core::{BoxError, StreamError, Update};

/// A stream to read, whatever it is made of: one part of a [`join`](crate::CompletionsBuilder::merge).
///
/// Nothing is read before it is joined. Dropping it drops what it is made of.
///
/// # Examples
///
/// ```
/// use unbraid::{Completions, Source};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let body = |text: &str| format!("data: {{\"choices\":[{{\"index\":0,\"text\":\"{text}\"}}]}}\n\ndata: [DONE]\n\n");
/// let bodies = ["one", "two"].map(|text| std::io::Cursor::new(body(text)));
/// let completions = Completions::merge(bodies.map(Source::from_reader));
/// completions.closed().await?;
/// assert_eq!(completions.choice(1).await.unwrap().text().await?, "two");
/// # Ok(())
/// # }
/// ```
pub struct Source(pub(crate) Box<dyn Feed>);

impl Source {
    /// A stream of byte chunks, as [`CompletionsBuilder::from_byte_stream`](crate::CompletionsBuilder::from_byte_stream) takes it.
    ///
    /// Its error ends the stream as [`StreamError::Transport`], unless it is a [`StreamError`] itself: that one is kept.
    pub fn from_byte_stream<S, B, E>(bytes: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
        E: Into<BoxError> + 'static,
    {
        Self(Box::new(Bytes(Box::pin(bytes))))
    }

    /// Anything that is an `AsyncRead`, as [`CompletionsBuilder::from_reader`](crate::CompletionsBuilder::from_reader) takes it.
    pub fn from_reader<R>(reader: R) -> Self
    where
        R: AsyncRead + Send + 'static,
    {
        Self(Box::new(Reads::new(reader)))
    }

    /// Updates that were decoded elsewhere, as [`CompletionsBuilder::from_updates`](crate::CompletionsBuilder::from_updates) takes them.
    pub fn from_updates<S, E>(updates: S) -> Self
    where
        S: Stream<Item = Result<Update<'static>, E>> + Send + 'static,
        E: Into<StreamError> + 'static,
    {
        Self(Box::new(Updates(Box::pin(updates))))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source(..)")
    }
}

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

/// A byte stream may have timeouts of its own, and then ends as one that the reader's timeout ended.
impl From<BoxError> for Broken {
    fn from(error: BoxError) -> Self {
        match error.downcast::<StreamError>() {
            Ok(error) => Self::Stream(*error),
            Err(error) => Self::Transport(error),
        }
    }
}

/// What gives one stream. It is not polled again behind its end or error.
pub(crate) trait Feed: Send {
    /// Gives the next piece to `take`; `None` at the end.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        take: &mut dyn FnMut(Piece<'_>),
    ) -> Poll<Option<Result<(), Broken>>>;
}

/// Any stream of byte chunks.
pub(crate) struct Bytes<S>(pub(crate) Pin<Box<S>>);

impl<S, B, E> Feed for Bytes<S>
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
            Some(Err(error)) => Some(Err(Broken::from(error.into()))),
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

impl<R: AsyncRead + Send> Feed for Reads<R> {
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

impl<S, E> Feed for Updates<S>
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
