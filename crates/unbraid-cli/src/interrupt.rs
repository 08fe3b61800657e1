//! Ctrl-C while a completion is shown.

use std::{io, task::Poll};

use futures::future::maybe_done;
use tokio::{
    signal,
    task::{AbortHandle, JoinHandle},
};
use unbraid::Completions;

use crate::{exit, live};

/// Cancels a completion at Ctrl-C. Dropping the guard ends this.
#[derive(Debug)]
pub(crate) struct CancelOnInterrupt(AbortHandle);

impl CancelOnInterrupt {
    pub(crate) async fn new(completions: &Completions) -> Self {
        let completions = completions.clone();
        let mut first = Box::pin(maybe_done(signal::ctrl_c()));
        // The first poll installs the signal handler. Polling here, not in the task, covers the time before the runtime
        // schedules the task.
        let _installed: Poll<()> = futures::poll!(&mut first);
        let task: JoinHandle<io::Result<()>> = tokio::spawn(async move {
            first.as_mut().await;
            first.as_mut().take_output().unwrap_or(Ok(()))?;
            completions.cancel();
            // After the first Ctrl-C the command still prints its summary. A second one means that the output is blocked
            // by a reader that no longer reads.
            signal::ctrl_c().await?;
            live::restore_terminal();
            std::process::exit(exit::UNFINISHED.into());
        });
        Self(task.abort_handle())
    }
}

impl Drop for CancelOnInterrupt {
    fn drop(&mut self) {
        self.0.abort();
    }
}
