//! The calls that another block has followed at their index.

use std::collections::HashMap;

use crate::{dialect::calls::Call, limits::MAX_ENTRIES};

/// The calls that another block has followed at their index, although more of their arguments may come. They are found by the id
/// in a delta, as fragments of several calls may be interleaved (T28).
#[derive(Default)]
pub(super) struct Earlier(HashMap<(i64, String), Call>);

impl Earlier {
    /// Keeps a call that another block follows. Without an id nothing could find it.
    pub(super) fn keep(&mut self, index: i64, call: Call) {
        if let Some(id) = call.id()
            && self.0.len() < MAX_ENTRIES
        {
            self.0.insert((index, id.to_owned()), call);
        }
    }

    pub(super) fn take(&mut self, index: i64, id: &str) -> Option<Call> {
        if self.0.is_empty() {
            return None;
        }
        self.0.remove(&(index, id.to_owned()))
    }
}

#[cfg(test)]
mod tests;
