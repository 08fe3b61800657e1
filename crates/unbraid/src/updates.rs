//! The flat view: every update of every choice in one stream, without actors.

mod decoder;
mod gathered;
mod surrogates;
mod yielding;

use std::{
    fmt,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use async_stream::stream;
use futures::{Stream, StreamExt, stream::FusedStream};
use unbraid_core::{BoxError, Config, StreamError, Update};

use decoder::{FlatDecoder, Step};
use gathered::GatheredReads;
use surrogates::JoinedSurrogates;
use yielding::YieldingSource;

use crate::blocking::yield_once;

/// The updates of one stream, in the order of the wire; see [`from_byte_stream`](Self::from_byte_stream).
///
/// Dropping it drops the source. [`next`](Self::next) is cancel safe.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::Updates;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let mut updates = Updates::from_byte_stream(bytes);
/// while let Some(update) = updates.next().await {
///     let update = update?;
///     if let (Some(choice), Some(content)) = (update.choice, update.content) {
///         println!("{choice}: {}", content.text);
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "streams do nothing unless polled"]
pub struct Updates {
    inner: JoinedSurrogates<Decoded>,
    done: bool,
}

type Decoded = Pin<Box<dyn Stream<Item = Result<Update<'static>, StreamError>> + Send>>;

impl Updates {
    /// Decodes a stream of byte chunks into flat updates, one after another, each with its choice index.
    ///
    /// Nothing is kept, and nothing is checked beyond the format: no choice has an end here, and an error that the server
    /// reports is an [`Update`] with its `error` set. The texts of deltas can be concatenated as they are: a character that the
    /// server cut in two is part of the later update. A message in place of deltas
    /// ([`is_full_message`](Update::is_full_message)) is as it was sent.
    ///
    /// The stream ends with the update that has [`done`](Update::done) set, although the connection may stay open (S25), unless
    /// the configuration asks for [`usage_after_done`](Config::usage_after_done). The first `Err` is the last item:
    /// [`StreamError::Transport`] for an error of the source, which is kept as it is if it is a [`StreamError`] itself.
    ///
    /// # Examples
    ///
    /// Both views at once: the updates as they pass by, and the separate choices.
    ///
    /// ```
    /// use futures::{StreamExt, stream};
    /// use unbraid::{Completions, Updates};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = "data: {\"choices\":[{\"index\":2,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let updates = Updates::from_byte_stream(bytes).inspect(|update| {
    ///     if let Ok(update) = update {
    ///         let text = update.content.as_ref().map_or("", |fragment| &fragment.text);
    ///         println!("{:?}: {text}", update.choice);
    ///     }
    /// });
    /// let completions = Completions::from_updates(updates);
    /// assert_eq!(completions.first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_byte_stream<S, B, E>(bytes: S) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        Self::with_config(bytes, &Config::default())
    }

    /// As [`from_byte_stream`](Self::from_byte_stream), with a configuration: `strict` and the limits on lines, events and
    /// depth apply.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::stream;
    /// use unbraid::{Config, Updates};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let mut config = Config::default();
    /// config.strict = true;
    /// let bytes = stream::iter([Ok::<_, std::io::Error>("no event stream\n\n")]);
    /// let mut updates = Updates::with_config(bytes, &config);
    /// assert!(updates.next().await.unwrap().is_err());
    /// # }
    /// ```
    pub fn with_config<S, B, E>(bytes: S, config: &Config) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let mut decoder = FlatDecoder::new(config);
        let stream = stream! {
            let bytes = pin!(bytes);
            let mut reads = GatheredReads::new(YieldingSource::new(bytes));
            while !decoder.done {
                match reads.next().await {
                    Some(Ok(mut reading)) => {
                        // One event at a time: a read may hold any number of them, and the consumer sets the pace.
                        while !decoder.done {
                            let mut step = decoder.step(&mut reading);
                            if matches!(step, Step::Large) {
                                if reads.gather(&reading) {
                                    break;
                                }
                                (decoder, reading, step) =
                                    Box::pin(decoder.decode_large(reading)).await;
                                reads.record_job();
                            }
                            match step {
                                Step::Event | Step::Large => {}
                                Step::Portion => yield_once().await,
                                Step::ReadAgain => break,
                            }
                            for item in decoder.ready.drain(..) {
                                yield item;
                            }
                        }
                    }
                    Some(Err(error)) => decoder = decoder.end(Some(error.into())).await,
                    None => decoder = decoder.end(None).await,
                }
                for item in decoder.ready.drain(..) {
                    yield item;
                }
            }
        };
        Self {
            inner: JoinedSurrogates::new(Box::pin(stream)),
            done: false,
        }
    }

    /// The next update; `None` once the stream is over.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. If the future is dropped before it is ready, no update is lost.
    pub async fn next(&mut self) -> Option<Result<Update<'static>, StreamError>> {
        StreamExt::next(self).await
    }
}

impl Stream for Updates {
    type Item = Result<Update<'static>, StreamError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.done {
            return Poll::Ready(None);
        }
        let polled = Pin::new(&mut self.inner).poll_next(cx);
        self.done = matches!(polled, Poll::Ready(None));
        polled
    }
}

impl FusedStream for Updates {
    fn is_terminated(&self) -> bool {
        self.done
    }
}

impl fmt::Debug for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Updates")
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}
