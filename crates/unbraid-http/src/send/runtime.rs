//! Checks for a runtime before reqwest would panic.

use std::{panic::catch_unwind, time::Duration};

use tokio::{runtime::Handle, time::sleep};

use crate::error::HttpError;

/// Checks that this thread has a runtime, and that the runtime has a time driver.
pub(crate) fn check_runtime() -> Result<(), HttpError> {
    Handle::try_current().map_err(|_| HttpError::NoRuntime)?;
    // tokio cannot be asked for a time driver, so a timer is made and a panic is caught: docs/design/005-timers.md.
    catch_unwind(|| drop(sleep(Duration::ZERO))).map_err(|_| HttpError::NoTimeDriver)
}
