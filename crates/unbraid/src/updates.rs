//! The flat view: every update of every choice in one stream, no actors (the decision record's Option 2, R63).

mod fair;
mod flat;
mod gathered;
mod halves;

use std::{
    fmt,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use async_stream::stream;
use futures::{Stream, StreamExt, stream::FusedStream};
use unbraid_core::{BoxError, Config, StreamError, Update};

use fair::Fair;
use flat::{Flat, Next};
use gathered::Reads;
use halves::WithoutHalves;

use crate::apart::turn;

/// The updates of one stream, in the order of the wire; see [`from_byte_stream`](Self::from_byte_stream).
///
/// Dropping it closes the source. [`next`](Self::next) is cancel safe.
pub struct Updates {
    inner: WithoutHalves<Decoded>,
    done: bool,
}

type Decoded = Pin<Box<dyn Stream<Item = Result<Update<'static>, StreamError>> + Send>>;

impl Updates {
    /// Decodes a stream of byte chunks into flat updates, one after another, each with its choice index.
    ///
    /// Nothing is kept and nothing is checked beyond the format: no choice has an end here, and an error that the server
    /// reports is an [`Update`] with its `error` set. Texts can be added up as they are: where the server cut a character in
    /// two, it comes whole with the later update. The first `Err` is the last item.
    ///
    /// # Examples
    ///
    /// Both views at once: a tap on the updates, and the choices apart.
    ///
    /// ```
    /// use futures::{StreamExt, stream};
    /// use unbraid::{Completions, Updates};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = "data: {\"choices\":[{\"index\":2,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let tapped = Updates::from_byte_stream(bytes).inspect(|update| {
    ///     if let Ok(update) = update {
    ///         let text = update.content.as_ref().map_or("", |piece| &piece.text);
    ///         println!("{:?}: {text}", update.choice);
    ///     }
    /// });
    /// let completions = Completions::from_updates(tapped);
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

    /// As [`from_byte_stream`](Self::from_byte_stream), with options: `strict` and the limits on lines, events and depth apply.
    pub fn with_config<S, B, E>(bytes: S, config: &Config) -> Self
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + Send + 'static,
        E: Into<BoxError> + Send + 'static,
    {
        let mut flat = Flat::new(config);
        let stream = stream! {
            let bytes = pin!(bytes);
            let mut reads = Reads::new(Fair::new(bytes));
            while !flat.over {
                match reads.next().await {
                    Some(Ok(mut read)) => {
                        // One event at a time: a read may hold any number of them, and a stream is pulled.
                        while !flat.over {
                            let mut next = flat.next(&mut read);
                            if matches!(next, Next::Large) {
                                if reads.gather(&read) {
                                    break;
                                }
                                (flat, read, next) = Box::pin(flat.large(read)).await;
                                reads.job_ended();
                            }
                            match next {
                                Next::Event | Next::Large => {}
                                Next::Portion => turn().await,
                                Next::Read => break,
                            }
                            for item in flat.ready.drain(..) {
                                yield item;
                            }
                        }
                    }
                    Some(Err(error)) => flat = flat.end(Some(error.into())).await,
                    None => flat = flat.end(None).await,
                }
                for item in flat.ready.drain(..) {
                    yield item;
                }
            }
        };
        Self {
            inner: WithoutHalves::new(Box::pin(stream)),
            done: false,
        }
    }

    /// The next update; `None` once the stream is over.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future before it is ready loses nothing.
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
