//! The methods that start reading.

use std::sync::Arc;

use futures::Stream;
use tokio::{io::AsyncRead, sync::OnceCell, time::Instant};
use unbraid_core::{BoxError, StreamError, Update};

use super::CompletionsBuilder;
use crate::{
    control::{ReaderControl, ReaderControls},
    handle::completions::Completions,
    reader::{Reader, has_time_driver, numbering::Numbering},
    source::Source,
    state::completion::{CompletionState, CompletionWriter, Estimate},
    sync::shared::Shared,
};

impl CompletionsBuilder {
    /// Reads a stream of byte chunks, cut anywhere: an HTTP body of server-sent events.
    ///
    /// Reading starts at once. Dropping the last handle of the completion drops the stream.
    ///
    /// # Errors
    ///
    /// This method itself never fails. Without a tokio runtime the completion is closed with [`StreamError::NoRuntime`], and
    /// with [`StreamError::NoTimeDriver`] if a timeout is set and the runtime has no timers.
    ///
    /// # Examples
    ///
    /// See [`CompletionsBuilder`].
    pub fn from_byte_stream<S, B, E>(self, bytes: S) -> Completions
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
        E: Into<BoxError> + 'static,
    {
        self.read(Source::from_byte_stream(bytes))
    }

    /// Reads an [`AsyncRead`]: a file, a pipe, a socket.
    ///
    /// # Errors
    ///
    /// As [`from_byte_stream`](Self::from_byte_stream).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, FinishPolicy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"data: {\"choices\":[{\"index\":0,\"text\":\"Once\",\"finish_reason\":\"stop\"}]}\n\n"[..];
    /// let completions = Completions::builder().finish_policy(FinishPolicy::AtFinish).from_reader(body);
    /// assert_eq!(completions.first().await?.text().await?, "Once");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_reader<R>(self, reader: R) -> Completions
    where
        R: AsyncRead + Send + 'static,
    {
        self.read(Source::from_reader(reader))
    }

    /// Reads updates that were decoded elsewhere: by [`Updates`](crate::Updates), or from another provider's format.
    ///
    /// The updates of one event share their `event_index`, which never decreases, and the last of them has `last_of_event`
    /// set: there a choice with a finish reason ends. Limits on lines and events do not apply, nor does
    /// [`strict`](Self::strict).
    ///
    /// # Errors
    ///
    /// As [`from_byte_stream`](Self::from_byte_stream).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, FinishPolicy, Updates};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let updates = Updates::from_byte_stream(bytes);
    /// let builder = Completions::builder().finish_policy(FinishPolicy::AtFinish);
    /// assert_eq!(builder.from_updates(updates).first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_updates<S, E>(self, updates: S) -> Completions
    where
        S: Stream<Item = Result<Update<'static>, E>> + Send + 'static,
        E: Into<StreamError> + 'static,
    {
        self.read(Source::from_updates(updates))
    }

    /// Reads a source of any kind.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid::{Completions, Source};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = &b"data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\ndata: [DONE]\n\n"[..];
    /// let completions = Completions::builder().from_source(Source::from_reader(body));
    /// assert_eq!(completions.first().await?.text().await?, "Hi");
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_source(mut self, source: Source) -> Completions {
        self.config.dialect = source.dialect.or(self.config.dialect);
        self.config.redact = self.config.redact.and(source.redact.clone());
        self.read(source)
    }

    fn read(self, source: Source) -> Completions {
        let completion = self.share(CompletionState::of_one_source());
        let controls = ReaderControls::default();
        if let Some(control) = controls.add() {
            let writer = CompletionWriter::new(&completion, 0);
            let numbering = Numbering::default();
            self.start_reader(source, writer, &control, numbering, Instant::now());
        }
        Completions::new(completion, controls)
    }

    /// A completion's state, with what this builder knows of the request.
    pub(crate) fn share(&self, mut state: CompletionState) -> Arc<Shared<CompletionState>> {
        state.estimate = self.tokenizer.as_ref().map(|tokenizer| {
            Arc::new(Estimate {
                tokenizer: tokenizer.clone(),
                prompt: self.prompt.clone().unwrap_or_default(),
                counted: OnceCell::new(),
            })
        });
        Arc::new(Shared::new(state))
    }

    pub(crate) fn expected_choices(&self) -> Option<u32> {
        self.config.expect_choices
    }

    /// The configuration of one of several sources, which may have this many choices. Expecting one choice would read every
    /// index as 0 (E12) and mix the answers of a server that sends several, so it is expected only if the caller said so.
    pub(crate) fn of_source(mut self, choices: u32, source: &Source) -> Self {
        self.config.dialect = source.dialect.or(self.config.dialect);
        self.config.redact = self.config.redact.and(source.redact.clone());
        let folds = self.config.expect_choices == Some(1);
        self.config.expect_choices = (choices > 1 || folds).then_some(choices);
        self
    }

    /// Starts a reader of a completion that started at `started`. If that fails, the completion says why.
    pub(crate) fn start_reader(
        self,
        source: Source,
        writer: CompletionWriter,
        control: &Arc<ReaderControl>,
        numbering: Numbering,
        started: Instant,
    ) {
        if let Err(error) = self.check_runtime() {
            control.set_done();
            return writer.close_unread(error);
        }
        let reader = Reader::new(
            source,
            self.config,
            self.timeouts,
            writer,
            control,
            numbering,
            started,
        );
        control.set_task(Box::new(reader).spawn());
    }

    fn check_runtime(&self) -> Result<(), StreamError> {
        // Without a runtime tokio would panic.
        tokio::runtime::Handle::try_current().map_err(|_| StreamError::NoRuntime)?;
        if self.timeouts.any() && !has_time_driver() {
            return Err(StreamError::NoTimeDriver);
        }
        Ok(())
    }
}
