//! A transcript that can be read outside the lock of its log.

use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

use unbraid_core::Transcript;

/// The transcript of a log. Its writer is under the log's lock; a reader that runs foreign code must not be, since that code
/// may read the same log.
#[derive(Debug)]
pub(crate) struct SharedTranscript(Arc<Transcript>);

impl SharedTranscript {
    pub(crate) fn new(transcript: Transcript) -> Self {
        Self(Arc::new(transcript))
    }

    /// The transcript as it stands. A write copies it while this lives, so that this should not live long.
    pub(crate) fn share(&self) -> Arc<Transcript> {
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
        Arc::make_mut(&mut self.0)
    }
}
