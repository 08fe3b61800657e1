//! Separates an interleaved LLM answer stream: one independent stream per choice.
//!
//! One request can ask for several answers (`n` choices). The server sends them as one stream of small deltas, each
//! tagged with a choice index, in any order. [`Completions`] reads that stream with actors and gives every choice a
//! stream of its own, so that no caller tracks an index.
//!
//! # Five minutes
//!
//! A [`Completions`] reads any stream of byte chunks, such as the body of a response (`bytes_stream()` in reqwest). If the
//! request is still to be sent, [`unbraid-http`](https://docs.rs/unbraid-http) does both. [`choices`](Completions::choices)
//! yields each [`Choice`] as soon as it appears; [`content`](Choice::content) is its text, and
//! [`outcome`](Choice::outcome) its outcome.
//!
//! ```
//! use tokio::task::JoinSet;
//! use unbraid::Completions;
//!
//! # use futures::stream;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let body = concat!(
//! #     "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"Hi\"}}]}\n\n",
//! #     "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"},\"finish_reason\":\"stop\"}]}\n\n",
//! #     "data: {\"choices\":[{\"index\":1,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
//! # );
//! # let bytes = stream::iter([Ok::<_, std::io::Error>(body)]);
//! let completions = Completions::from_byte_stream(bytes); // any Stream<Item = Result<impl AsRef<[u8]>, E>>
//! let mut choices = completions.choices();
//! let mut tasks = JoinSet::new();
//! while let Some(Ok(choice)) = choices.next().await {
//!     // Each one as soon as it appears.
//!     tasks.spawn(async move {
//!         let mut content = choice.content(); // its text, from the first delta
//!         while let Some(Ok(delta)) = content.next().await {
//!             print!("{delta}");
//!         }
//!         choice.outcome().await // its own outcome, however it ended
//!     });
//! }
//! while let Some(outcome) = tasks.join_next().await {
//!     let outcome = outcome?;
//!     println!("{} {}: {}", outcome.choice, outcome.end.as_str(), outcome.message.content);
//! }
//! completions.closed().await?; // an error if the connection failed
//! # Ok(())
//! # }
//! ```
//!
//! One choice needs no loop:
//!
//! ```
//! # use unbraid::{Completions, Error};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let body = &b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"[..];
//! let text = Completions::from_reader(body).first().await?.text().await?;
//! assert_eq!(text, "Hi");
//! # Ok(())
//! # }
//! ```
//!
//! Function calls are streams, too. A call is available as soon as its name is known, can be read while the model
//! writes it, and is parsed only when it is complete:
//!
//! ```
//! # use unbraid::{Completions, Error};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Error> {
//! # let body = &br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]},"finish_reason":"tool_calls"}]}"#[..];
//! # let choice = Completions::from_reader(body).first().await?;
//! let mut calls = choice.tool_calls();
//! while let Some(call) = calls.next().await {
//!     let call = call?;
//!     let mut city = call.field("/city"); // one string, as the model types it
//!     while let Some(delta) = city.next().await {
//!         print!("{}", delta?);
//!     }
//!     let arguments: serde_json::Value = call.parse().await?; // strict, at the end of the choice
//!     assert_eq!(arguments["city"], "Oslo");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An agent runs them with [`tools::run_calls`]: all calls of a choice at the same time, each when its [`ReadyPolicy`] allows it.
//!
//! # Concepts
//!
//! - A **completion** is the answers of one request. Reading starts at once, on the current tokio runtime, and
//!   continues whether or not anybody consumes.
//! - A **handle** ([`Completions`], [`Choice`], [`ToolCallHandle`], [`ContentJson`]) is cheap to clone and can be moved
//!   into a task.
//! - A **cursor** ([`Choices`], [`Content`], [`ToolCalls`], [`Events`] and others) is a named, owned stream:
//!   `Clone + Send + Unpin + 'static`, fused, with an inherent `next()` that is cancel safe. A cursor starts at the first delta,
//!   whenever it is created: before, during or after the stream, and any number of times.
//! - One item of a cursor is one delta of the wire, verbatim. [`Content::coalesced`] combines the deltas that have
//!   accumulated, for consumers that are slower than the model.
//! - No consumer delays another. Everything that arrived is kept until the handles are dropped, within [`Limits`].
//! - [`Completions::outcomes`] yields the outcome of each choice as it ends; [`Completions::snapshot`] is the response as of now.
//! - [`Completions::merge`] reads several sources as one completion, for example n requests of one choice each.
//! - [`Updates`] is the flat view without actors: every delta with its choice index. [`Demux`] does the same as the
//!   handles without a runtime; it belongs to `unbraid-core`, whose types are re-exported here.
//!
//! Two kinds of actors do the work. The reader actor owns the source, decodes it, and routes the deltas. A choice actor owns
//! the log of a choice whose consumers did not keep up, and applies what arrives for it; most choices never get one. No actor type is part of the API. A panic in one choice ends only that choice, with an actor or without.
//!
//! # Ends
//!
//! A choice has one of nine ends ([`ChoiceEnd`]). Its cursors return `None` after `Finished` (a finish reason arrived) and
//! `DoneWithoutFinish` (`[DONE]` arrived, but no reason). After every other end (`Interrupted`, `ServerError`, `Transport`,
//! `Cancelled`, `TimedOut`, `LimitExceeded`, `Lost`) they return exactly one error, then `None`. A reason that has arrived
//! stays: an error of the stream does not take back a finished answer. `length` and `content_filter` are reasons, not
//! errors; [`ChoiceOutcome::is_complete`] is false for them. Arguments that parse are never a sign that a call is complete,
//! so a call gets its [`CallStatus`] when its choice ends.
//!
//! Every stream ends, whatever fails: a panic in a choice, a panic in the source, or a runtime that shuts down ends the
//! choices as `Lost`.
//!
//! # Cancel
//!
//! - [`Choice::cancel`] ends one choice and keeps what had arrived. In a request with native `n` the server continues to generate
//!   it. The connection closes when all choices are cancelled, if their number is known: from the `n` of a request of
//!   `unbraid-http`, or from [`expect_choices`](CompletionsBuilder::expect_choices). Otherwise further choices may appear, even
//!   if only one was requested; call [`Completions::cancel`].
//! - [`Choice::discard`] also frees the text.
//! - [`Completions::cancel`] ends all choices and closes the source.
//! - [`Completions::first_finished`] and [`Completions::first_where`] cancel the choices that did not win. For a caller that
//!   judges them itself, [`Completions::keep_only`] does.
//! - Dropping the last handle or cursor of a completion closes its source at once. Dropping any other cancels nothing. A
//!   [`WeakCompletions`] does not count. The waker of a dropped cursor's task is released with the next delta or the end of
//!   its choice at the latest.
//! - Text is freed once nothing is left that can read it. A [`Choice`] and its cursors keep the text of that choice;
//!   [`Completions`] and its cursors keep the text of all choices, and so does the reader until the stream has closed.
//!
//! # Errors
//!
//! There is one type per scope: [`StreamError`] ends everything, [`ChoiceError`] ends one choice and holds what had
//! arrived, [`JsonError`] is about one call's arguments or JSON content. [`Error`] is any of them. All are `Clone`, and say where
//! they happened. `Display` and `Debug` of errors, events and handles show counts and lengths, never what a model or a server
//! wrote; [`ServerError::message`] must be called explicitly.
//!
//! A deviation that was tolerated is a [`Warning`] with the id of its rule in
//! [edge-cases.md](https://github.com/unbraid/unbraid/blob/main/docs/edge-cases.md).
//!
//! # Limits
//!
//! [`Limits`] bounds everything that a server can make the client buffer, with defaults that suit real answers: 32 MiB per
//! event, 64 MiB per choice, 256 MiB per completion, 128 choices. Exceeding a limit is a typed error on the narrowest
//! scope. Timeouts are off until they are set with [`Completions::builder`].
//!
//! ```
//! use std::time::Duration;
//! use unbraid::{Completions, Limits};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! # let body = &b"data: [DONE]\n\n"[..];
//! let mut limits = Limits::default();
//! limits.choice_bytes = 1 << 20;
//! let completions = Completions::builder()
//!     .expect_choices(4)
//!     .limits(limits)
//!     .first_byte_timeout(Duration::from_secs(120))
//!     .idle_timeout(Duration::from_secs(30))
//!     .from_reader(body);
//! # assert!(completions.closed().await.is_err());
//! # }
//! ```
//!
//! # Features
//!
//! `tokens`, off by default: tokenizers of tiktoken-rs for [`CompletionsBuilder::tokenizer`], with which [`Completions::usage`]
//! counts the tokens that the server did not report, and marks them. It adds about 7 MB of tables to a binary.
//!
//! `schemars`, off by default: [`tools::Tool::typed`](tools::Tool), which derives the JSON schema of a tool's arguments
//! from their type.
//!
//! # Guides
//!
//! - [Cookbook](https://github.com/unbraid/unbraid/blob/main/docs/cookbook.md): fourteen jobs of 20 to 45 lines, among them
//!   best of n, majority vote, an agent loop, and a proxy.
//! - [Function calls](https://github.com/unbraid/unbraid/blob/main/docs/function-calls.md): how fragments are assigned to
//!   calls, and every status.
//! - [Usage](https://github.com/unbraid/unbraid/blob/main/docs/usage.md): what is reported, and what is counted.
//! - Migration from [async-openai](https://github.com/unbraid/unbraid/blob/main/docs/from-async-openai.md) and from
//!   [eventsource-stream](https://github.com/unbraid/unbraid/blob/main/docs/from-eventsource-stream.md).
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocking;
mod config;
mod control;
mod error;
mod estimate;
mod handle;
mod reader;
mod source;
mod state;
mod sync;
#[cfg(feature = "tokens")]
pub mod tokens;
pub mod tools;
mod updates;

pub use unbraid_core::{
    Audio, BYTES_PER_TOKEN, BodyFormat, BoxError, CallIndex, CallKind, CallProblem, CallStatus,
    ChoiceEnd, ChoiceError, ChoiceIndex, ChoiceOutcome, ChunkEncoder, CompletionKind, Config,
    Demux, Dialect, Estimated, Event, EventIndex, FinishClass, FinishPolicy, FinishReason,
    Fragment, Framing, JsonErrorKind, Limit, LimitExceeded, Limits, Message, Metadata, Position,
    Prompt, ReadyCursor, ReadyPolicy, ReasoningSource, Redact, Sequenced, ServerError, StreamError,
    Text, ThinkTags, TimedOut, Timeout, Tokenizer, ToolCall, ToolCallUpdate, Transcript,
    TransportError, TypeMismatch, UnknownDialect, Update, Usage, UsageSource, Warning, aggregate,
    aggregate_json, completion_tokens, estimate, estimate_for, estimate_with, json, limits,
    parse_json, parse_json_repaired, prompt_tokens, tool_names,
};

pub use config::CompletionsBuilder;
pub use error::{Error, JsonError};
pub use handle::{
    choice::Choice,
    choices::Choices,
    completions::Completions,
    events::{AllEvents, Events, Logprobs},
    json::{ContentJson, Field},
    merge::{SourceHandle, SourceSet},
    messages::{Messages, Part, StreamingMessage},
    outcomes::Outcomes,
    text::{Coalesced, Content, Reasoning, Refusal},
    tool_call::{Arguments, ToolCallHandle, ToolCalls},
    weak::WeakCompletions,
};
pub use source::Source;
pub use state::choice_log::Timing;
pub use updates::Updates;

/// What the sister crates of this project need, and which no other crate may rely on.
///
/// Items in this module change in any release, without notice and without a new major version.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        handle::aggregate_json_with,
        source::{PollSource, SourceError, SourceItem},
    };

    /// Whether the runtime of this thread has timers.
    pub fn has_time_driver() -> bool {
        tokio::runtime::Handle::try_current().is_ok() && crate::reader::has_time_driver()
    }

    /// Sets the dialect unless one is set: what the content type of a response says about it.
    #[must_use]
    pub fn expected_dialect(
        builder: crate::CompletionsBuilder,
        dialect: Option<crate::Dialect>,
    ) -> crate::CompletionsBuilder {
        builder.expected_dialect(dialect)
    }

    /// Ends the streams of a builder after the rest of a total timeout that began before them, whose whole length the error
    /// states.
    pub fn rest_of_total_timeout(
        builder: crate::CompletionsBuilder,
        rest: std::time::Duration,
        whole: std::time::Duration,
    ) -> crate::CompletionsBuilder {
        builder.rest_of_total_timeout(rest, whole)
    }

    /// A source of this implementation.
    pub fn source(stream: impl PollSource + 'static) -> crate::Source {
        crate::Source::new(stream)
    }
}
#[cfg(test)]
mod tests;
