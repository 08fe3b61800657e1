//! How a stream is read, and the ways to start reading.

use std::{sync::Arc, time::Duration};

use futures::Stream;
use serde_json::Value;
use tokio::{io::AsyncRead, time::Instant};
use unbraid_core::{
    BoxError, Config, FinishPolicy, Limits, Prompt, StreamError, ThinkTags, Update, tool_names,
};

use crate::{
    control::{Control, Controls},
    handle::completions::Completions,
    reader::{Reader, Timeouts, has_time_driver, numbering::Numbering},
    source::Source,
    state::completion::{Board, BoardWriter, Listing},
    state::merged::Joined,
};

/// Settings of a completion's stream. The defaults suit every server that we know; all timeouts are off.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use futures::stream;
/// use unbraid::{Completions, StreamError};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let silent = stream::pending::<Result<Vec<u8>, std::io::Error>>();
/// let completions = Completions::builder()
///     .expect_choices(2)
///     .first_byte_timeout(Duration::from_secs(30))
///     .from_byte_stream(silent);
/// assert!(matches!(completions.closed().await, Err(StreamError::TimedOut(_))));
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct CompletionsBuilder {
    options: Config,
    timeouts: Timeouts,
    prompt: Arc<Prompt>,
}

impl CompletionsBuilder {
    /// All settings that [`Demux`](crate::Demux) takes, too, at once.
    #[must_use]
    pub fn config(mut self, options: Config) -> Self {
        self.options = options;
        self
    }

    /// How many choices were asked for.
    ///
    /// It is optional knowledge. With 1 every index is read as 0 (E12), with a warning if that mixed several answers (E13); with more, a
    /// further choice is warned about (E29), and a stream of which every choice was cancelled is closed at once. Fewer choices at
    /// the stream's end are warned about, too (E30).
    #[must_use]
    pub fn expect_choices(mut self, n: u32) -> Self {
        self.options.expect_choices = Some(n);
        self
    }

    /// The request that is answered: the JSON body as it was sent. It makes the prompt's tokens countable, and its tools
    /// decide what the name of a call is that comes in pieces (T16), unless [`config`](Self::config) named some. Of a list
    /// of prompts each is counted where a server reports them one by one (E15).
    ///
    /// What counting needs is kept (see [`Prompt`]), and only the feature `tokens` counts. Without a request the prompt's
    /// tokens are `None` unless the server reports them.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use serde_json::json;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let request = json!({ "model": "gpt-4o", "stream": true, "messages": [{ "role": "user", "content": "Hello" }] });
    /// let completions = Completions::builder().request(&request).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn request(mut self, request: &Value) -> Self {
        self.prompt = Arc::new(Prompt::from_request(request));
        if self.options.choices_per_prompt.is_none() {
            self.options.choices_per_prompt = self.prompt.choices_per_prompt();
        }
        if self.options.tools.is_empty() {
            self.options.tools = tool_names(request);
        }
        self
    }

    /// Ends the stream at the first line that is neither data, a comment nor blank (R04), at the first payload that is
    /// not JSON (R07), and at the first delta that cannot be merged with those before it: a field changes its type (R11),
    /// or comes again and is not text (R14).
    ///
    /// The fields `event`, `id` and `retry` are refused, too.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.options.strict = strict;
        self
    }

    /// The names of a delta's fields that hold reasoning, in the order of their priority, in place of the
    /// [default ones](Config::reasoning_keys) (R3, R5).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"deliberation\":\"Hm.\"},\"finish_reason\":\"stop\"}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::builder().reasoning_keys(["deliberation", "reasoning"]).from_byte_stream(bytes);
    /// let finished = completions.first().await.unwrap().finished().await.unwrap();
    /// assert_eq!(finished.message.reasoning, "Hm.");
    /// # }
    /// ```
    #[must_use]
    pub fn reasoning_keys(mut self, keys: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.options.reasoning_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// When a choice whose finish reason has come counts as ended.
    #[must_use]
    pub fn finish_policy(mut self, policy: FinishPolicy) -> Self {
        self.options.finish_policy = policy;
        self
    }

    /// Whether reasoning between `<think>` and `</think>` in the content is separated from it (C18); off by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use futures::stream;
    /// use unbraid::{Completions, ThinkTags};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>Hm.</think>Yes.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    /// let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::builder().think_tags(ThinkTags::Split).from_byte_stream(bytes);
    /// let answer = completions.first().await?.finished().await?;
    /// assert_eq!((&*answer.message.reasoning, &*answer.message.content), ("Hm.", "Yes."));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn think_tags(mut self, tags: ThinkTags) -> Self {
        self.options.think_tags = tags;
        self
    }

    /// Whether usage that comes after `[DONE]` counts (U13); off by default.
    ///
    /// Every choice still ends at `[DONE]`. The stream closes, and with it [`usage`](Completions::usage) and
    /// [`choices`](Completions::choices), when the body ends, 64 KiB later, or 100 ms later; without
    /// [`timers`](Self::implicit_timers) as soon as the source has nothing ready.
    #[must_use]
    pub fn usage_after_done(mut self, read: bool) -> Self {
        self.options.usage_after_done = read;
        self
    }

    /// The bounds of what is kept.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Ends the stream if no byte at all has come after this long.
    #[must_use]
    pub fn first_byte_timeout(mut self, after: Duration) -> Self {
        self.timeouts.first_byte = Some(after);
        self
    }

    /// Ends the stream if no byte has come for this long since the last one. Comments count as bytes (S4).
    #[must_use]
    pub fn idle_timeout(mut self, after: Duration) -> Self {
        self.timeouts.idle = Some(after);
        self
    }

    /// Ends the stream if it has not closed by itself after this long.
    #[must_use]
    pub fn total_timeout(mut self, after: Duration) -> Self {
        self.timeouts.total = Some(after);
        self
    }

    /// Whether the library may use timers of its own accord; `true` unless said otherwise.
    ///
    /// With timers a choice whose finish reason has come ends after 250 ms of silence, and what is left of a finished
    /// body is read for at most 100 ms. Say `false` in a runtime without a time driver: tokio cannot be asked whether
    /// there is one, and the attempt is a caught panic whose message is printed. Without timers such a choice ends with
    /// the next event, and nothing is waited for.
    #[must_use]
    pub fn implicit_timers(mut self, timers: bool) -> Self {
        self.timeouts.implicit = timers;
        self
    }

    /// Reads a stream of byte chunks, cut anywhere: an HTTP body of server-sent events.
    ///
    /// It never fails: without a tokio runtime the stream is closed with [`StreamError::NoRuntime`], and with
    /// [`StreamError::NoTimeDriver`] if a timeout is set and the runtime has no timers.
    pub fn from_byte_stream<S, B, E>(self, bytes: S) -> Completions
    where
        S: Stream<Item = Result<B, E>> + Send + 'static,
        B: AsRef<[u8]> + 'static,
        E: Into<BoxError> + 'static,
    {
        self.read(Source::from_byte_stream(bytes))
    }

    /// Reads anything that is an [`AsyncRead`]: a file, a pipe, a socket. Fails as [`from_byte_stream`](Self::from_byte_stream) does.
    pub fn from_reader<R>(self, reader: R) -> Completions
    where
        R: AsyncRead + Send + 'static,
    {
        self.read(Source::from_reader(reader))
    }

    /// Reads updates that were decoded elsewhere (R64): by [`updates`](crate::updates()), or from another provider's format.
    ///
    /// Updates of one event share their `at`, which never falls, and the last of them has `last` set: by that a choice
    /// with a finish reason ends at its event's boundary. Limits on lines and events do not apply, nor does `strict`. Fails as [`from_byte_stream`](Self::from_byte_stream) does.
    pub fn from_updates<S, E>(self, updates: S) -> Completions
    where
        S: Stream<Item = Result<Update<'static>, E>> + Send + 'static,
        E: Into<StreamError> + 'static,
    {
        self.read(Source::from_updates(updates))
    }

    fn read(self, source: Source) -> Completions {
        let board = self.board(None);
        let controls = Arc::new(Controls::default());
        if let Some(control) = controls.add() {
            self.start(
                source,
                BoardWriter::new(&board),
                &control,
                Numbering::default(),
                Instant::now(),
            );
        }
        Completions::new(board, controls)
    }

    pub(crate) fn board(&self, joined: Option<Joined>) -> Arc<Board> {
        Arc::new(Board::new(Listing {
            prompt: Arc::clone(&self.prompt),
            joined: joined.map(Box::new),
            ..Listing::default()
        }))
    }

    pub(crate) fn expected(&self) -> Option<u32> {
        self.options.expect_choices
    }

    /// Starts a reader of a completion that began at `began`; where that cannot be, the board says why.
    pub(crate) fn start(
        self,
        source: Source,
        board: BoardWriter,
        control: &Arc<Control>,
        numbering: Numbering,
        began: Instant,
    ) {
        if let Err(error) = self.check() {
            control.finished();
            return board.give_up(error);
        }
        let reader = Reader::new(
            source,
            self.options,
            self.timeouts,
            board,
            control,
            numbering,
            began,
        );
        // If it does not start, the dropped writer tells that it is lost.
        if let Some(actor) = reader.spawn() {
            control.started(actor);
        }
    }

    fn check(&self) -> Result<(), StreamError> {
        // ractor would panic.
        tokio::runtime::Handle::try_current().map_err(|_| StreamError::NoRuntime)?;
        if self.timeouts.any() && !has_time_driver() {
            return Err(StreamError::NoTimeDriver);
        }
        Ok(())
    }
}
