//! Separates one interleaved LLM stream into one independent stream per choice.
//!
//! One request can ask for several answers (`n` choices). The server sends them as one stream of small deltas, each tagged
//! with a choice index, in any order. [`Completions`] reads that stream with actors and gives every choice a stream of its
//! own, so that nobody tracks an index by hand.
//!
//! ```
//! use futures::stream;
//! use tokio::task::JoinSet;
//! use unbraid::{ChoiceError, Completions};
//!
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
//! while let Some(choice) = choices.next().await {
//!     let choice = choice?; // as each one appears
//!     tasks.spawn(async move {
//!         let mut content = choice.content(); // its text, from its first delta
//!         while let Some(delta) = content.next().await {
//!             print!("{}", delta?);
//!         }
//!         choice.finished().await // its own outcome
//!     });
//! }
//! while let Some(answer) = tasks.join_next().await {
//!     let answer = answer??;
//!     println!("{}: {}", answer.choice, answer.message.content);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What holds for every handle and stream
//!
//! - Streams are named, owned cursors: `Clone + Send + Unpin + 'static`, fused, with an inherent `next()` that is cancel
//!   safe. Each starts at the first delta, whenever it is taken: before, during or after the stream.
//! - A slow consumer delays nobody. What has arrived is kept until the handles are dropped, within [`Limits`].
//! - No waiter is left hanging: if a task dies, every stream still ends. The streams of a choice return `None` after the
//!   ends `finished` and `done_without_finish`; after any other, exactly one error, then `None`.
//! - Dropping the last handle of a completion closes its source. Dropping any other handle cancels nothing. The waker of a
//!   dropped stream's task is released with the next delta or the end of its choice at the latest.
//! - `Debug` of every type shows counts and lengths, never what a model or a server wrote.
//!
//! [`Demux`] does the same synchronously and without a runtime; its crate, `unbraid-core`, is re-exported here.
//!
//! # Features
//!
//! `tokens`, off by default, adds the module `tokens`: tiktoken-rs as a [`Tokenizer`], for [`CompletionsBuilder::tokenizer`].
//! It adds about 8 MB of tables to a binary and changes nothing else.

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
mod updates;

pub use unbraid_core::{
    Audio, BYTES_PER_TOKEN, BoxError, CallKind, CallProblem, CallStatus, ChoiceEnd, ChoiceError,
    ChoiceIndex, ChoiceOutcome, CompletionKind, Config, Demux, Estimated, Event, FinishClass,
    FinishPolicy, FinishReason, Fragment, Framing, JsonErrorKind, Limit, LimitExceeded, Limits,
    Message, Metadata, Position, Prompt, Sequenced, ServerError, StreamError, Text, ThinkTags,
    TimedOut, Timeout, Tokenizer, ToolCall, ToolCallUpdate, Transcript, TransportError,
    TypeMismatch, Update, Usage, UsageSource, Warning, aggregate, aggregate_json,
    completion_tokens, estimate, estimate_for, estimate_with, json, limits, parse_json,
    parse_json_repaired, prompt_tokens, tool_names,
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

#[cfg(test)]
mod tests;
