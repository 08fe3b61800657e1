//! The body of an answer, for who wants its bytes as well.

mod encoding;
mod first_byte;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt};
use unbraid::{BoxError, Completions, CompletionsBuilder, Redact};

pub(crate) use self::{
    encoding::{ACCEPTED, Incoming, incoming},
    first_byte::FirstByte,
};
use crate::response::Answer;

/// The body of a successful answer: its bytes as they come, unpacked if they were compressed.
///
/// [`Client::open`](crate::Client::open) gives it, to be recorded or forwarded while it is read. Dropping it before its end closes the
/// connection. If its first byte is late, by the client's settings, its error is a
/// [`StreamError::TimedOut`](unbraid::StreamError::TimedOut).
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
/// let settings = body.settings();
/// let recorded = body.and_then(move |bytes| {
///     let written = file.write_all(&bytes);
///     async { Ok(written.map(|()| bytes)?) }
/// });
/// println!("{}", settings.from_byte_stream(recorded).first().await?.text().await?);
/// # Ok(())
/// # }
/// ```
pub struct Body {
    bytes: FirstByte,
    settings: CompletionsBuilder,
    redact: Redact,
}

impl Body {
    pub(crate) fn new(answer: Answer, settings: CompletionsBuilder, redact: Redact) -> Self {
        Self {
            bytes: answer.body(),
            settings,
            redact,
        }
    }

    /// How this body is to be read: the client's settings, what was asked, and what is left of the total timeout.
    #[must_use]
    pub fn settings(&self) -> CompletionsBuilder {
        self.settings.clone()
    }

    /// What hides the client's secrets in the errors that the server reports within the body.
    ///
    /// The [settings](Self::settings) have it already. Whoever reads the bytes in another way, by [`Demux`](unbraid::Demux) or
    /// [`Updates::with_config`](unbraid::Updates::with_config), gives it with the [options](unbraid::Config::redact). The bytes themselves are
    /// those of the server.
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
    /// let options = Config::default().with_redact(body.redact());
    /// let mut updates = Updates::with_config(body, &options);
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
    #[must_use]
    pub fn into_completions(self) -> Completions {
        self.settings.from_byte_stream(self.bytes)
    }
}

impl Stream for Body {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.bytes.poll_next_unpin(cx)
    }
}

/// By hand: what has come is nobody's log entry.
impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}
