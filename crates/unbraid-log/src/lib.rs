//! Where streams of answers are kept, so that any reader can resume them.
//!
//! A *generation* is one answer of an LLM server with all its choices. It has one *log*, to which its producer appends
//! *records* of numbered *events*. Readers replay the log from any number, follow it, and end only after its *seal*. The
//! gateway of unbraid serves these logs over HTTP; another program can use them directly.
//!
//! # Five minutes
//!
//! ```
//! use futures::StreamExt;
//! use unbraid_log::{End, Event, LogStore, MemoryLog, MemoryOptions, Meta, RecordBuilder, Seq, StreamEnd, StreamId};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let log = MemoryLog::new(MemoryOptions::default());
//! let id = StreamId::random()?;
//! let mut writer = log.open(&id, &Meta::new("/v1/chat/completions", 1_790_000_000)).await?;
//!
//! // The producer: events become records, and one append is in flight at a time.
//! let mut builder = RecordBuilder::new(Seq(1));
//! builder.push(&Event::chunk(&[0.into()], br#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#));
//! builder.push(&Event::ChoiceEnd { choice: 0.into(), end: End::Finished, finish_reason: Some("stop") });
//! while let Some(record) = builder.take() {
//!     writer.append(&record).await?;
//! }
//! writer.seal(&StreamEnd::new(End::Finished)).await?;
//!
//! // A reader, from any cursor.
//! let mut records = log.read(&id, Seq(1));
//! while let Some(record) = records.next().await {
//!     for (seq, event) in record?.events().filter(|(seq, _)| *seq > Seq(1)) {
//!         assert_eq!(seq, Seq(2));
//!         assert!(matches!(event, Event::ChoiceEnd { end: End::Finished, .. }));
//!     }
//! }
//! # Ok::<(), unbraid_log::LogError>(())
//! # }).unwrap();
//! ```
//!
//! # Parts
//!
//! - [`LogStore`] and [`LogWriter`] are the traits that an engine implements.
//! - [`Record`] is the format that all engines store; [`RecordBuilder`] forms records, [`Event`] is an entry.
//! - [`Journal`] keeps one stream in memory, for any number of readers ([`JournalReader`]).
//! - [`MemoryLog`] is the log of one process.
//! - [`Producer`] and [`Follower`] connect a journal with the log that several processes share: one writes it, the other
//!   reads it, over everything that may happen to the log.
//! - `completions` and `record`, behind the feature `library`, give the handles of `unbraid` over a stream that another process
//!   produces, and produce one. A [guide](https://github.com/unbraid/unbraid/blob/main/docs/logs.md#without-a-gateway) describes both.
//! - The module `contract`, behind the feature of the same name, contains the tests that every log has to pass.
//!
//! # Rules
//!
//! - A record does not change once it is formed: after an error that is temporary, the same record is appended again.
//! - Readers check that records follow each other. They never skip and never repeat.
//! - The first end is kept. After the seal, the producer's appends fail ([`LogError::Sealed`]).
//! - No message and no debug output contains payload.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod commands;
#[cfg(feature = "contract")]
#[cfg_attr(docsrs, doc(cfg(feature = "contract")))]
pub mod contract;
mod end;
mod error;
mod event;
mod fields;
mod follower;
mod id;
mod journal;
#[cfg(feature = "library")]
mod library;
mod memory;
mod meta;
mod producer;
mod protocol;
mod record;
mod store;
mod tracker;
mod varint;

pub use end::{End, StreamEnd};
pub use error::LogError;
pub use event::{ChoiceSet, Event};
pub use follower::Follower;
pub use id::{Seq, StreamId};
pub use journal::{Batch, Journal, JournalReader};
#[cfg(feature = "library")]
#[cfg_attr(docsrs, doc(cfg(feature = "library")))]
pub use library::{EndError, Recorder, Recording, completions, record, source};
pub use memory::{MemoryLog, MemoryOptions};
pub use meta::{Claim, ClaimKey, Meta};
pub use producer::{OnFailure, Producer, ProducerObserver, ProducerOptions};
pub use record::{MAX_PAYLOAD_BYTES, Record, RecordBuilder};
pub use store::{Appended, Command, LogStatus, LogStore, LogWriter};

/// What the sister crates of this project need, and which no other crate may rely on.
///
/// Items in this module change in any release, without notice and without a new major version.
#[doc(hidden)]
pub mod internal {
    /// How long after an outage of the log a producer may take to write again what it lacks: the longest pause between two
    /// attempts, a call that gets no answer, and the one that succeeds.
    pub const REPAIR_TIME: std::time::Duration = std::time::Duration::from_secs(4);
    pub use crate::commands::{CommandQueue, CommandSender};
    /// A log that fails as a test says.
    #[cfg(feature = "contract")]
    pub mod scripted {
        pub use crate::contract::scripted::{Engine, Fault, TestLog, payloads};
    }
    pub use crate::tracker::{ChunkText, Identity, Role, TrackedChoice, Tracker};
}
