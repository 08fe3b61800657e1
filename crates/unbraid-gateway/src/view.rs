//! The reading side: how a stream's log becomes the bytes of each view.
//!
//! Nothing here does I/O. A [`StreamView`] exists once for each stream that this gateway reads, over the journal of the
//! stream. Each response has a [`ViewReader`], which is a cursor and a filter.

mod assemble;
mod chunk;
mod frame;
mod reader;
mod request;
mod shared;
mod terminal;
mod track;

pub(crate) use chunk::{SyntheticChunks, before_failure, set_index, without_choices};
pub(crate) use reader::ViewReader;
pub(crate) use request::{Format, Part, RequestHeaders, Start, Target, ViewError, ViewRequest};
pub(crate) use shared::{Opened, StreamView};
pub(crate) use terminal::error_object;

/// What is written after a silence: a comment of one line. A blank line after it would be an event without data, on
/// which openai-python fails.
pub(crate) const PING: &[u8] = b": ping\n";

#[cfg(test)]
mod tests;
