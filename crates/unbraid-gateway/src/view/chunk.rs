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
use serde_json::Value;
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
pub(super) fn without_error(payload: &[u8]) -> Option<Vec<u8>> {
    let fields: Fields = serde_json::from_slice(payload).ok()?;
    fields.get("error")?;
    let chunk = fields.encode(&[], &["error"]).into_bytes();
    let scan = scan::scan(&chunk, false)?;
    let has_entry = scan.lists.iter().any(|list| !list.entries.is_empty());
    has_entry.then_some(chunk)
}

/// What a chunk brings beside an error that ends its only choice: without the error, and without a finish reason, because the last
/// chunk of that choice follows. `None` if that is nothing.
pub(crate) fn before_failure(payload: &[u8]) -> Option<Vec<u8>> {
    let chunk = without_error(payload)?;
    let fields: Fields = serde_json::from_slice(&chunk).ok()?;
    let entries = fields.get("choices").unwrap_or_default();
    let Ok(entries) = serde_json::from_str::<Vec<Fields>>(entries) else {
        return Some(chunk);
    };
    let mut open = Vec::new();
    let mut brings_something = false;
    for entry in &entries {
        let has_reason = entry.get("finish_reason").is_some();
        let none: &[_] = &[("finish_reason", "null".into())];
        let entry = entry.encode(if has_reason { none } else { &[] }, &[]);
        let value: Value = serde_json::from_str(&entry).unwrap_or_default();
        let mut rest = value.as_object().into_iter().flatten();
        brings_something |= rest.any(|(name, value)| name != "index" && !is_empty(value));
        open.push(entry);
    }
    let entries = format!("[{}]", open.join(","));
    brings_something.then(|| {
        let changed = fields.encode(&[("choices", entries.into())], &[]);
        changed.into_bytes()
    })
}

/// Whether a value has no text, number or flag.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.iter().all(is_empty),
        Value::Object(fields) => fields.values().all(is_empty),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests;
