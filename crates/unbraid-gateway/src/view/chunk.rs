//! Chunks as text: cuts of a choice's entries, and chunks of the gateway's own.

use unbraid_core::{ChoiceIndex, Metadata};
use unbraid_log::End;

/// The chunk with every entry's index set to this one, for the merged chunks of a fan-out. Everything else is unchanged. `None` if it
/// is not a chunk.
pub(crate) fn set_index(payload: &[u8], index: ChoiceIndex) -> Option<Vec<u8>> {
    let _ = (payload, index);
    unimplemented!()
}

/// The chunk without the entries of these choices, which were cancelled. `None` if no entry remains, or it is not a
/// chunk.
pub(crate) fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>> {
    let _ = (payload, dropped);
    unimplemented!()
}

/// Builds the last chunks of choices that the gateway ends.
#[derive(Debug, Clone)]
pub(crate) struct SyntheticChunks<'a> {
    metadata: &'a Metadata,
    endpoint: &'a str,
}

impl<'a> SyntheticChunks<'a> {
    /// Chunks with the id, the model and the time of a stream. The endpoint decides their kind while the stream is empty.
    pub(crate) fn new(metadata: &'a Metadata, endpoint: &'a str) -> Self {
        Self { metadata, endpoint }
    }

    /// `"finish_reason":"cancelled"`.
    pub(crate) fn cancelled(&self, choice: ChoiceIndex) -> String {
        let _ = choice;
        unimplemented!()
    }

    /// `"finish_reason":"error"`, with the end's name as the error's code.
    pub(crate) fn failed(&self, choice: ChoiceIndex, end: End) -> String {
        let _ = (choice, end);
        unimplemented!()
    }
}
