//! An event's bytes as text, within bounds.

use std::borrow::Cow;

use crate::limits::MAX_EVENT_BYTES;

/// The text of an event; `None` if, with all replaced that has to be, it would be too long.
pub(super) fn text_of(data: &[u8]) -> Option<Cow<'_, str>> {
    const LARGE: usize = 1024 * 1024;
    /// What replacing and escaping may add to the longest event.
    const MOST: usize = MAX_EVENT_BYTES + MAX_EVENT_BYTES / 8;
    let valid = std::str::from_utf8(data);
    if data.len() > LARGE && valid.map_or_else(|_| grown(data), escaped) > MOST {
        return None;
    }
    if let Ok(text) = valid {
        return Some(Cow::Borrowed(text));
    }
    let chunks = || data.utf8_chunks();
    let length =
        chunks().map(|chunk| chunk.valid().len() + 3 * usize::from(!chunk.invalid().is_empty()));
    let mut text = String::with_capacity(length.sum());
    for chunk in chunks() {
        text.push_str(chunk.valid());
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    Some(Cow::Owned(text))
}

/// How long a text is with its raw control characters escaped (J2).
fn escaped(text: &str) -> usize {
    let controls = text.bytes().filter(|byte| *byte < b' ' && *byte != b'\n');
    text.len() + 5 * controls.count()
}

/// How long that is with its invalid bytes replaced, too (S19).
fn grown(data: &[u8]) -> usize {
    data.utf8_chunks()
        .map(|chunk| escaped(chunk.valid()) + 3 * chunk.invalid().len().min(1))
        .sum()
}
