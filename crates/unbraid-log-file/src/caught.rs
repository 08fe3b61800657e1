//! Panics of redb, which are errors of the file.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe, catch_unwind},
    sync::Once,
};

use crate::FileLogError;

thread_local! {
    /// Whether this thread is in a call whose panic is caught.
    static CATCHES: Cell<bool> = const { Cell::new(false) };
}

/// Calls something that uses the file. redb may panic at a page that was changed from outside.
pub(crate) fn catch<T>(call: impl FnOnce() -> Result<T, FileLogError>) -> Result<T, FileLogError> {
    let outer = CATCHES.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    CATCHES.set(outer);
    result.unwrap_or_else(|_| {
        Err(FileLogError::Damaged {
            reason: "a page is not as it was written".to_owned(),
        })
    })
}

/// Lets the panic hook leave out the panics of a log in this process that are returned as errors: redb panics at some damaged
/// files, and the default hook would print that before the program has the error.
///
/// It replaces the hook of the process by one that calls it for all other panics, so it is for programs, and not for
/// libraries. Further calls do nothing.
///
/// # Examples
///
/// ```
/// unbraid_log_file::hide_caught_panics();
/// ```
///
/// # Panics
///
/// If this thread is panicking.
pub fn hide_caught_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !CATCHES.get() {
                hook(panic);
            }
        }));
    });
}
