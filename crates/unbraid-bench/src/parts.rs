//! What the benches of the parts work on.

use bytes::Bytes;

use crate::{
    body::{self, BRAIDED},
    json,
};

/// The body of about so many chunks, braided as in the tables.
#[must_use]
pub fn braided(chunks: usize) -> Bytes {
    body::body(chunks, BRAIDED).bytes
}

/// The arguments of a call, of about so many bytes.
#[must_use]
pub fn arguments(bytes: usize) -> String {
    json::document(bytes)
}

/// The same in fragments of four bytes.
pub fn fragments(arguments: &str) -> impl Iterator<Item = &str> {
    json::fragments(arguments)
}
