//! Converts the bytes of an event to text of bounded length.

use std::borrow::Cow;

use crate::limits::MAX_EVENT_BYTES;

/// The text of an event, with invalid UTF-8 replaced; `None` if the replaced and escaped text would be too long.
///
/// An invalid byte becomes three bytes, and a raw control character becomes six when a field is written as JSON. So without
/// a bound, an event could grow to six times the limit on its length.
pub(super) fn text_of(data: &[u8]) -> Option<Cow<'_, str>> {
    /// Shorter events cannot grow to a harmful length, so their bytes are not counted.
    const LARGE: usize = 1024 * 1024;
    /// The longest event, with an allowance for replacing and escaping.
    const MAX_BYTES: usize = MAX_EVENT_BYTES + MAX_EVENT_BYTES / 8;
    let valid = std::str::from_utf8(data);
    if data.len() > LARGE && valid.map_or_else(|_| replaced_len(data), escaped_len) > MAX_BYTES {
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

/// The length of a text once its raw control characters are escaped (J2).
fn escaped_len(text: &str) -> usize {
    let controls = text.bytes().filter(|byte| *byte < b' ' && *byte != b'\n');
    text.len() + 5 * controls.count()
}

/// The length of a text once its invalid bytes are replaced (S19) and its raw control characters are escaped.
fn replaced_len(data: &[u8]) -> usize {
    data.utf8_chunks()
        .map(|chunk| escaped_len(chunk.valid()) + 3 * chunk.invalid().len().min(1))
        .sum()
}
