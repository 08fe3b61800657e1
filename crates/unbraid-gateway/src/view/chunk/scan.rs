//! Finds the entries of a chunk's `choices`, and decides which choice each belongs to, by the rule of the core.

use unbraid_core::limits::MAX_ENTRIES;

use super::json::{self, Object, Span};

/// The lists of choices in one event. There is one, except for a list of chunks, several chunks in one event, or a key
/// that is repeated.
#[derive(Debug)]
pub(in crate::view) struct Scan {
    pub(in crate::view) lists: Vec<ChoiceList>,
}

#[derive(Debug)]
pub(in crate::view) struct ChoiceList {
    /// The complete value.
    pub(super) span: Span,
    /// Everything between the brackets. `None` for one entry without a list.
    pub(super) interior: Option<Span>,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug)]
pub(in crate::view) struct Entry {
    pub(super) span: Span,
    /// `None` if its index is invalid: then it belongs to no choice.
    pub(super) choice: Option<u32>,
    /// The values of its index, of which the last one counts.
    pub(super) indices: Vec<Span>,
    /// Whether the last of them is a number or a numeric string.
    pub(super) has_index: bool,
    /// Whether the entry has no members.
    pub(super) is_empty: bool,
}

/// Scans an event. `None` if its JSON is damaged, or if it has no list of choices.
///
/// With `fold`, every valid entry belongs to choice 0: exactly one choice was requested (E12).
pub(super) fn scan(text: &[u8], fold: bool) -> Option<Scan> {
    let mut lists = Vec::new();
    for value in json::values(text)? {
        match json::array(text, &value) {
            Some(chunks) => {
                for chunk in &chunks.elements {
                    add_chunk(text, chunk, fold, &mut lists)?;
                }
            }
            None => add_chunk(text, &value, fold, &mut lists)?,
        }
    }
    (!lists.is_empty()).then_some(Scan { lists })
}

/// Whether a value begins as an object.
fn is_object(text: &[u8], span: &Span) -> bool {
    text.get(span.start) == Some(&b'{')
}

/// Adds the lists of one chunk; `None` if it is damaged. Another value has none.
fn add_chunk(text: &[u8], chunk: &Span, fold: bool, lists: &mut Vec<ChoiceList>) -> Option<()> {
    if !is_object(text, chunk) {
        return Some(());
    }
    let chunk = json::object(text, chunk)?;
    for member in &chunk.members {
        if json::is_key(text, &member.key, "choices") {
            lists.extend(list(text, &member.value, fold)?);
        }
    }
    Some(())
}

/// The entries of a value: those of an array, or one object without a list. Another value has none. `None` if it is damaged.
fn list(text: &[u8], span: &Span, fold: bool) -> Option<Option<ChoiceList>> {
    let (interior, elements) = match text.get(span.start) {
        Some(b'[') => {
            let array = json::array(text, span)?;
            (Some(array.interior), array.elements)
        }
        Some(b'{') => (None, vec![span.clone()]),
        Some(_) | None => return Some(None),
    };
    let entries = elements.into_iter().enumerate();
    let entries = entries.map(|(position, element)| entry(text, element, position < MAX_ENTRIES));
    let mut entries: Vec<Entry> = entries.collect::<Option<_>>()?;
    number(&mut entries, fold);
    Some(Some(ChoiceList {
        span: span.clone(),
        interior,
        entries,
    }))
}

/// The index of an entry: a number, none, or a value that is invalid.
enum Index {
    Number(u32),
    Missing,
    Invalid,
}

/// Reads an entry; `None` if it is damaged.
fn entry(text: &[u8], span: Span, is_read: bool) -> Option<Entry> {
    let object = if is_read && is_object(text, &span) {
        Some(json::object(text, &span)?)
    } else {
        None
    };
    let indices = object.as_ref().map(|object| indices(text, object));
    let index = match &indices {
        None => Index::Invalid,
        Some(indices) => indices
            .last()
            .map_or(Index::Missing, |last| parse(text, last)),
    };
    Some(Entry {
        span,
        // A missing index gets its number below.
        choice: match index {
            Index::Number(number) => Some(number),
            Index::Missing => Some(0),
            Index::Invalid => None,
        },
        has_index: matches!(index, Index::Number(_)),
        indices: indices.unwrap_or_default(),
        is_empty: object.is_some_and(|object| object.members.is_empty()),
    })
}

fn indices(text: &[u8], object: &Object) -> Vec<Span> {
    let members = object.members.iter();
    let indices = members.filter(|member| json::is_key(text, &member.key, "index"));
    indices.map(|member| member.value.clone()).collect()
}

/// Reads an index as the core does (E8, E10, E11): a numeric string is its number, and null and an empty string are missing.
fn parse(text: &[u8], value: &Span) -> Index {
    if !json::is_set(text, value) {
        return Index::Missing;
    }
    let number = match json::string(text, value) {
        Some(string) if string.is_empty() => return Index::Missing,
        Some(string) => string.trim().parse().ok(),
        None => str::from_utf8(json::bytes(text, value))
            .ok()
            .filter(|number| number.starts_with(|c: char| c.is_ascii_digit()))
            .and_then(|number| number.parse().ok()),
    };
    number.map_or(Index::Invalid, Index::Number)
}

/// A missing index is 0, or the position if the chunk has several entries (E8, E9).
fn number(entries: &mut [Entry], fold: bool) {
    let several = entries
        .iter()
        .filter(|entry| entry.choice.is_some())
        .count()
        > 1;
    let valid = entries.iter_mut().filter(|entry| entry.choice.is_some());
    for (position, entry) in valid.enumerate() {
        if fold {
            entry.choice = Some(0);
        } else if several && !entry.has_index {
            entry.choice = u32::try_from(position).ok();
        }
    }
}
