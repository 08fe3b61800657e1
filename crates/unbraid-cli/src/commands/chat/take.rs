//! `--take`: the first choices that finish, while the answer is shown.

use tokio::task::JoinHandle;
use unbraid::Completions;
use unbraid_core::ChoiceOutcome;

/// The task that cancels the remaining choices once `k` have finished.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) k: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    Waiting(JoinHandle<Vec<ChoiceOutcome>>),
    Finished(Vec<ChoiceOutcome>),
}

impl Take {
    pub(super) fn new(completions: &Completions, k: u32) -> Self {
        let (completions, k) = (completions.clone(), k as usize);
        let task = tokio::spawn(async move { completions.first_finished(k).await });
        Self {
            k,
            state: State::Waiting(task),
        }
    }

    /// Waits for the choices that finished first, at most `k`, in the order in which they finished.
    pub(super) async fn finished(&mut self) -> &[ChoiceOutcome] {
        if let State::Waiting(task) = &mut self.state {
            // If the task panicked, which the hook has reported, no choice counts as finished.
            self.state = State::Finished(task.await.unwrap_or_default());
        }
        match &self.state {
            State::Finished(choices) => choices,
            State::Waiting(_) => &[],
        }
    }
}
