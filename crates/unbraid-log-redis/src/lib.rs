//! Streams of LLM answers in Redis or Valkey.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(clippy::indexing_slicing, clippy::expect_used, clippy::panic)]

mod address;
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
