//! Streams of LLM answers in NATS JetStream.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod api;
mod claims;
mod commands;
mod connection;
mod entry;
mod error;
mod inner;
mod leases;
mod lifecycle;
mod locate;
mod names;
mod options;
mod reader;
mod replay;
mod store;
mod streams;
mod sweep;
mod writer;

pub use error::NatsError;
pub use options::NatsOptions;
pub use store::NatsLog;
