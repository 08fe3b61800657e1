//! The library's handles over a log: one process generates, another one reads.

mod ends;
mod read;
mod record;
mod text;
mod window;

pub use ends::EndError;
pub use read::{completions, source};
pub use record::{Recorder, Recording, record};
