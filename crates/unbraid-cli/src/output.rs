//! Lines on the standard output and the standard error.

use std::{
    fmt,
    io::{self, Write},
};

/// The standard output, with colours only if it is a terminal and the environment does not disable them.
pub(crate) fn stdout() -> impl Write {
    anstream::stdout().lock()
}

/// Prints one line on the standard output, and flushes it.
pub(crate) fn print_line(line: fmt::Arguments<'_>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Prints one line on the standard error.
pub(crate) fn print_error(line: fmt::Arguments<'_>) {
    // If the standard error is closed, there is no other place for the message.
    let _closed: io::Result<()> = writeln!(io::stderr().lock(), "{line}");
}
