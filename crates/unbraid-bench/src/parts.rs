//! The inputs of the benchmarks of single parts.

use bytes::Bytes;

use crate::{
    body::{self, BRAIDED},
    json,
};

/// A body of about `chunks` chunks, interleaved as in the tables.
#[must_use]
pub fn braided(chunks: usize) -> Bytes {
    body::body(chunks, BRAIDED).bytes
}

/// The arguments of a call, of about `bytes` bytes.
#[must_use]
pub fn arguments(bytes: usize) -> String {
    json::document(bytes)
}

/// Splits arguments into fragments of four bytes.
pub fn fragments(arguments: &str) -> impl Iterator<Item = &str> {
    json::fragments(arguments)
}
