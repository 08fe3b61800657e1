//! A transcript that can be read without holding the lock of its log.

use std::{
    mem,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use unbraid_core::Transcript;

/// The transcript of a log. It is written under the log's lock. A reader that runs foreign code must not hold that lock,
/// because the foreign code may read the same log; it takes a snapshot instead.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every log has the large variant"
)]
// The discriminant comes first, beside what a delta of text needs, and not where the transcript has a value to spare.
#[repr(u8)]
pub(crate) enum SharedTranscript {
    /// No snapshot was taken, as of nearly all logs. The transcript is then part of the log: an `Arc` would cost each write
    /// two atomic operations and a cache line.
    Own(Transcript),
    /// A snapshot was taken, and may still exist.
    Shared(Arc<Transcript>),
}

impl SharedTranscript {
    pub(crate) fn new(transcript: Transcript) -> Self {
        Self::Own(transcript)
    }

    /// The transcript as it is now. As long as the snapshot lives, the next write copies the transcript, so callers should
    /// drop it soon.
    pub(crate) fn snapshot(&mut self) -> Arc<Transcript> {
        match self {
            Self::Shared(transcript) => Arc::clone(transcript),
            Self::Own(transcript) => {
                let empty = Transcript::new(transcript.index(), transcript.kind());
                let snapshot = Arc::new(mem::replace(transcript, empty));
                *self = Self::Shared(Arc::clone(&snapshot));
                snapshot
            }
        }
    }

    /// Whether a snapshot lives, so that a write copies the transcript.
    pub(crate) fn is_copied_by_a_write(&mut self) -> bool {
        match self {
            Self::Own(_) => false,
            Self::Shared(transcript) => Arc::get_mut(transcript).is_none(),
        }
    }
}

impl Deref for SharedTranscript {
    type Target = Transcript;

    fn deref(&self) -> &Transcript {
        match self {
            Self::Own(transcript) => transcript,
            Self::Shared(transcript) => transcript,
        }
    }
}

impl DerefMut for SharedTranscript {
    fn deref_mut(&mut self) -> &mut Transcript {
        match self {
            Self::Own(transcript) => transcript,
            // Copies only while a snapshot lives.
            Self::Shared(transcript) => Arc::make_mut(transcript),
        }
    }
}
