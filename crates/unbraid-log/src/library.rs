//! The library's handles over a log: one process generates, another one reads.

mod commands;
mod ends;
mod read;
mod record;
mod text;

pub use ends::EndError;
pub use read::{completions, source};
pub use record::{Recorder, Recording, record};
