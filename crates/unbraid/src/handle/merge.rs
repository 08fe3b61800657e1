//! Several sources read as one completion: a reader for each, one board for all.

use std::{ops::Range, sync::Arc};

use tokio::time::Instant;
use unbraid_core::StreamError;

use crate::{
    config::CompletionsBuilder,
    control::Controls,
    handle::completions::Completions,
    reader::numbering::Numbering,
    source::Source,
    state::completion::{Board, BoardWriter, Listing},
    state::merged::Joined,
    sync::shared::Watcher,
};

impl Completions {
    /// Reads several sources as one completion with the default settings; see [`CompletionsBuilder::merge`].
    pub fn merge<I: IntoIterator<Item = Source>>(sources: I) -> Self {
        Self::builder().merge(sources)
    }
}

impl CompletionsBuilder {
    /// Reads several sources as one completion: n requests of one choice look like one request of n choices.
    ///
    /// With [`expect_choices`](Self::expect_choices) each source has so many choices, else one. The choices of the first
    /// source have the indices from 0, those of the next one follow. Within a source the server's index counts, and a
    /// choice that has none of its own takes the lowest that is free; further choices are refused (E11).
    ///
    /// A source that fails is an error of its choices, which appear with it if they had not yet; the completion is
    /// [`closed`](Completions::closed) with an error only if all sources failed. [`Choice::cancel`](crate::Choice::cancel) closes the source if
    /// it has no other choice. Limits and timeouts hold for each source. [`metadata`](Completions::metadata) is that of
    /// the source that spoke first, [`usage`](Completions::usage) the [sum](unbraid_core::Usage::sum) over those that gave anything.
    /// [`Sequenced::sort_key`](unbraid_core::Sequenced::sort_key) orders the events of one source, not those of two.
    ///
    /// It never fails, as [`from_byte_stream`](Self::from_byte_stream) never does; without any source the stream is empty.
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
        let each = self.expected().unwrap_or(1);
        let (completions, source_set) = self.source_set();
        let mut first = 0_u32;
        for source in sources {
            let behind = first.saturating_add(each);
            source_set.add(source, first..behind);
            first = behind;
        }
        completions
    }

    /// A completion to which sources are added while it is read: for those that are not known beforehand.
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
    /// drop(source_set); // there will be no more
    /// completions.closed().await?;
    /// assert_eq!(completions.choice(1).await.unwrap().text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn source_set(self) -> (Completions, SourceSet) {
        let board = self.board(Some(Joined::new()));
        let controls = Arc::new(Controls::default());
        let completions = Completions::new(Arc::clone(&board), Arc::clone(&controls));
        let source_set = SourceSet {
            builder: self,
            board,
            controls,
            began: Instant::now(),
        };
        (completions, source_set)
    }
}

/// Adds sources to a completion; see [`CompletionsBuilder::source_set`].
///
/// It keeps nothing alive but the hope for more: while it lives the completion does not close. Dropping it says that
/// there will be no more sources.
pub struct SourceSet {
    builder: CompletionsBuilder,
    board: Arc<Board>,
    controls: Arc<Controls>,
    /// The timing of every choice counts from here, so that those of a source added later can be compared.
    began: Instant,
}

impl SourceSet {
    /// Begins to read a source whose choices get these indices: as many as it may have, and none that another one uses.
    ///
    /// `None` if the completion was cancelled or nobody holds it any more; the source is dropped then.
    pub fn add(&self, source: Source, indices: Range<u32>) -> Option<SourceHandle> {
        let control = self.controls.add()?;
        let end = indices.end;
        let begin = |listing: &mut Listing| listing.joined.as_mut().map(|joined| joined.begin(end));
        let number = self.board.change(begin)?;
        let board = BoardWriter::of_part(&self.board, number);
        let builder = self.builder.clone().expect_choices(indices.len() as u32);
        let numbering = Numbering::within(indices);
        builder.start(source, board, &control, numbering, self.began);
        Some(SourceHandle {
            board: Arc::clone(&self.board),
            number,
        })
    }
}

impl SourceSet {
    pub(crate) fn board(&self) -> &Board {
        &self.board
    }
}

impl Drop for SourceSet {
    fn drop(&mut self) {
        self.board.change(|listing| {
            if let Some(joined) = &mut listing.joined {
                joined.growing = false;
            }
            listing.close_if_all_have();
        });
    }
}

/// One source of a joined completion. It keeps nothing alive; dropping it does nothing.
#[derive(Clone)]
pub struct SourceHandle {
    board: Arc<Board>,
    number: usize,
}

impl SourceHandle {
    /// Waits until this source is over and tells how, as [`Completions::closed`] does for all of them.
    ///
    /// # Errors
    ///
    /// What ended the source.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn closed(&self) -> Result<(), StreamError> {
        let part =
            |listing: &Listing| Some(listing.part(self.number)?.closed.as_ref()?.result.clone());
        Watcher::new(&self.board).wait(part).await
    }

    /// How many choices it has brought so far.
    #[must_use]
    pub fn choices(&self) -> usize {
        self.board
            .read(|listing| listing.part(self.number).map_or(0, |part| part.logs.len()))
    }
}
