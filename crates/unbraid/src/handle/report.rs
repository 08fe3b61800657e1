//! What a completion reports about its stream as a whole: its end, usage, metadata and warnings.

use unbraid_core::{ChoiceIndex, Metadata, StreamError, Usage, Warning};

use super::completions::Completions;
use crate::{
    estimate,
    state::{choice_log::ChoiceLog, completion::CompletionState},
    sync::shared::Watcher,
};

impl Completions {
    /// Waits until the stream is over and returns how it ended: `Ok` even if a choice did not finish.
    ///
    /// # Errors
    ///
    /// What ended the stream as a whole.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let broken = stream::iter([Err::<&str, _>(std::io::Error::other("no route to host"))]);
    /// let error = Completions::from_byte_stream(broken).closed().await.unwrap_err();
    /// assert_eq!(error.as_str(), "transport");
    /// # }
    /// ```
    pub async fn closed(&self) -> Result<(), StreamError> {
        Watcher::new(&self.completion)
            .wait_for(|state| state.closed.as_ref().map(|closed| closed.result.clone()))
            .await
    }

    /// Whether the stream is over, so that [`closed`](Self::closed) would return at once.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// assert!(!completions.is_closed()); // nothing has been read yet
    /// completions.closed().await?;
    /// assert!(completions.is_closed());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.completion.read(|state| state.closed.is_some())
    }

    /// Waits until the stream is over and returns its token counts: of the prompt, of each choice, and of all. It never
    /// fails; what is not known is `None`.
    ///
    /// They are what the server reported. If the builder was given a [`tokenizer`](crate::CompletionsBuilder::tokenizer),
    /// it counts what the server did not report when usage is first asked for, and such counts are marked in
    /// [`Usage::estimated`]: a choice's tokens from what arrived of it, the prompt's from the
    /// [`request`](crate::CompletionsBuilder::request) if it was given. Counting runs on a blocking thread of the runtime,
    /// or on this task if no such thread is free; without a runtime it is left out.
    ///
    /// The usage concerns the whole stream: a choice's own end does not wait for it (U14).
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe. Dropping the future only loses a count that is in progress; the next call counts again.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, UsageSource};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"three short words\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = || stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let usage = Completions::from_byte_stream(bytes()).usage().await; // this server reported none
    /// assert_eq!((usage.completion_tokens, usage.source), (None, UsageSource::Absent));
    ///
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let usage = Completions::builder().tokenizer(words).from_byte_stream(bytes()).usage().await;
    /// assert_eq!((usage.completion_tokens, usage.source), (Some(3), UsageSource::Estimated));
    /// # }
    /// ```
    pub async fn usage(&self) -> Usage {
        let reported = self.reported_usage().await;
        estimate::estimated(&self.completion, reported).await
    }

    pub(super) async fn reported_usage(&self) -> Usage {
        Watcher::new(&self.completion)
            .wait_for(|state| state.closed.is_some().then(|| state.usage()))
            .await
    }

    /// What the stream has said about itself so far: id, model, time, other fields.
    ///
    /// Of [merged](Self::merge) sources these are the metadata of the first one that sent any. If the sources' dialects
    /// differ, they hold only what all have in common; see [`choice_metadata`](Self::choice_metadata).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"model\":\"gpt-4o\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// completions.first().await?;
    /// assert_eq!(completions.metadata().model.as_deref(), Some("gpt-4o"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn metadata(&self) -> Metadata {
        self.completion.read(CompletionState::metadata)
    }

    /// What the source of a choice has said about itself so far: its dialect, model, id. `None` before the choice has
    /// appeared.
    ///
    /// Of one stream it is the same as [`metadata`](Self::metadata). [Merged](Self::merge) sources each have their own.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Dialect, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let ollama = &b"{\"model\":\"qwen3\",\"message\":{\"content\":\"Hi\"},\"done\":true,\"done_reason\":\"stop\"}\n"[..];
    /// let cohere = &br#"{"id":"1","finish_reason":"COMPLETE","message":{"role":"assistant","content":[{"type":"text","text":"Ho"}]}}"#[..];
    /// let completions = Completions::merge([ollama, cohere].map(Source::from_reader));
    /// completions.closed().await?;
    /// let ollama = completions.choice_metadata(0).unwrap();
    /// assert_eq!((ollama.dialect(), ollama.model.as_deref()), (Some(Dialect::Ollama), Some("qwen3")));
    /// let cohere = completions.choice_metadata(1).unwrap();
    /// assert_eq!(cohere.dialect(), Some(Dialect::Cohere));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn choice_metadata(&self, choice: impl Into<ChoiceIndex>) -> Option<Metadata> {
        let choice = choice.into();
        self.completion.read(|state| {
            let source = state.sources.of_choice(choice)?;
            Some(source.metadata.clone())
        })
    }

    /// Waits until the source of a choice is over and returns the usage that it reported, with the provider's own object in
    /// [`Usage::raw`]. `None` if the stream has closed without the choice. Nothing is counted.
    ///
    /// A source with several choices reports one usage for all of them. Of one stream it is what
    /// [`usage`](Self::usage) returns without a tokenizer.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: dropping the future loses nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let ollama = &b"{\"message\":{\"content\":\"Hi\"},\"done\":true,\"eval_count\":2}\n"[..];
    /// let completions = Completions::merge([Source::from_reader(ollama)]);
    /// let usage = completions.choice_usage(0).await.unwrap();
    /// assert_eq!(usage.completion_tokens, Some(2));
    /// assert_eq!(usage.raw["eval_count"], 2);
    /// # }
    /// ```
    pub async fn choice_usage(&self, choice: impl Into<ChoiceIndex>) -> Option<Usage> {
        let choice = choice.into();
        Watcher::new(&self.completion)
            .wait_for(|state| match state.sources.of_choice(choice) {
                Some(source) => source
                    .closed
                    .is_some()
                    .then(|| Some(state.usage_of(source))),
                None => state.closed.is_some().then_some(None),
            })
            .await
    }

    /// What was tolerated so far, on the stream and on its choices, in the order of the events.
    ///
    /// As many are kept as [`Limits`](crate::Limits) allow; [`warnings_dropped`](Self::warnings_dropped) counts the others.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {not json}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::from_byte_stream(bytes);
    /// completions.closed().await?;
    /// for warning in completions.warnings() {
    ///     eprintln!("{} (event {}): {}", warning.code, warning.event_index, warning.message);
    /// }
    /// # assert_eq!(completions.warnings().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let (mut warnings, logs): (Vec<Warning>, _) = self
            .completion
            .read(|state| (state.warnings().cloned().collect(), state.choices.clone()));
        for log in logs {
            log.read(|state| warnings.extend_from_slice(state.transcript.warnings()));
        }
        warnings.sort_by_key(|warning| warning.event_index);
        warnings
    }

    /// How many warnings were not kept, because there were more than [`Limits`](crate::Limits) allow.
    ///
    /// While the stream is open the count may lag behind by a few events.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Limits};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{}}]}\n\ndata: {not json}\n\ndata: {nor this}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let mut limits = Limits::default();
    /// limits.warnings = 1;
    /// let completions = Completions::builder().limits(limits).from_byte_stream(bytes);
    /// completions.closed().await?;
    /// assert_eq!((completions.warnings().len(), completions.warnings_dropped()), (1, 1));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn warnings_dropped(&self) -> u64 {
        let (dropped, logs) = self
            .completion
            .read(|state| (state.warnings_dropped(), state.choices.clone()));
        let on_choice = |log: &ChoiceLog| log.read(|state| state.transcript.warnings_dropped());
        dropped + logs.iter().map(on_choice).sum::<u64>()
    }
}
