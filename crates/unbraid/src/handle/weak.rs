//! A handle that does not keep its completion alive.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use super::completions::Completions;
use crate::{control::CancelOnDrop, state::completion::CompletionState, sync::shared::Shared};

/// A handle that does not keep its completion alive; see [`Completions::downgrade`].
///
/// It suits a map of sessions: the source is closed as soon as the last real handle is dropped, whether or not an entry of
/// the map is left. Dropping a weak handle does nothing.
///
/// # Examples
///
/// ```
/// # use futures::stream;
/// use std::collections::HashMap;
/// use unbraid::{Completions, WeakCompletions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let bytes = stream::pending::<Result<Vec<u8>, std::io::Error>>();
/// let completions = Completions::from_byte_stream(bytes);
/// let mut sessions: HashMap<u32, WeakCompletions> = HashMap::new();
/// sessions.insert(7, completions.downgrade());
/// assert!(sessions[&7].upgrade().is_some());
/// drop(completions); // the source is closed
/// assert!(sessions[&7].upgrade().is_none());
/// # }
/// ```
#[derive(Clone)]
pub struct WeakCompletions {
    completion: Weak<Shared<CompletionState>>,
    guard: Weak<CancelOnDrop>,
}

impl Completions {
    /// A handle that does not keep the completion alive, for a map of sessions.
    ///
    /// # Examples
    ///
    /// See [`WeakCompletions`].
    #[must_use]
    pub fn downgrade(&self) -> WeakCompletions {
        WeakCompletions {
            completion: Arc::downgrade(&self.completion),
            guard: Arc::downgrade(&self.guard),
        }
    }
}

impl WeakCompletions {
    /// The completion; `None` once its last handle was dropped.
    ///
    /// A [`Choice`](crate::Choice) or one of its streams keeps the source open, but not the list of choices: if only such
    /// handles are left, this returns `None` as soon as the stream has closed.
    ///
    /// # Examples
    ///
    /// ```
    /// # use futures::stream;
    /// use unbraid::Completions;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let bytes = stream::pending::<Result<Vec<u8>, std::io::Error>>();
    /// let completions = Completions::from_byte_stream(bytes);
    /// let weak = completions.downgrade();
    /// if let Some(completions) = weak.upgrade() {
    ///     completions.cancel();
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Completions> {
        // The guard first: as long as it is held, the reader is not killed.
        let guard = self.guard.upgrade()?;
        let completion = self.completion.upgrade()?;
        Some(Completions { completion, guard })
    }
}

impl fmt::Debug for WeakCompletions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakCompletions")
            .field("alive", &(self.guard.strong_count() > 0))
            .finish_non_exhaustive()
    }
}
