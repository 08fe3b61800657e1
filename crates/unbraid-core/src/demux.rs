//! `Demux`: the whole core in one synchronous object.

mod choice_table;

use std::sync::Arc;

use serde_json::Value;

use crate::{
    ChoiceError, ChoiceIndex, ChoiceOutcome, Config, Metadata, Sequenced, StreamError, Transcript,
    Update, Usage, Warning, pipeline::Pipeline,
};
use choice_table::ChoiceTable;

/// Separates one completion stream into its choices, synchronously: bytes in, events out, and a transcript of every choice.
///
/// The events do not depend on how the bytes are cut into reads. Everything is kept until the `Demux` is dropped, within
/// [`Limits`](crate::Limits). To follow a stream as it arrives, take the events after each read.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Event, Config};
///
/// let mut demux = Demux::new(Config::default());
/// let mut text = String::new();
/// for read in ["data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n", "\ndata: [DONE]\n\n"] {
///     demux.feed(read.as_bytes());
///     while let Some(event) = demux.next_event() {
///         if let Event::Content(delta) = event.event {
///             text.push_str(delta);
///         }
///     }
/// }
/// demux.finish();
/// assert_eq!(text, "He");
/// assert!(demux.closed().unwrap().is_ok());
/// ```
///
/// The state can be read at any time, while the stream is open and after its end:
///
/// ```
/// # use unbraid_core::{ChoiceIndex, Config, Demux};
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"model\":\"m1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
/// demux.feed(b"data: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\n");
/// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().content, "Hi");
/// assert_eq!(demux.metadata().model.as_deref(), Some("m1"));
/// assert_eq!(demux.usage().completion_tokens, Some(1));
/// assert_eq!((demux.warnings().len(), demux.warnings_dropped()), (0, 0));
/// ```
#[derive(Debug)]
pub struct Demux {
    pipeline: Pipeline<ChoiceTable>,
}

impl Demux {
    /// A demultiplexer at the start of a stream.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let config = Arc::new(config);
        let choices = ChoiceTable::new(&config);
        Self {
            pipeline: Pipeline::new(config, choices),
        }
    }

    /// Reads the next bytes of the stream. Bytes after the stream's end are ignored (S26).
    pub fn feed(&mut self, bytes: &[u8]) {
        self.pipeline.feed(bytes);
    }

    /// Reads an update that was decoded elsewhere, in place of bytes.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, Config, Update};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed_update(&Update::default().with_choice(ChoiceIndex(0)).with_content("Hi").with_last_of_event(true));
    /// demux.finish();
    /// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().content, "Hi");
    /// ```
    pub fn feed_update(&mut self, update: &Update<'_>) {
        self.pipeline.feed_update(update);
    }

    /// The source has ended, and every open choice ends with it. A second call does nothing.
    pub fn finish(&mut self) {
        self.pipeline.finish();
    }

    /// The source has failed, or the caller gives up: every open choice ends with this error.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, ChoiceEnd, Config, StreamError};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He\"}}]}\n\n");
    /// demux.abort(StreamError::Cancelled);
    /// assert!(matches!(demux.choice(ChoiceIndex(0)).unwrap().end(), Some(ChoiceEnd::Cancelled)));
    /// ```
    pub fn abort(&mut self, error: StreamError) {
        self.pipeline.abort(error);
    }

    /// Ends one choice: as `cancelled`, and its further updates are dropped, or as `finished` if its finish reason has arrived.
    /// That of Gemini counts at the end of the body, because content may follow it. Nothing happens if it has ended or never appeared.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, ChoiceEnd, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// demux.cancel(ChoiceIndex(0));
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" dropped\"}}]}\n\n");
    /// let choice = demux.choice(ChoiceIndex(0)).unwrap();
    /// assert!(matches!(choice.end(), Some(ChoiceEnd::Cancelled)));
    /// assert_eq!(choice.message().content, "Hi");
    /// ```
    pub fn cancel(&mut self, choice: ChoiceIndex) {
        if let Some(slot) = self.pipeline.router().slot(choice) {
            let _ended_before = !self.pipeline.cancel(slot);
        }
    }

    /// Reports that no byte arrived for a while. Choices with a finish reason end, and a stream
    /// [after `[DONE]`](Self::is_after_done) closes.
    ///
    /// The core has no clock. The caller waits for bytes and decides how long is idle (the actors take 250 ms).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
    /// assert!(demux.result(ChoiceIndex(0)).is_none(), "more may follow");
    /// demux.handle_idle();
    /// assert!(demux.result(ChoiceIndex(0)).is_some());
    /// ```
    pub fn handle_idle(&mut self) {
        self.pipeline.handle_idle();
    }

    /// Whether `[DONE]` arrived and only usage is still read ([`Config::usage_after_done`]).
    ///
    /// Every choice has ended then, and only the stream is open. The caller bounds the wait for further bytes (the actors
    /// take 100 ms) and then calls [`handle_idle`](Self::handle_idle), which closes the stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default().with_usage_after_done(true));
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\n");
    /// assert!(demux.is_after_done());
    /// demux.feed(b"data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n");
    /// demux.handle_idle();
    /// assert!(demux.closed().is_some());
    /// assert_eq!(demux.usage().completion_tokens, Some(2));
    /// ```
    #[must_use]
    pub fn is_after_done(&self) -> bool {
        self.pipeline.router().is_after_done()
    }

    /// The next event in the order of the stream, borrowed until the next call.
    ///
    /// `None` means that more bytes are needed or, once [`closed`](Self::closed) is known, that there are no more.
    #[inline]
    pub fn next_event(&mut self) -> Option<Sequenced<&str>> {
        self.pipeline.sink.next_event()
    }

    /// Drops the events that were not taken, for a caller that needs only the transcripts.
    pub(crate) fn skip_events(&mut self) {
        self.pipeline.sink.skip_events();
    }

    /// The result of the stream, once it is closed: `Ok` even if a choice did not finish.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// assert!(matches!(demux.closed(), Some(Ok(()))));
    /// ```
    #[must_use]
    pub fn closed(&self) -> Option<&Result<(), StreamError>> {
        self.pipeline.router().closed()
    }

    /// The transcript of one choice so far.
    #[must_use]
    pub fn choice(&self, index: ChoiceIndex) -> Option<&Transcript> {
        let slot = self.pipeline.router().slot(index)?;
        self.pipeline.sink.transcript(slot)
    }

    /// The transcripts of all choices, in order of first appearance.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// let texts: Vec<String> = demux.choices().map(|choice| choice.message().content).collect();
    /// assert_eq!(texts, ["Hi"]);
    /// ```
    pub fn choices(&self) -> impl Iterator<Item = &Transcript> {
        self.pipeline.sink.transcripts()
    }

    /// The result of a choice; `None` while it is open, and if it never appeared.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Demux, Config};
    /// # let mut demux = Demux::new(Config::default());
    /// # demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// assert_eq!(demux.result(ChoiceIndex(0)).unwrap()?.message.content, "Hi");
    /// assert!(demux.result(ChoiceIndex(1)).is_none());
    /// # Ok::<(), unbraid_core::ChoiceError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ChoiceError`] for every end but `finished` and `done_without_finish`; it holds what had arrived.
    #[must_use]
    pub fn result(&self, index: ChoiceIndex) -> Option<Result<ChoiceOutcome, ChoiceError>> {
        self.choice(index)?.result()
    }

    /// The response without streaming, as far as it has arrived; see [`aggregate`](crate::aggregate()).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Config, Demux};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    /// assert_eq!(demux.aggregate()["choices"][0]["message"]["content"], "Hi");
    /// ```
    #[must_use]
    pub fn aggregate(&self) -> Value {
        crate::aggregate(self.metadata(), &self.usage(), self.choices())
    }

    /// The same as JSON text, with every number unchanged; see [`aggregate_json`](crate::aggregate_json()).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Config, Demux};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"created\":7,\"seed\":12345678901234567890123,\"choices\":[]}\n\ndata: [DONE]\n\n");
    /// assert!(demux.aggregate_json().contains(r#""seed":12345678901234567890123"#));
    /// ```
    #[must_use]
    pub fn aggregate_json(&self) -> String {
        crate::aggregate_json(self.metadata(), &self.usage(), self.choices())
    }

    /// Usage as the server reported it, so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.pipeline.router().usage()
    }

    /// The envelope of the stream.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        self.pipeline.router().metadata()
    }

    /// The halves of characters at the end of a choice's reasoning, content, refusal and transcript of its audio.
    pub(crate) fn waiting_halves(&self, choice: ChoiceIndex) -> [Option<u16>; 4] {
        let slot = self.pipeline.router().slot(choice);
        slot.map_or([None; 4], |slot| self.pipeline.sink.waiting_halves(slot))
    }

    /// How many events were decoded, and how many of them by a template, without parsing.
    pub(crate) fn template_hits(&self) -> (u64, u64) {
        self.pipeline.update_reader().template_hits()
    }

    /// All warnings, of the stream and of its choices, in the order of their events.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// assert_eq!(demux.warnings()[0].to_string(), "event 0: choice 0: the choice index is missing (E8)");
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let on_choices = self.choices().flat_map(Transcript::warnings);
        let mut warnings: Vec<Warning> = self
            .pipeline
            .router()
            .warnings()
            .iter()
            .chain(on_choices)
            .cloned()
            .collect();
        warnings.sort_by_key(|warning| warning.event_index);
        warnings
    }

    /// How many further warnings there were; see [`Limits::warnings`](crate::Limits::warnings).
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        let on_choices = self.choices().map(Transcript::warnings_dropped);
        self.pipeline.router().warnings_dropped() + on_choices.sum::<u64>()
    }
}

#[cfg(test)]
mod tests;
