//! The calls that another block has followed at their index.

use std::collections::HashMap;

use crate::{
    dialect::{calls::Call, reader::text},
    limits::{MAX_ENTRIES, MAX_NAME_BYTES},
    node::Node,
};

/// The calls that another block has followed at their index, although more of their arguments may come. They are found by the id
/// in a delta, as fragments of several calls may be interleaved (T28).
#[derive(Default)]
pub(super) struct Earlier {
    /// The ordinal of the latest call with an id at an index. The id of a delta is looked up here, whatever the number of calls.
    ordinals: HashMap<(i64, String), i64>,
    /// The calls by their ordinals, without the one that is open or that has stopped last at its index.
    calls: HashMap<i64, Call>,
}

impl Earlier {
    /// Notes the id in the start of a call, or in the delta that opens it.
    pub(super) fn note_id(&mut self, index: i64, node: &Node<'_>, call: &Call) {
        let id = text(node, "toolUseId").filter(|id| id.len() <= MAX_NAME_BYTES);
        if let Some(id) = id
            && self.ordinals.len() < MAX_ENTRIES
        {
            self.ordinals.insert((index, id.into_owned()), call.ordinal);
        }
    }

    /// Keeps a call that another block follows.
    pub(super) fn keep(&mut self, call: Call) {
        if self.calls.len() < MAX_ENTRIES {
            self.calls.insert(call.ordinal, call);
        }
    }

    /// Takes the call with the id of a delta; `None` if the id is unknown, or that of the open or stopped call of the index.
    pub(super) fn take(&mut self, index: i64, delta: &Node<'_>) -> Option<Call> {
        if self.calls.is_empty() {
            return None;
        }
        let id = text(delta, "toolUseId")?;
        let ordinal = self.ordinals.get(&(index, id.into_owned()))?;
        self.calls.remove(ordinal)
    }
}

#[cfg(test)]
mod tests;
