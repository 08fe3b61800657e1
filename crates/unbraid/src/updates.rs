//! The flat view: every update of every choice in one stream, no actors (the decision record's Option 2, R63).

mod fair;
mod halves;

use std::{
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use async_stream::stream;
use futures::{Stream, StreamExt, stream::FusedStream};
use unbraid_core::{BoxError, Options, StreamError, TransportError, Update, pipeline::Intake};

use fair::Fair;
use halves::WithoutHalves;

/// The updates of one stream, in the order of the wire; see [`updates`].
///
/// Dropping it closes the source. [`next`](Self::next) is cancel safe.
pub struct Updates {
    inner: WithoutHalves<Decoded>,
    done: bool,
}

type Decoded = Pin<Box<dyn Stream<Item = Result<Update<'static>, StreamError>> + Send>>;

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
/// use unbraid::{Completions, updates};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let body = "data: {\"choices\":[{\"index\":2,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let tapped = updates(bytes).inspect(|update| {
///     if let Ok(update) = update {
///         let text = update.content_update.as_ref().map_or("", |piece| &piece.text);
///         println!("{:?}: {text}", update.choice_index);
///     }
/// });
/// let completions = Completions::from_updates(tapped);
/// assert_eq!(completions.single().await?.text().await?, "Hi");
/// # Ok(())
/// # }
/// ```
pub fn updates<S, B, E>(bytes: S) -> Updates
where
    S: Stream<Item = Result<B, E>> + Send + 'static,
    B: AsRef<[u8]> + Send + 'static,
    E: Into<BoxError> + Send + 'static,
{
    updates_with(bytes, &Options::default())
}

/// As [`updates`], with options: `strict` and the limits on lines, events and depth apply.
pub fn updates_with<S, B, E>(bytes: S, options: &Options) -> Updates
where
    S: Stream<Item = Result<B, E>> + Send + 'static,
    B: AsRef<[u8]> + Send + 'static,
    E: Into<BoxError> + Send + 'static,
{
    let mut flat = Flat {
        intake: Intake::new(options),
        ready: Vec::new(),
    };
    let stream = stream! {
        let bytes = pin!(bytes);
        let mut bytes = Fair::new(bytes);
        loop {
            let mut more = true;
            match bytes.next().await {
                Some(Ok(read)) => {
                    // One event at a time: a read may hold any number of them, and a stream is pulled.
                    let mut input = read.as_ref();
                    while more && flat.event(&mut input, &mut more) {
                        for item in flat.ready.drain(..) {
                            yield item;
                        }
                    }
                }
                Some(Err(error)) => more = flat.broken(error.into()),
                None => more = flat.finish(),
            }
            for item in flat.ready.drain(..) {
                yield item;
            }
            if !more {
                break;
            }
        }
    };
    Updates {
        inner: WithoutHalves::new(Box::pin(stream)),
        done: false,
    }
}

/// An intake, and what it has decoded but not yet given.
struct Flat {
    intake: Intake,
    ready: Vec<Result<Update<'static>, StreamError>>,
}

impl Flat {
    /// Decodes the next event of a read; false when that is used up. An error leaves no `more` to read.
    fn event(&mut self, input: &mut &[u8], more: &mut bool) -> bool {
        let Self { intake, ready } = self;
        let mut keep = |update: &Update<'_>| ready.push(Ok(update.clone().into_owned()));
        match intake.next(input, &mut keep) {
            None => false,
            Some(Ok(())) => true,
            Some(Err(error)) => {
                ready.push(Err(error));
                *more = false;
                true
            }
        }
    }

    /// What had arrived whole comes before the error, as in [`Pipeline::fail`](unbraid_core::pipeline::Pipeline::fail).
    fn broken(&mut self, error: BoxError) -> bool {
        let Self { intake, ready } = self;
        // An event that has arrived but for its blank line is part of the answer (X14).
        let _of_the_cut = intake.finish(&mut |update| ready.push(Ok(update.clone().into_owned())));
        let error = TransportError::new(intake.bytes(), error);
        ready.push(Err(StreamError::Transport(Arc::new(error))));
        false
    }

    fn finish(&mut self) -> bool {
        let Self { intake, ready } = self;
        let last = intake.finish(&mut |update| ready.push(Ok(update.clone().into_owned())));
        if let Some(Err(error)) = last {
            ready.push(Err(error));
        }
        false
    }
}

impl Updates {
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
