//! Streams of LLM answers in NATS JetStream, for any number of gateways on any number of machines.
//!
//! [`NatsLog`] is an engine of [`unbraid_log`]: what one process appends, every other can read and resume from any event,
//! cancel, and end if the producer dies. It works with NATS servers from 2.9 on, with JetStream switched on.
//!
//! # Five minutes
//!
//! Start a server: `nats-server -js -sd /var/lib/nats`. One process produces:
//!
//! ```no_run
//! use unbraid_log::{End, Event, LogStore, Meta, RecordBuilder, Seq, StreamEnd, StreamId};
//! use unbraid_log_nats::{NatsLog, NatsOptions};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let log = NatsLog::connect("nats://127.0.0.1:4222", NatsOptions::default()).await?;
//! for warning in log.warnings() {
//!     eprintln!("{warning}");
//! }
//! println!("commands are sent to {}", log.gateway());
//! let id = StreamId::random()?;
//! let mut writer = log.open(&id, &Meta::new("/v1/chat/completions", 1_790_000_000)).await?;
//! let mut builder = RecordBuilder::new(Seq(1));
//! builder.push(&Event::chunk(&[0.into()], b"{}"));
//! while let Some(record) = builder.take() {
//!     writer.append(&record).await?;
//! }
//! writer.seal(&StreamEnd::new(End::Finished)).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! Another one reads, from any cursor, at the same time or later:
//!
//! ```no_run
//! use futures::StreamExt;
//! use unbraid_log::{LogStore, Seq, StreamId};
//! use unbraid_log_nats::{NatsLog, NatsOptions};
//!
//! # async fn example(id: StreamId) -> Result<(), Box<dyn std::error::Error>> {
//! let log = NatsLog::connect("nats://127.0.0.1:4222", NatsOptions::default()).await?;
//! let mut records = log.read(&id, Seq::START);
//! while let Some(record) = records.next().await {
//!     for (seq, event) in record?.events() {
//!         println!("{seq}: {} bytes", event.payload().map_or(0, <[u8]>::len));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is stored
//!
//! [`NatsLog::connect`] creates two JetStream streams, and so does every call that finds them lost. With the prefix `unbraid`:
//!
//! | stream | subjects | contains | is kept |
//! |---|---|---|---|
//! | `UNBRAID` | `unbraid.log.<id>` | records and the end of a stream | until the time to live after its end, at most that and a day |
//! | `UNBRAID_KV` | `unbraid.meta.<id>`, `.lease.<id>`, `.ended.<id>`, `.claim.<digest>` | one value for each subject | a day longer |
//!
//! An existing stream with the same name and other subjects is an error, and stays as it is. A user with restricted
//! permissions has to be allowed to publish to `unbraid.>` and `$JS.API.>`, and to subscribe to `unbraid.>` and `_INBOX.>`.
//!
//! - An **append** states the number of the message that it follows (`Nats-Expected-Last-Subject-Sequence`), so of two
//!   writers one is refused. A repeated append is recognized by its bytes, not only by its message id.
//! - **Readers** subscribe to `unbraid.live.<id>`, to which the server sends a copy of what it has stored (`republish`), and
//!   read the stream itself for what they have missed. A followed stream costs the server two subscriptions and no consumer;
//!   a reader that is far behind has a consumer until it is up to date.
//! - A **lease** has expired if its record has not changed for its duration by the reader's monotonic clock, without the
//!   time in which the server was away. It was if its process is another one, and if it has stored no value for 1.5 seconds or
//!   half a lease, although its connections stayed open and it answered other questions: the time counts anew then. While
//!   leases are looked at, each gateway stores a value four times a second. Wall clocks of two machines are never compared.
//! - A **renewal** needs only the stream of the values: in a cluster that of the records may have no leader meanwhile.
//! - **Expiry**: NATS 2.9 has no time to live for single messages. A seal contains the time to live; every gateway removes the
//!   streams whose seal is older, by the server's own time stamps, at least every 90 seconds. Streams with a longer time to
//!   live than that of the gateway are looked at once an hour. If no gateway runs, the server removes everything a day later.
//!
//! # Durability
//!
//! JetStream acknowledges a message after it has been written, but by default it flushes the file to the disk only every two
//! minutes (`sync_interval: 2m`). So with one server and the default:
//!
//! - a crash of the **process** (`kill -9`, out of memory) loses nothing;
//! - a crash of the **machine** (power, kernel) can lose what was acknowledged in the last two minutes, and Jepsen has found
//!   in NATS 2.12.1 that this, and damaged files, can lose acknowledged messages of a cluster, too.
//!
//! The producer keeps a generation in memory until it is sealed, and appends again what the server has lost. So such a loss
//! becomes visible only if the producer is lost, too, or for streams that have ended. If that matters, set
//! `sync_interval: always` in the server's `jetstream` block (2.10 and later), or use a cluster with
//! [`with_replicas(3)`](NatsOptions::with_replicas) on machines that do not fail together; best, both. A client cannot read
//! the server's `sync_interval`, so [`NatsLog::warnings`] does not mention it.
//!
//! # Connections
//!
//! A log has one connection, and one more for each further tokio runtime whose producers append, up to 32: so an
//! acknowledgement wakes the thread that waits for it, and no other one, if each thread has a runtime of its own, as in the
//! gateway. `tls://` trusts the system's certificates, or those of [`NatsOptions::with_root_certificates`].
//!
//! # Failures
//!
//! No call waits longer than about a second, and a command than three: then it fails with [`LogError::Unavailable`](unbraid_log::LogError), and can be
//! repeated. A lost connection is always made again, at most a second after the server is back. A reader survives that; if
//! the server is away for more than two seconds, the reader ends with `Unavailable`, and is opened again at its cursor.
//!
//! A message that was not written by unbraid, and one of a later version, are typed errors
//! ([`LogError::InvalidRecord`](unbraid_log::LogError), [`LogError::UnsupportedVersion`](unbraid_log::LogError)). Nothing is
//! written over them.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod api;
mod claims;
mod commands;
mod connection;
mod contact;
mod entry;
mod error;
mod inner;
mod leases;
mod lifecycle;
mod locate;
mod names;
mod options;
mod permissions;
mod presence;
mod probe;
mod publishers;
mod reader;
mod replay;
mod store;
mod streams;
mod sweep;
mod tls;
mod writer;

pub use error::NatsError;
pub use options::NatsOptions;
pub use store::NatsLog;
