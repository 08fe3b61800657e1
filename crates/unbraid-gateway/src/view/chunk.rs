//! Chunks as text: cuts to a choice's entries, and chunks of the gateway's own.
//!
//! Whatever is not cut is passed on byte for byte, so a chunk is never parsed into values and written again.

mod calls;
mod cut;
mod edit;
mod json;
mod part;
mod scan;
mod synthetic;

pub(super) use calls::CallNumbers;
pub(super) use cut::{Cuts, Rewritten, Selection};
use edit::Edits;
pub(crate) use synthetic::SyntheticChunks;
pub(super) use synthetic::{empty_entry, kind_of, object_of};
use unbraid_core::ChoiceIndex;

use crate::fields::Fields;

/// The chunk with every entry's index set to this one, for the merged chunks of a fan-out. Everything else is
/// unchanged. `None` if it has no entry.
pub(crate) fn set_index(payload: &[u8], index: ChoiceIndex) -> Option<Vec<u8>> {
    let scan = scan::scan(payload, false)?;
    let mut edits = Edits::default();
    let mut has_entry = false;
    for entry in scan.lists.iter().flat_map(|list| &list.entries) {
        if entry.choice.is_some() {
            cut::write_index(entry, index.0, &mut edits);
            has_entry = true;
        }
    }
    has_entry.then(|| edits.apply(payload))
}

/// The chunk with the entries of one choice only; it may have none. `None` if it is not a chunk.
pub(super) fn only_choice(payload: &[u8], choice: ChoiceIndex) -> Option<Vec<u8>> {
    let scan = scan::scan(payload, false)?;
    let mut edits = Edits::default();
    for list in &scan.lists {
        cut::keep_entries(list, |entry| entry.choice == Some(choice.0), &mut edits);
    }
    Some(edits.apply(payload))
}

/// The chunk without the entries of these choices, which were cancelled. `None` if no entry remains, or it is not a
/// chunk.
pub(crate) fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>> {
    let scan = scan::scan(payload, false)?;
    let mut edits = Edits::default();
    let mut has_entry = false;
    for list in &scan.lists {
        let is_kept = |entry: &scan::Entry| {
            let choice = entry.choice.map(ChoiceIndex);
            choice.is_none_or(|choice| !dropped.contains(&choice))
        };
        has_entry |= list.entries.iter().any(is_kept);
        cut::keep_entries(list, is_kept, &mut edits);
        if list.entries.iter().all(is_kept) {
            continue;
        }
        // Without its neighbours, an entry that is known by its position would be that of another choice (E8).
        let kept = list.entries.iter().filter(|entry| is_kept(entry));
        for entry in kept.filter(|entry| !entry.has_index) {
            if let Some(choice) = entry.choice {
                cut::write_index(entry, choice, &mut edits);
            }
        }
    }
    has_entry.then(|| edits.apply(payload))
}

/// The chunk without the error that it has beside its choices. `None` if it has no choices, or no error.
pub(crate) fn without_error(payload: &[u8]) -> Option<Vec<u8>> {
    let fields: Fields = serde_json::from_slice(payload).ok()?;
    fields.get("error")?;
    let chunk = fields.encode(&[], &["error"]).into_bytes();
    let scan = scan::scan(&chunk, false)?;
    let has_entry = scan.lists.iter().any(|list| !list.entries.is_empty());
    has_entry.then_some(chunk)
}

#[cfg(test)]
mod tests;
