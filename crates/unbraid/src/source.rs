//! What can be read: a byte stream, an `AsyncRead`, or a stream of updates. The reader polls all of them in the same way.

use std::{
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures::Stream;
use tokio::io::{AsyncRead, ReadBuf};
use unbraid_core::{
    BoxError, ChoiceEnd, ChoiceIndex, Config, Dialect, Redact, StreamError, TransportError, Update,
};

/// A stream to read, of any kind: one of those that [`merge`](crate::CompletionsBuilder::merge) reads as one completion.
///
/// Nothing is read before the source is added to a completion. Dropping it drops the underlying stream.
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
#[must_use = "a source is read by the completion that it is given to"]
pub struct Source {
    pub(crate) stream: Box<dyn PollSource>,
    /// How many choices it may have in a merge.
    pub(crate) choices: Option<u32>,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) redact: Redact,
}

impl Source {
    /// A stream of byte chunks, as for [`CompletionsBuilder::from_byte_stream`](crate::CompletionsBuilder::from_byte_stream).
    ///
    /// Its error ends the stream as [`StreamError::Transport`]. An error that is a [`StreamError`] itself is kept as it is.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::stream;
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = "data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\ndata: [DONE]\n\n";
    /// let source = Source::from_byte_stream(stream::iter([Ok::<_, std::io::Error>(body)]));
    /// assert_eq!(Completions::merge([source]).first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_byte_stream<S, B, E>(bytes: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
        E: Into<BoxError> + 'static,
    {
        Self::new(ByteSource(Box::pin(bytes)))
    }

    /// An `AsyncRead`, as for [`CompletionsBuilder::from_reader`](crate::CompletionsBuilder::from_reader).
    ///
    /// Its error ends the stream as [`StreamError::Transport`].
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\ndata: [DONE]\n\n"[..];
    /// let completions = Completions::merge([Source::from_reader(body)]);
    /// assert_eq!(completions.first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_reader<R>(reader: R) -> Self
    where
        R: AsyncRead + Send + 'static,
    {
        Self::new(ReaderSource::new(reader))
    }

    /// Updates that were decoded elsewhere, as for [`CompletionsBuilder::from_updates`](crate::CompletionsBuilder::from_updates).
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::stream;
    /// use unbraid::{ChoiceIndex, Completions, Source, StreamError, Update};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut update = Update::default();
    /// update.choice = Some(ChoiceIndex(0));
    /// update.content = Some("Hi".into());
    /// update.last_of_event = true;
    /// let source = Source::from_updates(stream::iter([Ok::<_, StreamError>(update)]));
    /// let choice = Completions::merge([source]).first().await?;
    /// assert_eq!(choice.outcome().await.message.content, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_updates<S, E>(updates: S) -> Self
    where
        S: Stream<Item = Result<Update<'static>, E>> + Send + 'static,
        E: Into<StreamError> + 'static,
    {
        Self::new(UpdateSource(Box::pin(updates)))
    }

    pub(crate) fn new(stream: impl PollSource + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            choices: None,
            dialect: None,
            redact: Redact::default(),
        }
    }

    /// How many choices this source may have in [`merge`](crate::CompletionsBuilder::merge), where the sources differ in it: a
    /// provider with several candidates among others with one. Without it, the builder's
    /// [`expect_choices`](crate::CompletionsBuilder::expect_choices) applies, or else 1. 0 counts as 1.
    ///
    /// [`SourceSet::add`](crate::SourceSet::add) takes the indices instead.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let two = &br#"{"candidates":[
    ///     {"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},
    ///     {"index":1,"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"}]}"#[..];
    /// let one = &b"{\"model\":\"m\",\"message\":{\"content\":\"c\"},\"done\":true,\"done_reason\":\"stop\"}\n"[..];
    /// let completions = Completions::merge([
    ///     Source::from_reader(two).expect_choices(2),
    ///     Source::from_reader(one),
    /// ]);
    /// assert_eq!(completions.choice(1).await.unwrap().text().await?, "b");
    /// assert_eq!(completions.choice(2).await.unwrap().text().await?, "c");
    /// # Ok(())
    /// # }
    /// ```
    pub fn expect_choices(mut self, n: u32) -> Self {
        self.choices = Some(n.max(1));
        self
    }

    /// The dialect of this source, in place of the one that its first value shows (D05). Without it, the builder's
    /// configuration applies.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Dialect, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"{\"response\":\"Hi\",\"done\":true,\"done_reason\":\"stop\"}\n"[..];
    /// let source = Source::from_reader(body).dialect(Dialect::Ollama);
    /// assert_eq!(Completions::merge([source]).first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = Some(dialect);
        self
    }

    /// Replaces secrets in the errors that this source's server reports, in addition to those of the builder's
    /// [`redact`](crate::CompletionsBuilder::redact).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Redact, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let body = &br#"{"error":{"message":"wrong key sk-1234"}}"#[..];
    /// let redact = Redact::new(|text| text.replace("sk-1234", "[key]"));
    /// let completions = Completions::merge([Source::from_reader(body).redact(redact)]);
    /// let error = completions.closed().await.unwrap_err();
    /// assert!(matches!(error, unbraid::StreamError::Server(error) if error.message() == Some("wrong key [key]")));
    /// # }
    /// ```
    pub fn redact(mut self, redact: Redact) -> Self {
        self.redact = self.redact.and(redact);
        self
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source(..)")
    }
}

/// One item of a source.
#[derive(Debug)]
pub enum SourceItem<'i> {
    /// Bytes of the stream.
    Bytes(&'i [u8]),
    /// An update that was decoded elsewhere. A source has either bytes or updates.
    Update(&'i Update<'i>),
    /// The end of a choice that was decided elsewhere.
    ChoiceEnd(ChoiceIndex, ChoiceEnd),
}

/// Why a source ended early.
#[derive(Debug)]
pub enum SourceError {
    /// Its connection failed.
    Transport(BoxError),
    /// The stream ended with this error.
    Stream(StreamError),
}

impl SourceError {
    /// The error of a stream of which so many bytes were decoded.
    pub(crate) fn into_stream_error(self, bytes: u64) -> StreamError {
        match self {
            Self::Transport(error) => {
                StreamError::Transport(Arc::new(TransportError::new(bytes, error)))
            }
            Self::Stream(error) => error,
        }
    }
}

/// A byte stream may have timeouts of its own. Its `StreamError` is treated as if the reader's own timeout had ended it.
impl From<BoxError> for SourceError {
    fn from(error: BoxError) -> Self {
        match error.downcast::<StreamError>() {
            Ok(error) => Self::Stream(*error),
            Err(error) => Self::Transport(error),
        }
    }
}

/// A stream of items. It is not polled again after its end or error.
pub trait PollSource: Send {
    /// Passes the next items to `accept`; `None` at the end. An item is borrowed from the source, so that a read needs no copy.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Poll<Option<Result<(), SourceError>>>;

    /// How the stream is read. Called once, before the first poll.
    fn configure(&mut self, _config: &Config) {}

    /// A handle has cancelled a choice, or all of them (`None`). Dropping the handles does not call this.
    fn cancelled(&mut self, _choice: Option<ChoiceIndex>) {}
}

/// Any stream of byte chunks.
struct ByteSource<S>(Pin<Box<S>>);

impl<S, B, E> PollSource for ByteSource<S>
where
    S: Stream<Item = Result<B, E>> + Send,
    B: AsRef<[u8]>,
    E: Into<BoxError>,
{
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Poll<Option<Result<(), SourceError>>> {
        Poll::Ready(match ready!(self.0.as_mut().poll_next(cx)) {
            Some(Ok(bytes)) => {
                accept(SourceItem::Bytes(bytes.as_ref()));
                Some(Ok(()))
            }
            Some(Err(error)) => Some(Err(SourceError::from(error.into()))),
            None => None,
        })
    }
}

/// Any `AsyncRead`, with a buffer of our own.
struct ReaderSource<R> {
    reader: Pin<Box<R>>,
    buffer: Box<[u8]>,
}

impl<R> ReaderSource<R> {
    fn new(reader: R) -> Self {
        const READ_BYTES: usize = 16 * 1024; // one TLS record, and what hyper reads
        Self {
            reader: Box::pin(reader),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
        }
    }
}

impl<R: AsyncRead + Send> PollSource for ReaderSource<R> {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Poll<Option<Result<(), SourceError>>> {
        let mut read = ReadBuf::new(&mut self.buffer);
        Poll::Ready(
            match ready!(self.reader.as_mut().poll_read(cx, &mut read)) {
                Ok(()) if read.filled().is_empty() => None,
                Ok(()) => {
                    accept(SourceItem::Bytes(read.filled()));
                    Some(Ok(()))
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {
                    accept(SourceItem::Bytes(&[]));
                    Some(Ok(()))
                }
                Err(error) => Some(Err(SourceError::Transport(error.into()))),
            },
        )
    }
}

/// Any stream of updates that were decoded elsewhere.
struct UpdateSource<S>(Pin<Box<S>>);

impl<S, E> PollSource for UpdateSource<S>
where
    S: Stream<Item = Result<Update<'static>, E>> + Send,
    E: Into<StreamError>,
{
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        accept: &mut dyn FnMut(SourceItem<'_>),
    ) -> Poll<Option<Result<(), SourceError>>> {
        Poll::Ready(match ready!(self.0.as_mut().poll_next(cx)) {
            Some(Ok(update)) => {
                accept(SourceItem::Update(&update));
                Some(Ok(()))
            }
            Some(Err(error)) => Some(Err(SourceError::Stream(error.into()))),
            None => None,
        })
    }
}
