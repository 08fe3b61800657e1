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

    /// Applies batches that no consumer applies first, until nothing more will be appended.
    pub(crate) async fn drive(&self) {
        self.log.apply_until_complete().await;
    }
}

impl Drop for LogOwner {
    fn drop(&mut self) {
        // In `drop`, so that it also runs when the task of the actor is dropped by a kill or with its runtime.
        let panicked = self.log.seal_by_owner();
        if panicked {
            tracing::error!("a choice was lost: its machine panicked"); // not under the lock: it runs foreign code
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use unbraid_core::{ChoiceEnd, ChoiceIndex, CompletionKind, Config, Position};

    use super::*;
    use crate::{
        state::{batch::Batch, completion::CompletionState},
        sync::{
            shared::Shared,
            wait_list::{Interest, WakeList},
        },
    };

    fn new_log() -> ChoiceLog {
        let (index, config) = (ChoiceIndex(0), Arc::new(Config::default()));
        ChoiceLog::new(index, CompletionKind::Chat, &config, Instant::now())
    }

    #[tokio::test]
    async fn sealing_a_log_ends_its_choice_as_lost_unless_it_has_an_end() {
        let end = |log: &ChoiceLog| log.read(|state| state.transcript.end().map(ChoiceEnd::as_str));
        let log = new_log();
        log.seal();
        assert_eq!(end(&log), Some("lost"));
        let log = new_log();
        let mut batch = Batch::default();
        batch.push_finish(ChoiceEnd::Cancelled, Position::default());
        log.append_and_apply(Interest::NONE, &mut batch, &mut WakeList::default());
        log.seal();
        assert_eq!(end(&log), Some("cancelled"));
    }

    #[tokio::test]
    async fn a_log_is_sealed_even_if_its_machine_believes_that_it_has_ended() {
        let log = new_log();
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
