//! `Background`: a task that lasts as long as the log, whatever becomes of the runtime in which it began.

use std::sync::{Mutex, PoisonError};

use tokio::{runtime::Handle, task::AbortHandle};

/// At most one task. Dropping it ends the task.
#[derive(Debug, Default)]
pub(crate) struct Background {
    task: Mutex<Option<AbortHandle>>,
}

impl Background {
    /// Starts the task if it does not run: at first, and when the runtime in which it ran was shut down. Nothing happens
    /// outside of a runtime.
    pub(crate) fn ensure<F: Future<Output = ()> + Send + 'static>(&self, task: impl FnOnce() -> F) {
        let mut running = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if running.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        if let Ok(runtime) = Handle::try_current() {
            *running = Some(runtime.spawn(task()).abort_handle());
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}
