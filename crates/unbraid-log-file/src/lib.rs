//! Streams of answers in one file, so that they survive a restart.
//!
//! [`FileLog`] is a log of [`unbraid_log`] for one process on one machine, without a broker. Its file is a
//! [redb](https://docs.rs/redb) database. What was acknowledged survives the death of the process; with
//! [`FileSync::EachCommit`], the default, it also survives that of the machine.
//!
//! # Five minutes
//!
//! ```
//! use futures::StreamExt;
//! use unbraid_log::{End, Event, LogStore, LogWriter, Meta, RecordBuilder, Seq, StreamEnd, StreamId};
//! use unbraid_log_file::{FileLog, FileOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("streams.log");
//! let log = FileLog::open(&path, FileOptions::default()).await?;
//! let id = StreamId::random()?;
//! let mut writer = log.open(&id, &Meta::new("/v1/chat/completions", 1_790_000_000)).await?;
//! let mut builder = RecordBuilder::new(Seq(1));
//! builder.push(&Event::chunk(&[0.into()], br#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#));
//! while let Some(record) = builder.take() {
//!     writer.append(&record).await?; // returns once the record is on the disk
//! }
//! writer.seal(&StreamEnd::new(End::Finished)).await?;
//! log.close().await?;
//!
//! // The next process.
//! let log = FileLog::open(&path, FileOptions::default()).await?;
//! let records: Vec<_> = log.read(&id, Seq::START).collect().await;
//! assert_eq!(records.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # The file
//!
//! - It contains the answers of users, and is created for its owner only.
//! - One process uses it at a time. Copy it while the log is closed.
//! - It grows to the most that it had to contain at once. What expires makes room for what follows; the next start returns the
//!   rest, if that is most of it. Bytes that were freed are used again, but not overwritten before.
//! - On a disk that is almost full, no stream is opened ([`LogError::Full`](unbraid_log::LogError::Full)), then appends are
//!   refused, too, and the rest is kept for freeing what expires.
//! - Times are those of the wall clock when the file is opened, and do not follow its changes.
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod backend;
mod caught;
mod clock;
mod error;
mod job;
mod log;
mod options;
mod read;
mod shared;
mod space;
mod tables;
mod worker;
mod writer;

pub use caught::hide_caught_panics;
pub use error::FileLogError;
pub use log::FileLog;
pub use options::{FileOptions, FileSync};
