//! The owner of a choice's log.

use std::sync::Arc;

use super::{choice_log::ChoiceLog, completion::CompletionWriter};

/// Owns the log of one choice. Dropping the owner seals the log, so whatever happens to a choice, no waiter is left hanging.
///
/// It also keeps the completion open. Dropped last, after the reader and all other choices, it closes the completion as
/// lost. If the completion closed earlier, a consumer of all events would end before it had seen the end of this choice.
#[derive(Debug)]
pub(crate) struct LogOwner {
    log: ChoiceLog,
    /// Declared after the log, and only held: it is dropped once the log is sealed.
    _completion: Arc<CompletionWriter>,
}

impl LogOwner {
    pub(crate) fn new(log: ChoiceLog, completion: Arc<CompletionWriter>) -> Self {
        Self {
            log,
            _completion: completion,
        }
    }

    /// Applies what has been appended so far.
    pub(crate) fn apply(&self) {
        self.log.apply();
    }

    /// Applies batches that no consumer applies first, until nothing more will be appended.
    pub(crate) async fn drive(&self) {
        self.log.apply_until_complete().await;
    }
}

impl Drop for LogOwner {
    fn drop(&mut self) {
        let panicked = self.log.seal_by_owner();
        if panicked {
            tracing::error!("a choice was lost: its machine panicked"); // not under the lock: it runs foreign code
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use unbraid_core::{ChoiceEnd, ChoiceIndex, CompletionKind, Config};

    use super::*;
    use crate::{state::completion::CompletionState, sync::shared::Shared};

    #[tokio::test]
    async fn a_log_is_sealed_even_if_its_machine_believes_that_it_has_ended() {
        let config = Config::default();
        let log = ChoiceLog::new(
            ChoiceIndex(0),
            CompletionKind::Chat,
            &config,
            Instant::now(),
        );
        log.finish_machine_only();
        let completion = Arc::new(Shared::new(CompletionState::of_one_source()));
        let writer = Arc::new(CompletionWriter::new(&completion, 0));
        let owner = LogOwner::new(log.clone(), Arc::clone(&writer));
        drop(writer);
        assert!(completion.read(|state| state.closed.is_none()));
        drop(owner);
        assert!(completion.read(|state| state.closed.is_some()));
        assert!(log.read(|state| matches!(state.transcript.end(), Some(ChoiceEnd::Lost))));
        assert!(log.read(|state| state.timing.end.is_some()));
    }
}
