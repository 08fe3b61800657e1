//! The core of unbraid: bytes of one completion stream in, the events of each of its choices out.
//!
//! It has no runtime, no clock and no I/O. [`Demux`] is the whole of it in one object; the other modules are its
//! parts, in the order a byte travels: [`frame`], [`decode`], [`update`], [`route`], [`choice`], [`event`]. The crate
//! `unbraid` runs the same parts in actors and gives the same events.
//!
//! ```
//! use unbraid_core::{ChoiceIndex, Demux, Config};
//!
//! let mut demux = Demux::new(Config::default());
//! demux.feed(b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"World\"}}]}\n\n");
//! demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: [DONE]\n\n");
//! demux.finish();
//! assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().content, "Hello");
//! assert_eq!(demux.choice(ChoiceIndex(1)).unwrap().message().content, "World");
//! ```
//!
//! Nothing that comes from the wire panics, and nothing grows without a bound: see [`limits`].
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod aggregate;
mod audio;
mod call_parse;
pub mod choice;
mod chunk;
mod debug;
pub mod decode;
mod demux;
mod depth;
mod dialect;
mod error;
pub mod event;
mod finish_class;
mod format;
pub mod frame;
pub mod json;
mod json_text;
pub mod limits;
mod message;
mod metadata;
mod node;
mod options;
pub mod piece;
pub mod pipeline;
mod report;
pub mod route;
mod text;
mod tool_call;
mod transcript;
pub mod update;
mod usage;
mod warning;

pub use aggregate::{aggregate, aggregate_json};
#[doc(hidden)]
pub use aggregate::{aggregate_of, choice_json};
pub use audio::Audio;
pub use call_parse::{JsonErrorKind, TypeMismatch, parse_json, parse_json_repaired};
pub use demux::Demux;
pub use error::{
    BoxError, ChoiceError, ServerError, StreamError, TimedOut, Timeout, TransportError,
};
pub use event::{ChoiceEnd, Event, FinishReason, Position, Sequenced};
pub use finish_class::FinishClass;
pub use format::BodyFormat;
#[doc(hidden)]
pub use json_text::parsed;
pub use limits::{Limit, LimitExceeded, Limits};
pub use message::{ChoiceOutcome, Message};
pub use metadata::Metadata;
pub use options::{Config, FinishPolicy, ThinkTags, tool_names};
pub use text::Text;
pub use tool_call::{CallKind, CallProblem, CallStatus, ToolCall};
pub use transcript::Transcript;
#[doc(hidden)]
pub use transcript::{EventFilter, TextKind};
pub use update::{ChoiceIndex, CompletionKind, Fragment, ToolCallUpdate, Update};
pub use usage::{
    BYTES_PER_TOKEN, Estimated, Framing, Prompt, Tokenizer, Usage, UsageSource, completion_tokens,
    estimate, estimate_for, estimate_with, prompt_tokens,
};
pub use warning::Warning;
