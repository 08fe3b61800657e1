//! Loads memory before it is needed.
//!
//! With thousands of streams open, each event finds the memory of its own stream cold. Code that follows one pointer after
//! another waits for each of these cache lines in turn. Loads that do not depend on each other are in flight together, so
//! the lines that the next event will need are loaded first, all at once (docs/design/022).

use std::hint::black_box;

/// The size of a cache line on nearly all processors.
const LINE: usize = 64;

/// The most lines that are loaded of one value. A processor has about this many loads in flight, and finds the next lines
/// of a long value itself.
const MOST_LINES: usize = 16;

/// Loads the first cache lines of these bytes.
#[inline]
pub(crate) fn prefetch_bytes(bytes: &[u8]) {
    let bytes = bytes.get(..MOST_LINES * LINE).unwrap_or(bytes);
    let lines = bytes.iter().step_by(LINE).chain(bytes.last());
    prefetch(lines.fold(0, |sum, byte| sum ^ u64::from(*byte)));
}

/// Loads a value, although nothing depends on it.
#[doc(hidden)]
#[inline]
pub fn prefetch(value: u64) {
    black_box(value);
}
