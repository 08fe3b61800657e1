//! The core of unbraid: bytes of one completion stream in, events of each of its choices out.
//!
//! It has no runtime, no clock and no I/O. Use it in synchronous code, in WebAssembly, or on another runtime than tokio.
//! The crate [`unbraid`](https://docs.rs/unbraid) runs the same parts in actors and yields the same events.
//!
//! # Five minutes
//!
//! [`Demux`] is the complete core in one object. Feed it bytes, in pieces of any size, and take events:
//!
//! ```
//! use unbraid_core::{ChoiceIndex, Config, Demux, Event};
//!
//! let mut demux = Demux::new(Config::default());
//! demux.feed(b"data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"World\"}}]}\n\n");
//! demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]}\n\n");
//! demux.feed(b"data: [DONE]\n\n");
//! demux.finish();
//!
//! let mut texts = Vec::new();
//! while let Some(event) = demux.next_event() {
//!     if let Event::Content(text) = event.event {
//!         texts.push(text.to_owned()); // in the order of the wire
//!     }
//! }
//! assert_eq!(texts, ["World", "Hello"]);
//! assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().message().content, "Hello");
//! assert_eq!(demux.choice(ChoiceIndex(1)).unwrap().message().content, "World");
//! ```
//!
//! # Concepts
//!
//! The stages, in the order a byte travels:
//!
//! | stage | does |
//! |---|---|
//! | frame | finds complete events in the bytes |
//! | decode | turns an event's JSON into [`Update`]s |
//! | route | assigns updates to choices; decides limits, and ends that depend on other choices |
//! | choice | turns the updates of one choice into [`Event`]s |
//! | transcript | keeps everything that one choice has produced ([`Transcript`]) |
//!
//! - The same bytes yield the same events, however they are split into calls of [`Demux::feed`].
//! - Events have one total order ([`Sequenced::sort_key`]). One wire delta is one event.
//! - An [`Update`] from another provider's format can be fed with [`Demux::feed_update`].
//!
//! # Ends and idleness
//!
//! A choice ends in one of nine ways ([`ChoiceEnd`]). The core has no clock: call [`Demux::handle_idle`] when no bytes have
//! arrived for a while, so that choices with a finish reason end. [`Demux::finish`] closes the stream, [`Demux::abort`]
//! closes it with an error, such as one of the transport, and [`Demux::cancel`] ends one choice. [`Demux::result`] is the
//! result of a choice: its outcome, or the error that cut it. [`Demux::aggregate`] is the response that the server would have
//! sent without streaming.
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
//!
//! # JSON
//!
//! [`json`] reads a call's arguments as they arrive, in one pass: [`json::Partial`] values, one [`json::Field`], the
//! [`json::check`] that decides a call's [`CallStatus`], and [`json::repair`]. [`parse_json`] is strict.
//!
//! Values are those of `serde_json`, with its features `float_roundtrip`, `preserve_order` and `raw_value`. Cargo unifies
//! features, so a program that depends on unbraid has them for its own JSON as well: its maps keep the order of their keys.
//!
//! # Errors and limits
//!
//! No input can panic, and nothing grows without a bound: see [`limits`]. [`StreamError`] ends everything, [`ChoiceError`]
//! one choice. Error messages and `Debug` output carry positions and lengths, never payload. A deviation that was tolerated
//! is a [`Warning`], whose code is a rule of
//! [edge-cases.md](https://github.com/unbraid/unbraid/blob/main/docs/edge-cases.md).
//!
//! # Usage
//!
//! [`Demux::usage`] is what the server reported. [`Demux::estimated_usage`] counts the rest with any [`Tokenizer`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

#[macro_use]
mod with_methods;

mod aggregate;
mod audio;
mod call_parse;
mod choice;
mod choice_end;
mod choice_error;
mod chunk;
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
mod node;
mod pipeline;
mod prefetch;
mod reasoning_source;
mod redact;
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
pub use choice_error::ChoiceError;
pub use chunk_encoder::ChunkEncoder;
pub use config::{Config, FinishPolicy, ThinkTags, tool_names};
pub use demux::Demux;
pub use dialect::{Dialect, UnknownDialect};
pub use error::{BoxError, ServerError, StreamError, TimedOut, Timeout, TransportError};
pub use event::{Event, Position, Sequenced};
pub use finish_class::FinishClass;
pub use format::BodyFormat;
pub use index::{CallIndex, ChoiceIndex, EventIndex};
pub use limits::{Limit, LimitExceeded, Limits};
pub use message::{ChoiceOutcome, Message};
pub use metadata::Metadata;
pub use reasoning_source::ReasoningSource;
pub use redact::Redact;
pub use text::Text;
pub use tool_call::{CallKind, CallProblem, CallStatus, ReadyPolicy, ToolCall};
pub use transcript::{ReadyCursor, Transcript};
pub use update::{CompletionKind, Fragment, ToolCallUpdate, Update};
pub use usage::{
    Estimated, Framing, Prompt, Tokenizer, Usage, UsageSource,
    estimate::{
        BYTES_PER_TOKEN, completion_tokens, estimate, estimate_for, estimate_with, prompt_tokens,
    },
};
pub use warning::Warning;

/// The machinery that the sister crates drive themselves. **It is not part of the public API.**
///
/// Items in this module change in any release, without notice and without a new major version. `unbraid`,
/// `unbraid-http` and `unbraid-cli` therefore depend on exactly one version of this crate (`=x.y.z`). Everyone else uses
/// [`Demux`], which drives the same machinery.
#[doc(hidden)]
pub mod internal {
    use crate::{
        CallIndex, ChoiceEnd, ChoiceIndex, Demux, JsonErrorKind, ReadyCursor, Redact, ToolCall,
        Transcript, Update,
    };
    pub use crate::{
        aggregate::{aggregate_of, choice_json, write_aggregate},
        choice::ChoiceMachine,
        decode::Decoder,
        dialect::rfc3339,
        frame::{Frame, FrameError, FrameKind, FrameLimits, Framer, Mode},
        json_text::parsed,
        node::compact,
        pipeline::{Pipeline, UpdateReader},
        prefetch::prefetch,
        route::{ChoiceSink, Router},
        text_delta::{Delta, DeltaKind, Extras, TextDelta},
        transcript::{EventFilter, TextKind},
        usage::{UnreadUsage, sum_across_dialects},
    };

    /// Drops the events that were not taken, for a caller that needs only the transcripts.
    pub fn skip_events(demux: &mut Demux) {
        demux.skip_events();
    }

    /// Returns how many events were decoded, and how many of them by a template, without parsing.
    #[must_use]
    pub fn template_hits(demux: &Demux) -> (u64, u64) {
        demux.template_hits()
    }

    /// Returns the update without secrets. Returns `None` if nothing has to be replaced.
    #[must_use]
    pub fn redact_update(redact: &Redact, update: &Update<'_>) -> Option<Update<'static>> {
        redact.update(update)
    }

    /// Reads on until all is read or until more than `max` bytes of arguments were read; true if all is read.
    pub fn advance_ready(cursor: &mut ReadyCursor, transcript: &Transcript, max: usize) -> bool {
        cursor.advance(transcript, max)
    }

    /// Whether content may be incomplete although it is JSON by itself, because its choice ended so.
    #[must_use]
    pub fn may_continue(content: &str, end: &ChoiceEnd) -> bool {
        crate::call_parse::may_continue(content, end)
    }

    /// Returns the first halves of characters that wait for their second halves, in escapes, at the end of a choice's reasoning,
    /// content, refusal and transcript of its audio (C14).
    #[must_use]
    pub fn waiting_halves(demux: &Demux, choice: ChoiceIndex) -> [Option<u16>; 4] {
        demux.waiting_halves(choice)
    }

    /// Whether a field of a delta is a piece of audio (M11).
    #[must_use]
    pub fn is_audio(key: &str, raw: &str) -> bool {
        crate::update::is_audio(key, raw)
    }

    /// Whether raw JSON may hold half a character (C14). It may be true for a whole one.
    #[must_use]
    pub fn is_doubtful(raw: &str) -> bool {
        crate::node::is_doubtful(raw)
    }

    /// The piece of audio that ends a transcript whose last character is cut (C14).
    pub const LONE_HALF: &str = crate::audio::LONE_HALF;

    /// Returns a piece of audio with U+FFFD for each half of a character (C14).
    #[must_use]
    pub fn without_halves(raw: &str) -> std::borrow::Cow<'_, str> {
        crate::audio::without_halves(raw)
    }

    /// Joins the transcript of a piece of audio to the half of a character that waits before it, and holds back the half at its
    /// end; true if a half found no partner (C14).
    #[must_use]
    pub fn join_transcript<'r>(
        raw: &'r str,
        waiting: &mut Option<u16>,
    ) -> (std::borrow::Cow<'r, str>, bool) {
        crate::audio::join_transcript(raw, waiting)
    }

    /// Returns the same of the arguments of a call.
    #[must_use]
    pub fn waiting_half_of_call(transcript: &Transcript, call: CallIndex) -> Option<u16> {
        transcript.waiting_half_of_call(call)
    }

    /// Returns what [`ReadyCursor::poll`] returns, once all is read.
    pub fn report_ready(
        cursor: &mut ReadyCursor,
        transcript: &Transcript,
    ) -> Option<Result<ToolCall, JsonErrorKind>> {
        cursor.report(transcript)
    }
}
