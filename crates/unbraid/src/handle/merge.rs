//! Several sources read as one completion: one reader per source, and one state for all.

use std::{
    ops::Range,
    sync::{Arc, Weak},
};

use tokio::time::Instant;
use unbraid_core::StreamError;

use super::completions::Completions;
use crate::{
    config::CompletionsBuilder,
    control::{CancelOnDrop, ReaderControls},
    reader::numbering::Numbering,
    source::Source,
    state::{
        completion::{CompletionState, CompletionWriter},
        merged::SourceState,
    },
    sync::shared::{Shared, Watcher},
};

impl Completions {
    /// Reads several sources as one completion with the default configuration; see [`CompletionsBuilder::merge`].
    ///
    /// # Examples
    ///
    /// See [`Source`].
    pub fn merge<I: IntoIterator<Item = Source>>(sources: I) -> Self {
        Self::builder().merge(sources)
    }
}

impl CompletionsBuilder {
    /// Reads several sources as one completion: n requests for one choice look like one request for n choices.
    ///
    /// Each source has as many choices as [`Source::expect_choices`] or else [`expect_choices`](Self::expect_choices) says,
    /// otherwise one. The choices of the first source have the indices from 0, those of the next source follow. Within a
    /// source the server's index counts, and a choice that has none of its own takes the lowest that is free; further
    /// choices are refused (E11).
    ///
    /// If a source fails, its choices report the error, including those that had not appeared yet. The completion is
    /// [`closed`](Completions::closed) with an error only if all sources failed. [`Choice::cancel`](crate::Choice::cancel)
    /// closes a source that has no other choice. Limits and timeouts apply to each source.
    /// [`metadata`](Completions::metadata) is that of the first source that sent any, and [`usage`](Completions::usage) the
    /// [sum](unbraid_core::Usage::sum) over the sources that answered.
    ///
    /// Sources may be of different providers, each in its own dialect. Then the metadata of the completion hold only what
    /// they have in common, the raw object of its usage has the sums of the normalized counts, and
    /// [`choice_metadata`](Completions::choice_metadata) and [`choice_usage`](Completions::choice_usage) have what each
    /// source said of itself.
    ///
    /// [`Sequenced::sort_key`](unbraid_core::Sequenced::sort_key) orders the events of one source, not those of two.
    ///
    /// This method never fails, as [`from_byte_stream`](Self::from_byte_stream) never does. Without any source the stream is
    /// empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::stream;
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// let good = Source::from_byte_stream(stream::iter([Ok::<_, std::io::Error>(body)]));
    /// let bad = Source::from_byte_stream(stream::iter([Err::<&str, _>(std::io::Error::other("no route"))]));
    ///
    /// let completions = Completions::merge([good, bad]);
    /// assert_eq!(completions.choice(0).await.unwrap().text().await?, "Hi");
    /// let error = completions.choice(1).await.unwrap().text().await.unwrap_err();
    /// assert_eq!(error.to_string(), "choice 1: the source failed after 0 bytes"); // its source() says: no route
    /// completions.closed().await?; // one source was enough
    /// # Ok(())
    /// # }
    /// ```
    pub fn merge<I: IntoIterator<Item = Source>>(self, sources: I) -> Completions {
        let choices_per_source = self.expected_choices().unwrap_or(1).max(1);
        let (completions, source_set) = self.source_set();
        let mut start = 0_u32;
        for source in sources {
            let choices = source.choices.unwrap_or(choices_per_source);
            let end = start.saturating_add(choices);
            source_set.add(source, start..end);
            start = end;
        }
        completions
    }

    /// A completion to which sources are added while it is read, for sources that are not known beforehand.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\ndata: [DONE]\n\n"[..];
    /// let (completions, source_set) = Completions::builder().source_set();
    /// let first = source_set.add(Source::from_reader(body), 0..1).unwrap();
    /// first.closed().await?;
    /// source_set.add(Source::from_reader(body), 1..2);
    /// drop(source_set); // no more will be added
    /// completions.closed().await?;
    /// assert_eq!(completions.choice(1).await.unwrap().text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn source_set(self) -> (Completions, SourceSet) {
        let completion = self.share(CompletionState::of_several_sources());
        let completions = Completions::new(Arc::clone(&completion), ReaderControls::default());
        let source_set = SourceSet {
            builder: self,
            completion,
            handles: Arc::downgrade(&completions.guard),
            started: Instant::now(),
        };
        (completions, source_set)
    }
}

/// Adds sources to a completion; see [`CompletionsBuilder::source_set`].
///
/// While it lives, the completion stays open for more sources, and what was received is kept. It is not a handle of the
/// completion: when the last of those is dropped, reading stops. Dropping it means that there will be no more sources.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Source};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let (completions, source_set) = Completions::builder().source_set();
/// let source = source_set.add(Source::from_byte_stream(bytes), 0..1).unwrap();
/// source.closed().await?;
/// assert_eq!(source.choices(), 1);
/// drop(source_set); // no more will be added
/// completions.closed().await?;
/// # Ok(())
/// # }
/// ```
pub struct SourceSet {
    builder: CompletionsBuilder,
    completion: Arc<Shared<CompletionState>>,
    /// What the handles share. It is gone with the last of them.
    handles: Weak<CancelOnDrop>,
    /// The timing of every choice counts from here, so that the choices of sources added later can be compared.
    started: Instant,
}

impl SourceSet {
    /// Starts reading a source whose choices get these indices: as many as it may have.
    ///
    /// The range may overlap with that of another source, so that one source can bring what another one left out. The
    /// caller sees to it that no index comes twice, for example by waiting until the other source is
    /// [`closed`](SourceHandle::closed). No text is mixed otherwise: two sources that use an index have a choice each, and
    /// [`Completions::choice`] returns the one that appeared first. But they are cancelled together.
    ///
    /// Returns `None` if the completion was cancelled or has no handle left; then the source is dropped.
    ///
    /// # Examples
    ///
    /// See [`CompletionsBuilder::source_set`].
    pub fn add(&self, source: Source, indices: Range<u32>) -> Option<SourceHandle> {
        let control = self.handles.upgrade()?.controls.add()?;
        let number = self
            .completion
            .modify(|state| state.sources.add(indices.end));
        let writer = CompletionWriter::new(&self.completion, number);
        let builder = self.builder.clone();
        let builder = builder.of_source(indices.len() as u32, &source);
        let numbering = Numbering::within(indices);
        builder.start_reader(source, writer, &control, numbering, self.started);
        Some(SourceHandle {
            completion: Arc::clone(&self.completion),
            number,
        })
    }

    pub(super) fn completion(&self) -> &Shared<CompletionState> {
        &self.completion
    }
}

impl Drop for SourceSet {
    fn drop(&mut self) {
        self.completion.modify(|state| {
            state.sources.stop_accepting();
            state.close_if_all_have();
        });
    }
}

/// One source of a merged completion.
///
/// It is not a handle of the completion: when the last of those is dropped, reading stops. It keeps what was received, so
/// drop it when it is no longer needed; nothing else happens then.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use unbraid::{Completions, Source};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
/// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
/// let (completions, source_set) = Completions::builder().source_set();
/// let source = source_set.add(Source::from_byte_stream(bytes), 0..1).unwrap();
/// source.closed().await?;
/// assert_eq!(source.choices(), 1);
/// drop(source_set); // no more will be added
/// completions.closed().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SourceHandle {
    completion: Arc<Shared<CompletionState>>,
    number: usize,
}

impl SourceHandle {
    /// Waits until this source is over and returns how it ended, as [`Completions::closed`] does for all of them.
    ///
    /// # Errors
    ///
    /// What ended the source.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// See [`CompletionsBuilder::source_set`].
    pub async fn closed(&self) -> Result<(), StreamError> {
        let result = |source: &SourceState| Some(source.closed.as_ref()?.result.clone());
        Watcher::new(&self.completion)
            .wait_for(|state| state.sources.get(self.number).and_then(result))
            .await
    }

    /// How many choices it has brought so far.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\ndata: [DONE]\n\n"[..];
    /// let (completions, source_set) = Completions::builder().source_set();
    /// let source = source_set.add(Source::from_reader(body), 0..4).unwrap();
    /// source.closed().await?;
    /// assert_eq!(source.choices(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn choices(&self) -> usize {
        self.completion.read(|state| {
            let source = state.sources.get(self.number);
            source.map_or(0, |source| source.logs.len())
        })
    }
}
