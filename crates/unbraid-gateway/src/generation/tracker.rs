//! Follows one upstream body with the core's own machinery, and cuts its chunks as text.

use unbraid_core::{ChoiceIndex, Metadata, ServerError};
pub(super) use unbraid_log::internal::{Identity, Role, TrackedChoice};
use unbraid_log::{
    End,
    internal::{self, ChunkText},
};

use super::rewrite;
use crate::view::{self, SyntheticChunks};

/// One upstream body.
pub(super) type Tracker = internal::Tracker<TextChunks>;

/// Chunks that are cut, and never parsed into values and written again.
#[derive(Debug)]
pub(super) struct TextChunks;

impl TextChunks {
    pub(super) fn of(identity: &Identity) -> SyntheticChunks<'_> {
        SyntheticChunks::new(&identity.metadata, identity.endpoint)
            .with_id(identity.id())
            .with_request(identity.created, identity.model.as_deref())
    }
}

impl ChunkText for TextChunks {
    fn cancelled(identity: &Identity, choice: ChoiceIndex) -> String {
        Self::of(identity).cancelled(choice)
    }

    fn failed(
        identity: &Identity,
        choice: ChoiceIndex,
        end: End,
        error: Option<&ServerError>,
    ) -> String {
        Self::of(identity).failed(choice, end, error)
    }

    fn merged(payload: &[u8], choice: ChoiceIndex, first: &Metadata) -> Option<String> {
        rewrite::merged_chunk(payload, choice, first)
    }

    fn before_failure(payload: &[u8]) -> Option<Vec<u8>> {
        view::before_failure(payload)
    }

    fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>> {
        view::without_choices(payload, dropped)
    }
}

#[cfg(test)]
mod tests;
