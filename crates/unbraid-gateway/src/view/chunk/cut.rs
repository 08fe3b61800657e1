//! Cuts a chunk to the entries of one choice.

use std::sync::Arc;

use memchr::memchr2;
use unbraid_core::CompletionKind;

use super::{
    calls::CallNumbers,
    edit::Edits,
    json::Span,
    part,
    scan::{self, ChoiceList, Entry, Scan},
};
use crate::view::Part;

/// Where a chunk has to be cut. It is found once for all choices and all readers.
#[derive(Debug, Clone)]
pub(in crate::view) enum Cuts {
    /// One line of JSON with one entry and a number as its index, as nearly all chunks are. Only that number changes.
    Index { at: u32, len: u8 },
    /// Anything else with entries.
    General(Arc<Scan>),
    /// Not a chunk. It is passed on unchanged.
    None,
}

/// What a chunk is cut to.
#[derive(Debug, Clone, Copy)]
pub(in crate::view) struct Selection {
    pub(in crate::view) choice: u32,
    pub(in crate::view) keep_index: bool,
    /// Whether the core assigned all entries to this choice, whatever their indices are.
    pub(in crate::view) is_only_choice: bool,
    pub(in crate::view) part: Option<Part>,
    /// What the endpoint answers. A text completion may have other parts without a text beside them.
    pub(in crate::view) kind: CompletionKind,
    /// Whether the chunk is shown even if it has nothing of the part.
    pub(in crate::view) is_always_shown: bool,
}

/// A chunk as one choice's view contains it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::view) enum Rewritten<'a> {
    /// The bytes as they are.
    Unchanged(&'a [u8]),
    /// One line, in three pieces.
    Pieces(&'a [u8], &'static str, &'a [u8]),
    /// New bytes.
    Changed(Vec<u8>),
    /// The view leaves the chunk out.
    LeftOut,
}

impl Cuts {
    /// Finds the cuts of a chunk; see [`scan::scan`].
    pub(in crate::view) fn find(payload: &[u8], fold: bool) -> Self {
        let Some(scan) = scan::scan(payload, fold) else {
            return Self::None;
        };
        Self::of_index(payload, &scan).unwrap_or_else(|| Self::General(Arc::new(scan)))
    }

    fn of_index(payload: &[u8], scan: &Scan) -> Option<Self> {
        let [
            ChoiceList {
                interior: Some(_),
                entries,
                ..
            },
        ] = scan.lists.as_slice()
        else {
            return None;
        };
        let [
            Entry {
                has_index: true,
                indices,
                ..
            },
        ] = entries.as_slice()
        else {
            return None;
        };
        let [index] = indices.as_slice() else {
            return None;
        };
        if memchr2(b'\n', b'\r', payload).is_some() {
            return None;
        }
        Some(Self::Index {
            at: index.start.try_into().ok()?,
            len: index.len().try_into().ok()?,
        })
    }

    /// The chunk as the view of this choice contains it.
    pub(in crate::view) fn apply<'a>(
        &self,
        payload: &'a [u8],
        selection: Selection,
        calls: &mut CallNumbers,
    ) -> Rewritten<'a> {
        match (self, selection.part) {
            (Self::None, _) => Rewritten::Unchanged(payload),
            (Self::Index { .. }, None) if selection.keep_index => Rewritten::Unchanged(payload),
            (Self::Index { at, len }, None) => {
                let start = *at as usize;
                let before = payload.get(..start).unwrap_or_default();
                let after = payload.get(start + usize::from(*len)..).unwrap_or_default();
                Rewritten::Pieces(before, "0", after)
            }
            (Self::Index { .. }, Some(_)) => match scan::scan(payload, false) {
                // The core has assigned the only entry to this choice.
                Some(scan) => cut(payload, &scan, selection, true, calls),
                None => Rewritten::Unchanged(payload),
            },
            (Self::General(scan), _) => {
                let all = selection.is_only_choice && !has_choice(scan, selection.choice);
                cut(payload, scan, selection, all, calls)
            }
        }
    }
}

fn has_choice(scan: &Scan, choice: u32) -> bool {
    let mut entries = scan.lists.iter().flat_map(|list| &list.entries);
    entries.any(|entry| entry.choice == Some(choice))
}

fn cut<'a>(
    payload: &'a [u8],
    scan: &Scan,
    selection: Selection,
    all: bool,
    calls: &mut CallNumbers,
) -> Rewritten<'a> {
    if !all && !has_choice(scan, selection.choice) {
        return Rewritten::Unchanged(payload);
    }
    let mut edits = Edits::default();
    let mut is_shown = selection.part.is_none() || selection.is_always_shown;
    for list in &scan.lists {
        let is_kept = |entry: &Entry| all || entry.choice == Some(selection.choice);
        keep_entries(list, is_kept, &mut edits);
        for entry in list.entries.iter().filter(|entry| is_kept(entry)) {
            let index = if selection.keep_index {
                selection.choice
            } else {
                0
            };
            if !selection.keep_index || !entry.has_index {
                write_index(entry, index, &mut edits);
            }
            if let Some(part) = selection.part {
                is_shown |= part::keep(
                    payload,
                    &entry.span,
                    (part, selection.kind),
                    calls,
                    &mut edits,
                );
            }
        }
    }
    if is_shown {
        Rewritten::Changed(edits.apply(payload))
    } else {
        Rewritten::LeftOut
    }
}

/// Removes all entries but these.
pub(super) fn keep_entries(list: &ChoiceList, is_kept: impl Fn(&Entry) -> bool, edits: &mut Edits) {
    let items = list.entries.iter();
    let items = items.map(|entry| (entry.span.clone(), is_kept(entry)));
    match &list.interior {
        Some(interior) => edits.keep_items(interior, items),
        None if list.entries.iter().any(&is_kept) => {}
        None => edits.replace(list.span.clone(), "[]"),
    }
}

/// Sets the index of an entry.
pub(super) fn write_index(entry: &Entry, index: u32, edits: &mut Edits) {
    for span in &entry.indices {
        edits.replace(span.clone(), index.to_string());
    }
    if entry.indices.is_empty() {
        let after_brace: Span = entry.span.start + 1..entry.span.start + 1;
        let comma = if entry.is_empty { "" } else { "," };
        edits.replace(after_brace, format!("\"index\":{index}{comma}"));
    }
}
