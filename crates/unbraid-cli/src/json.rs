//! JSON as the command prints it: indented, and safe for a terminal.

mod indent;
mod stream_indent;
mod terminal_safe;

use std::{
    fmt,
    io::{self, BufWriter, Write},
};

use serde::Serialize;
use serde_json::Value;

use self::indent::Indenter;

pub(crate) use self::{stream_indent::StreamIndenter, terminal_safe::TerminalSafe};

/// A value of the library as one line of JSON text, in which numbers keep their digits.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| Value::from(error.to_string()).to_string())
}

/// A value of the library as a JSON value. Numbers beyond the range of `f64` are null, where `serde_json::to_value` fails.
pub(crate) fn value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|_| unbraid_core::internal::parsed(&text(value)))
}

/// Writes a value, indented and with a newline at its end.
pub(crate) fn write_value(value: &Value, out: &mut impl Write) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    serde_json::to_writer_pretty(TerminalSafe(&mut out), value)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes JSON text like [`write_value`], but leaves its numbers and strings as they are. `write` produces the text in parts:
/// whole tokens without white space, or parts of one string.
pub(crate) fn write_text(
    out: &mut impl Write,
    write: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result,
) -> io::Result<()> {
    let mut indenter = Indenter::new(TerminalSafe(out));
    let written = write(&mut indenter);
    let TerminalSafe(out) = indenter.finish()?;
    written.map_err(io::Error::other)?;
    out.write_all(b"\n")?;
    out.flush()
}
