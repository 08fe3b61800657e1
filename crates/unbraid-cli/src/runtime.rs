//! The tokio runtime of the subcommands that need one.

use std::future::Future;

use tokio::runtime::Builder;

use crate::exit::{Failure, Status};

/// Runs a command on this thread, which may block on the standard output: the actors run on the two worker threads.
pub(crate) fn block_on(
    command: impl Future<Output = Result<Status, Failure>>,
) -> Result<Status, Failure> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Failure::Runtime)?;
    let result = runtime.block_on(command);
    // A blocking read of the standard input cannot be cancelled. Waiting for it, as dropping the runtime does, would keep
    // the process alive until the next input.
    runtime.shutdown_background();
    result
}
