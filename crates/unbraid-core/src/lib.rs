//! The core of unbraid: bytes of one completion stream in, the events of each of its choices out.
//!
//! The crate has no runtime, no clock and no I/O. [`Demux`] takes bytes and returns the events of every choice, in the
//! order of the stream. The crate `unbraid` runs the same parts in actors and returns the same events.
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
//! No input makes the crate panic, and every buffer has a bound: see [`limits`].
//!
//! # Configuration and other open structs
//!
//! Structs that may gain fields ([`Config`], [`Limits`], [`Update`], ..) are `#[non_exhaustive]`: outside of this crate
//! they have no struct literals. Start from `default()` or `new(..)`, and set each field with the method `with_` and the
//! field's name. The fields are public, so they can also be read and assigned.
//!
//! ```
//! use unbraid_core::{Config, Limits};
//!
//! let config = Config::default()
//!     .with_strict(true)
//!     .with_limits(Limits::default().with_choices(8));
//! assert_eq!(config.limits.choices, 8);
//! ```
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

#[macro_use]
mod with_methods;

mod aggregate;
mod audio;
mod call_parse;
mod choice;
mod choice_end;
mod chunk_encoder;
mod config;
mod debug;
mod decode;
mod demux;
mod depth;
mod dialect;
mod error;
mod event;
mod finish_class;
mod format;
mod frame;
mod index;
pub mod json;
mod json_text;
pub mod limits;
mod message;
mod metadata;
mod pipeline;
mod report;
mod route;
mod text;
mod text_delta;
mod tool_call;
mod transcript;
mod update;
mod usage;
mod warning;
mod wire;

pub use aggregate::{aggregate, aggregate_json};
pub use audio::Audio;
pub use call_parse::{JsonErrorKind, TypeMismatch, parse_json, parse_json_repaired};
pub use choice_end::{ChoiceEnd, FinishReason};
pub use chunk_encoder::ChunkEncoder;
pub use config::{Config, FinishPolicy, ThinkTags, tool_names};
pub use demux::Demux;
pub use error::{
    BoxError, ChoiceError, ServerError, StreamError, TimedOut, Timeout, TransportError,
};
pub use event::{Event, Position, Sequenced};
pub use finish_class::FinishClass;
pub use format::BodyFormat;
pub use index::{CallIndex, ChoiceIndex, EventIndex};
pub use limits::{Limit, LimitExceeded, Limits};
pub use message::{ChoiceOutcome, Message};
pub use metadata::Metadata;
pub use text::Text;
pub use tool_call::{CallKind, CallProblem, CallStatus, ToolCall};
pub use transcript::Transcript;
pub use update::{CompletionKind, Fragment, ToolCallUpdate, Update};
pub use usage::{
    BYTES_PER_TOKEN, Estimated, Framing, Prompt, Tokenizer, Usage, UsageSource, completion_tokens,
    estimate, estimate_for, estimate_with, prompt_tokens,
};
pub use warning::Warning;

/// The machinery that the sister crates drive themselves. **It is not part of the public API.**
///
/// Items in this module change in any release, without notice and without a new major version. `unbraid`,
/// `unbraid-http` and `unbraid-cli` therefore depend on exactly one version of this crate (`=x.y.z`). Everyone else uses
/// [`Demux`], which drives the same machinery.
#[doc(hidden)]
pub mod internal {
    pub use crate::{
        aggregate::{aggregate_of, choice_json},
        choice::ChoiceMachine,
        decode::Decoder,
        frame::{Frame, FrameError, FrameKind, FrameLimits, Framer, Mode},
        pipeline::{Pipeline, UpdateReader},
        report::parsed,
        route::{ChoiceSink, Router},
        text_delta::{DeltaKind, TextDelta},
        transcript::{EventFilter, TextKind},
    };
}
