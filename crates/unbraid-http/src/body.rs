//! The body of a response as bytes.

pub(crate) mod encoding;
mod first_byte;
mod timers;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use unbraid::{BoxError, Completions, CompletionsBuilder, Redact, StreamError, TimedOut};

pub(crate) use self::{
    encoding::{ACCEPTED_ENCODINGS, ByteStream, byte_stream},
    first_byte::FirstByte,
    timers::Timers,
};

/// The body of a successful response: its bytes as they arrive, decompressed.
///
/// [`Client::open`](crate::Client::open) returns it, to be recorded or forwarded while it is read. Dropping it before its end
/// closes the connection.
///
/// The client's timeouts hold for the stream: that of the first byte, that of a silence between two reads, and the total one,
/// which began with the call. When one of them ends, the stream returns a
/// [`StreamError::TimedOut`](unbraid::StreamError::TimedOut), ends, and closes the connection. The time in which nobody polls the
/// stream does not count as silence.
///
/// # Examples
///
/// ```no_run
/// use std::{fs::File, io::Write};
///
/// use futures::TryStreamExt;
/// use unbraid_http::{Client, Request};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = Client::from_env()?;
/// let body = client.open(&Request::chat("gpt-4o-mini").user("Hello?")).await?;
/// let mut file = File::create("answer.sse")?;
/// let config = body.stream_config();
/// let recorded = body.and_then(move |bytes| {
///     let written = file.write_all(&bytes);
///     async { Ok(written.map(|()| bytes)?) }
/// });
/// println!("{}", config.from_byte_stream(recorded).first().await?.text().await?);
/// # Ok(())
/// # }
/// ```
pub struct Body {
    bytes: FirstByte,
    timers: Timers,
    config: CompletionsBuilder,
    redact: Redact,
}

impl Body {
    pub(crate) fn new(
        bytes: FirstByte,
        timers: Timers,
        config: CompletionsBuilder,
        redact: Redact,
    ) -> Self {
        Self {
            bytes,
            timers,
            config,
            redact,
        }
    }

    /// Returns how to read this body: the client's [`stream_config`](crate::ClientBuilder::stream_config), how many choices
    /// were requested, and the rest of the total timeout.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use futures::TryStreamExt;
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::Error> {
    /// let body = Client::from_env()?.open(&Request::chat("gpt-4o-mini").user("Hello?")).await?;
    /// let config = body.stream_config();
    /// let counted = body.inspect_ok(|bytes| eprintln!("{} bytes", bytes.len()));
    /// println!("{}", config.from_byte_stream(counted).first().await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stream_config(&self) -> CompletionsBuilder {
        self.config.clone()
    }

    /// Returns the function that replaces the client's secrets in the errors that the server reports within the body.
    ///
    /// The [`stream_config`](Self::stream_config) contains it already. Pass it on in [`Config::redact`](unbraid::Config::redact)
    /// if [`Demux`](unbraid::Demux) or [`Updates::with_config`](unbraid::Updates::with_config) reads the bytes. The bytes
    /// themselves are not changed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid::{Config, Updates};
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = Client::from_env()?;
    /// let body = client.open(&Request::chat("gpt-4o-mini").user("Hello?")).await?;
    /// let config = Config::default().with_redact(body.redact());
    /// let mut updates = Updates::with_config(body, &config);
    /// while let Some(update) = updates.next().await {
    ///     println!("{:?}", update?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn redact(&self) -> Redact {
        self.redact.clone()
    }

    /// Reads the body, as [`Client::send`](crate::Client::send) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), unbraid_http::Error> {
    /// let body = Client::from_env()?.open(&Request::chat("gpt-4o-mini").user("Hello?")).await?;
    /// println!("{}", body.into_completions().first().await?.text().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_completions(self) -> Completions {
        // The reader of the completion has the other timers.
        self.config.from_byte_stream(self.bytes)
    }

    /// Waits for the next bytes; `None` once the body is over.
    ///
    /// # Errors
    ///
    /// The connection failed, or a timeout passed. After that the body is over.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use unbraid_http::{Client, Request};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    /// let client = Client::from_env()?;
    /// let mut body = client.open(&Request::chat("gpt-4o-mini").user("Hello?")).await?;
    /// let mut length = 0;
    /// while let Some(bytes) = body.next().await {
    ///     length += bytes?.len();
    /// }
    /// println!("{length} bytes");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        StreamExt::next(self).await
    }

    fn fail(&mut self, timed_out: TimedOut) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.timers = Timers::default();
        self.bytes.close();
        Poll::Ready(Some(Err(StreamError::TimedOut(timed_out).into())))
    }
}

impl Stream for Body {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(timed_out) = self.timers.poll_total(cx) {
            return self.fail(timed_out);
        }
        // The bytes before the silence: those that are there count, even if they are polled late.
        let read = self.bytes.poll_next_unpin(cx);
        match &read {
            Poll::Ready(Some(Ok(bytes))) if bytes.is_empty() => {}
            Poll::Ready(Some(Ok(_))) => self.timers.restart(),
            Poll::Ready(Some(Err(_)) | None) => self.timers = Timers::default(),
            Poll::Pending => {
                if let Poll::Ready(timed_out) = self.timers.poll_silence(cx) {
                    return self.fail(timed_out);
                }
            }
        }
        read
    }
}

/// Prints no field: the bytes are payload.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
