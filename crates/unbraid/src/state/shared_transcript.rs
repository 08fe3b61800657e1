//! A transcript that can be read without holding the lock of its log.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use unbraid_core::Transcript;

/// The transcript of a log. It is written under the log's lock. A reader that runs foreign code must not hold that lock,
/// because the foreign code may read the same log; it takes a snapshot instead.
#[derive(Debug)]
pub(crate) struct SharedTranscript(Arc<Transcript>);

impl SharedTranscript {
    pub(crate) fn new(transcript: Transcript) -> Self {
        Self(Arc::new(transcript))
    }

    /// The transcript as it is now. As long as the snapshot lives, the next write copies the transcript, so callers should
    /// drop it soon.
    pub(crate) fn snapshot(&self) -> Arc<Transcript> {
        Arc::clone(&self.0)
    }
}

impl Deref for SharedTranscript {
    type Target = Transcript;

    fn deref(&self) -> &Transcript {
        &self.0
    }
}

impl DerefMut for SharedTranscript {
    fn deref_mut(&mut self) -> &mut Transcript {
        // Copies only while a snapshot lives. In a stream that nobody takes snapshots of, this is a comparison.
        Arc::make_mut(&mut self.0)
    }
}
