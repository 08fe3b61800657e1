//! What a body is to its stream, and what its events are written with.

use std::sync::Arc;

use unbraid_core::{ChoiceEnd, ChoiceIndex, Metadata, ServerError, StreamError};

use crate::End;

/// How the events of one body are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The body has all choices, and its events are passed on unchanged.
    Whole,
    /// The body may turn out to have one choice only: its last event is held back if it has nothing but usage.
    MaybeWhole,
    /// The body is the answer to a request for this choice only; its chunks are rewritten. If it has several choices, the
    /// first of them counts, and the others are refused (E11).
    Single(ChoiceIndex),
}

impl Role {
    /// Whether the body may have this choice.
    #[must_use]
    pub fn may_have(self, choice: ChoiceIndex) -> bool {
        match self {
            Self::Single(single) => single == choice,
            Self::Whole | Self::MaybeWhole => true,
        }
    }
}

/// A choice that has appeared, or was cancelled before it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackedChoice {
    /// Its index in the stream.
    pub index: ChoiceIndex,
    /// Its finish reason, once that has arrived.
    pub finish_reason: Option<String>,
    /// How it ended, once it has.
    pub end: Option<End>,
}

/// What all chunks of a stream share: the metadata of its first chunk, and what is known of its request.
#[derive(Debug, Clone)]
pub struct Identity {
    /// That of the first chunk.
    pub metadata: Metadata,
    /// The path of the request.
    pub endpoint: &'static str,
    /// When the stream was created, in Unix seconds.
    pub created: u64,
    /// The model that was requested.
    pub model: Option<String>,
    /// Whether a chunk of the answer was written.
    pub has_chunks: bool,
    /// The id of chunks that come before all of the answer.
    own_id: Arc<str>,
    /// Whether all chunks get that id, because such a chunk was the first.
    is_own: bool,
}

/// What is written in place of chunks of the upstream.
pub trait ChunkText {
    /// The last chunk of a cancelled choice.
    fn cancelled(identity: &Identity, choice: ChoiceIndex) -> String;

    /// The last chunk of the only choice of a body that failed, and what its server said of that.
    fn failed(
        identity: &Identity,
        choice: ChoiceIndex,
        end: End,
        error: Option<&ServerError>,
    ) -> String;

    /// A chunk of a body with one choice, as that of another choice. `None` drops it.
    fn merged(payload: &[u8], choice: ChoiceIndex, first: &Metadata) -> Option<String>;

    /// What a chunk of a body with one choice brings beside the error that ends it. `None` if that is nothing.
    fn before_failure(payload: &[u8]) -> Option<Vec<u8>>;

    /// A chunk without the entries of these choices. `None` drops it.
    fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>>;
}

impl Identity {
    /// That of a stream without a chunk, created at a time in Unix seconds.
    #[must_use]
    pub fn new(endpoint: &'static str, created: u64, model: Option<String>) -> Self {
        Self {
            metadata: Metadata::default(),
            endpoint,
            created,
            model,
            has_chunks: false,
            own_id: Arc::default(),
            is_own: false,
        }
    }

    /// Sets the id of chunks that come before all of the answer.
    #[must_use]
    pub fn with_own_id(mut self, id: &str) -> Self {
        self.own_id = id.into();
        self
    }

    /// Notes that the first chunk is not one of the answer, whose chunks are rewritten: they get its identity.
    pub fn keep_own(&mut self) {
        self.is_own = true;
    }

    /// The id of the answer; the own one, while no chunk has arrived.
    #[must_use]
    pub fn id(&self) -> &str {
        match self.metadata.id.as_deref() {
            None if !self.has_chunks => &self.own_id,
            id => id.unwrap_or_default(),
        }
    }

    /// When the answer was created; the stream, while no chunk has arrived.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.metadata.created.unwrap_or(self.created)
    }

    /// The model of the answer; the one that was requested, while no chunk has arrived.
    #[must_use]
    pub fn model(&self) -> &str {
        let model = self.metadata.model.as_deref();
        model.or(self.model.as_deref()).unwrap_or_default()
    }

    pub(super) fn absorb(&mut self, metadata: &Metadata) {
        if self.metadata.id.is_none() && metadata.id.is_some() {
            self.metadata = metadata.clone();
            if self.is_own {
                self.metadata.id = Some(Arc::clone(&self.own_id));
                self.metadata.created = Some(self.created);
            }
        }
    }
}

/// How a body ended, by how its stream was closed.
pub(super) fn body_end(
    closed: Option<&Result<(), StreamError>>,
    is_done: bool,
    choices: &[TrackedChoice],
) -> End {
    let has = |end| choices.iter().any(|choice| choice.end == Some(end));
    match closed {
        // The upstream's own end mark: choices beyond the limit are not followed, but their events were passed on.
        Some(Ok(()) | Err(StreamError::Limit(_))) | None if is_done => {
            if has(End::DoneWithoutFinish) {
                End::DoneWithoutFinish
            } else {
                End::Finished
            }
        }
        // The end mark came without any chunk.
        Some(Err(StreamError::Empty { .. })) if is_done => End::DoneWithoutFinish,
        Some(Ok(())) if !choices.is_empty() && !has(End::Interrupted) => End::Finished,
        Some(Ok(())) | None => End::Interrupted,
        Some(Err(error)) => End::from(&ChoiceEnd::from(error)),
    }
}
