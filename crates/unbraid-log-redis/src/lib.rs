//! Streams of LLM answers in Redis or Valkey, so that any gateway on any machine can read, resume and cancel them.
//!
//! [`RedisLog`] is a [`LogStore`](unbraid_log::LogStore) for Redis or Valkey 7.0 and later. The gateway of unbraid uses it with
//! `--log redis://HOST`; another program can use it directly.
//!
//! # Five minutes
//!
//! ```sh
//! redis-server --appendonly yes --maxmemory-policy noeviction
//! ```
//!
//! ```no_run
//! use futures::StreamExt;
//! use unbraid_log::{End, Event, LogStore, Meta, RecordBuilder, Seq, StreamEnd, StreamId};
//! use unbraid_log_redis::{RedisLog, RedisOptions};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // One process produces a stream.
//! let log = RedisLog::connect("redis://127.0.0.1", RedisOptions::default()).await?;
//! let id = StreamId::random()?;
//! let mut writer = log.open(&id, &Meta::new("/v1/chat/completions", 1_790_000_000)).await?;
//! let mut builder = RecordBuilder::new(Seq(1));
//! builder.push(&Event::chunk(&[0.into()], br#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#));
//! while let Some(record) = builder.take() {
//!     writer.append(&record).await?;
//! }
//! writer.seal(&StreamEnd::new(End::Finished)).await?;
//!
//! // Another process reads it, from any event on, while it is produced or later.
//! let other = RedisLog::connect("redis://127.0.0.1", RedisOptions::default()).await?;
//! let mut records = other.read(&id, Seq::START);
//! while let Some(record) = records.next().await {
//!     for (seq, event) in record?.events() {
//!         println!("{seq}: {} bytes", event.payload().map_or(0, <[u8]>::len));
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What is lost when
//!
//! A producer keeps its stream in memory until the seal is acknowledged, and appends again whatever the server has lost. So as
//! long as the producer lives, nothing is lost. This is what a server loses for good if it dies:
//!
//! | configuration of the server | running streams whose producer dies, too | ended streams |
//! |---|---|---|
//! | `appendonly no` | all | all since the last snapshot |
//! | `appendonly yes`, `appendfsync everysec` (the default with it) | their last second, two on a busy disk | of streams that ended within that time, the same: they end as `producer_lost` |
//! | `appendonly yes`, `appendfsync always` | nothing that was acknowledged | nothing |
//! | a failover to a replica | what the replica had not received | the same |
//! | the same [with replicas](RedisOptions::with_replicas) | nothing that was acknowledged, unless the promoted replica is not one of those that acknowledged it | the same |
//!
//! A crash of the process alone usually loses nothing with `appendonly yes`: the operating system has the file. Replicas
//! are asked with `WAIT`, once for all writers of a connection that are ready. If too few have answered after 50 ms, the
//! append is [`Unavailable`](unbraid_log::LogError::Unavailable), and the producer repeats it.
//!
//! # Requirements
//!
//! - Redis or Valkey 7.0 or later: one primary, with or without replicas, or a name or proxy that leads to the primary.
//!   [`RedisLog::connect`] refuses a node of a cluster. All keys of a stream share a hash tag, but a reader's
//!   connection follows many streams with one `XREAD`, which a cluster does not allow.
//! - `maxmemory-policy noeviction`. Otherwise a full server deletes streams; [`RedisLog::warnings`] says so. A full server
//!   that evicts nothing refuses new streams ([`Full`](unbraid_log::LogError::Full)) and records, which wait in their
//!   producers' memory.
//! - Permission to run `INFO`, `EVAL`, `EVALSHA`, `SCRIPT|LOAD`, `SET`, `XADD`, `XRANGE`, `XREVRANGE`, `XLEN`, `XREAD`, `XDEL`,
//!   `GET`, `DEL`, `UNLINK`, `EXISTS`, `PTTL`, `PEXPIRE` and `WAIT` on the keys `unbraid:*`, as
//!   `ACL SETUSER unbraid on >PASSWORD ~unbraid:* +@read +@write +@stream +@scripting +@connection -@dangerous +info +wait`
//!   gives it.
//! - `rediss://` trusts the system's certificates, or those of [`RedisOptions::with_root_certificates`].
//!
//! # Keys
//!
//! | key | content | expires |
//! |---|---|---|
//! | `unbraid:{<id>}:log` | a stream: one entry `<first>-<last>` for each record, and the seal | a day after the last renewal; after the seal, the [ttl](RedisOptions::with_ttl) |
//! | `unbraid:{<id>}:meta` | the meta data | a day later |
//! | `unbraid:{<id>}:lease` | the producer's gateway | the [lease](RedisOptions::with_lease) |
//! | `unbraid:claim:<hash>` | who holds an idempotency key | with its stream |
//! | `unbraid:claim-lease:{unbraid:claim:<hash>}` | that its gateway lives, until the stream is open | the lease |
//! | `unbraid:commands:<gateway>` | a stream: commands to a gateway | a day after the last one |
//! | `unbraid:wake:<gateway>:<n>` | a stream: wakes a connection that waits for entries | a day after the last one |
//!
//! # Connections
//!
//! All calls from one tokio runtime share one connection, for up to 32 runtimes; further ones share another. So an answer
//! wakes the thread that waits for it, and no other one, if each thread has a runtime of its own, as in the gateway.
//! Readers share one for each 128 streams that are followed, and commands have one. A call ends within about a second,
//! whatever the server does. A broken connection is re-established with growing pauses of up to a quarter of a second, and
//! the host's name is resolved each time, so that a failover by DNS is followed. Readers survive interruptions that are
//! shorter than a lease. Every 0.4 seconds a log asks the server whether it would write, and for its time: a lease that has
//! expired proves nothing unless it would have for the last half of a lease, and its clock was not moved forward.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod address;
mod background;
mod claims;
mod entry;
mod error;
mod hub;
mod inbox;
mod inner;
mod keys;
mod link;
mod log;
mod options;
mod reader;
mod rest;
mod script;
mod server;
mod writer;

pub use error::ConnectError;
pub use log::RedisLog;
pub use options::RedisOptions;
