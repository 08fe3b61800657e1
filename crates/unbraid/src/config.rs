//! How a stream is configured, and the methods that start reading.

mod read;
mod timeouts;

use std::sync::Arc;

use serde_json::Value;
use unbraid_core::{
    Config, Dialect, FinishPolicy, Limits, Metadata, Prompt, Redact, ThinkTags, Tokenizer,
    tool_names,
};

use crate::{reader::Timeouts, state::tokenizer::TokenizerSelector};

/// Configures a completion. The defaults suit every server that we know; all timeouts are off.
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
    config: Config,
    timeouts: Timeouts,
    /// The prompt, if the request is known.
    prompt: Option<Arc<Prompt>>,
    tokenizer: Option<TokenizerSelector>,
}

impl CompletionsBuilder {
    /// Sets everything at once that [`Demux`](crate::Demux) can be configured with, too. A [`redact`](Self::redact) that was
    /// set before still applies.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Config};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let mut config = Config::default();
    /// config.strict = true;
    /// let completions = Completions::builder().config(config).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        let redact = self.config.redact;
        self.config = config;
        self.config.redact = redact.and(self.config.redact);
        self
    }

    /// Adds a replacement of secrets in the errors that the server reports; none by default.
    ///
    /// Servers repeat in their errors what they were sent, keys included. A client of `unbraid-http` sets this itself.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Redact, StreamError};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"error\":{\"message\":\"wrong key sk-1234\"}}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let redact = Redact::new(|text| text.replace("sk-1234", "[key]"));
    /// let completions = Completions::builder().redact(redact).from_byte_stream(bytes);
    /// let Err(StreamError::Server(error)) = completions.closed().await else { panic!() };
    /// assert_eq!(error.message(), Some("wrong key [key]"));
    /// # }
    /// ```
    #[must_use]
    pub fn redact(mut self, redact: Redact) -> Self {
        self.config.redact = self.config.redact.and(redact);
        self
    }

    /// Sets how many choices were requested, if that is known.
    ///
    /// With 1, every index is read as 0 (E12), with a warning if that mixed several answers (E13). With more, a further choice
    /// yields a warning (E29), and a stream whose choices were all cancelled is closed at once. Fewer choices at the end of
    /// the stream yield a warning, too (E30).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().expect_choices(4).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn expect_choices(mut self, n: u32) -> Self {
        self.config.expect_choices = Some(n);
        self
    }

    /// Sets the request that is answered: the JSON body as it was sent.
    ///
    /// A [`tokenizer`](Self::tokenizer) can then count the tokens of the prompt; without a request they are `None` unless the
    /// server reports them. In a list of prompts, each is counted if a server reports them one by one (E15). The request's
    /// tools are used as [`tool_names`](Self::tool_names), unless some are set already.
    ///
    /// Only what counting needs is kept; see [`Prompt`].
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
        let prompt = Prompt::from_request(request);
        if self.config.choices_per_prompt.is_none() {
            self.config.choices_per_prompt = prompt.choices_per_prompt();
        }
        self.prompt = Some(Arc::new(prompt));
        if self.config.tools.is_empty() {
            self.config.tools = tool_names(request);
        }
        self
    }

    /// Sets the names of the tools that the request declared.
    ///
    /// Some servers send the name of a call in several pieces, others repeat the whole name. The declared names decide which
    /// of the two it is. [`request`](Self::request) sets them, too.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().tool_names(["get_weather", "get_time"]).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn tool_names(mut self, names: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.config.tools = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the tokenizer that counts what the server did not report; without one, [`usage`](crate::Completions::usage) returns
    /// reported values only.
    ///
    /// The tokenizer is called when usage is first asked for, on a blocking thread. A closure from text to a count is a
    /// tokenizer, too. For one that depends on the model, see [`tokenizer_for`](Self::tokenizer_for). The feature `tokens`
    /// provides `tokens::Encoding`, the tokenizers of OpenAI's models.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"three short words\"},\"finish_reason\":\"stop\"}]}\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let words = |text: &str| text.split_whitespace().count() as u64;
    /// let completions = Completions::builder().tokenizer(words).from_byte_stream(bytes);
    /// assert_eq!(completions.usage().await.completion_tokens, Some(3));
    /// # }
    /// ```
    #[must_use]
    pub fn tokenizer(mut self, tokenizer: impl Tokenizer + 'static) -> Self {
        self.tokenizer = Some(TokenizerSelector::fixed(tokenizer));
        self
    }

    /// As [`tokenizer`](Self::tokenizer), for a tokenizer that depends on the model: `select` chooses it from the metadata of
    /// the response and from the request, once the stream has closed.
    ///
    /// With the feature `tokens`, `tokenizer_for(tokens::Counter::for_response)` counts with the encoding of the model.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Metadata, Prompt};
    ///
    /// fn tokenizer(response: &Metadata, request: &Prompt) -> fn(&str) -> u64 {
    ///     match response.model.as_deref().or_else(|| request.model()) {
    ///         Some("by-words") => |text| text.split_whitespace().count() as u64,
    ///         _ => |text| text.len() as u64 / unbraid::BYTES_PER_TOKEN,
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let body = "data: {\"model\":\"by-words\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"three short words\"}}]}\n\ndata: [DONE]\n\n";
    /// # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
    /// let completions = Completions::builder().tokenizer_for(tokenizer).from_byte_stream(bytes);
    /// assert_eq!(completions.usage().await.completion_tokens, Some(3));
    /// # }
    /// ```
    #[must_use]
    pub fn tokenizer_for<T: Tokenizer + 'static>(
        mut self,
        select: impl Fn(&Metadata, &Prompt) -> T + Send + Sync + 'static,
    ) -> Self {
        self.tokenizer = Some(TokenizerSelector::by_response(select));
        self
    }

    /// Sets whether the stream ends at the first line that is neither data, a comment nor blank (R04), at the first payload
    /// that is not JSON (R07), and at the first delta that cannot be merged with those before it: a field changes its type
    /// (R11), or is repeated and is not text (R14).
    ///
    /// The fields `event`, `id` and `retry` are refused, too.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().strict(true).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.config.strict = strict;
        self
    }

    /// Sets the names of a delta's fields that hold reasoning, in the order of their priority, in place of the
    /// [default ones](Config::reasoning_keys) (R5).
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
    /// let outcome = completions.first().await.unwrap().finished().await.unwrap();
    /// assert_eq!(outcome.message.reasoning, "Hm.");
    /// # }
    /// ```
    #[must_use]
    pub fn reasoning_keys(mut self, keys: impl IntoIterator<Item = impl Into<Arc<str>>>) -> Self {
        self.config.reasoning_keys = keys.into_iter().map(Into::into).collect();
        self
    }

    /// Sets when a choice counts as ended after its finish reason has arrived.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, FinishPolicy};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().finish_policy(FinishPolicy::AtFinish).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn finish_policy(mut self, policy: FinishPolicy) -> Self {
        self.config.finish_policy = policy;
        self
    }

    /// Sets whether reasoning between `<think>` and `</think>` in the content is separated from it (C18); off by default.
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
        self.config.think_tags = tags;
        self
    }

    /// Sets whether usage that arrives after `[DONE]` counts (U13); off by default.
    ///
    /// Every choice still ends at `[DONE]`. The stream closes, and with it [`usage`](crate::Completions::usage) and
    /// [`choices`](crate::Completions::choices), when the body ends, after another 64 KiB, or after 100 ms; without
    /// [`implicit_timers`](Self::implicit_timers) as soon as the source is pending.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().usage_after_done(true).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn usage_after_done(mut self, read: bool) -> Self {
        self.config.usage_after_done = read;
        self
    }

    /// Sets the dialect of the stream, in place of the one that its first value identifies (D05).
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Dialect};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::builder().dialect(Dialect::Ollama).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn dialect(mut self, dialect: impl Into<Option<Dialect>>) -> Self {
        self.config.dialect = dialect.into();
        self
    }

    /// Sets the dialect unless one is set.
    pub(crate) fn expected_dialect(mut self, dialect: Option<Dialect>) -> Self {
        self.config.dialect = self.config.dialect.or(dialect);
        self
    }

    /// Sets the bounds of what is kept.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::{Completions, Limits};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::empty::<Result<Vec<u8>, std::io::Error>>();
    /// let mut limits = Limits::default();
    /// limits.choices = 8;
    /// let completions = Completions::builder().limits(limits).from_byte_stream(bytes);
    /// # completions.usage().await;
    /// # }
    /// ```
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }
}
