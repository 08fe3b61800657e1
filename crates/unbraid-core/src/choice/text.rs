//! Texts of a choice: halves of characters are joined, and empty deltas are skipped.

use std::borrow::Cow;

use crate::{
    Fragment, Warning,
    event::Position,
    transcript::{Kind, Transcript},
};

/// C10: white space is text. Only an empty delta is skipped.
#[inline]
pub(super) fn push_text(
    transcript: &mut Transcript,
    kind: Kind,
    position: Position,
    number: u32,
    text: &str,
) {
    if !text.is_empty() {
        transcript.push(kind, position, number, text);
    }
}

/// C14: half a character without its other half has become U+FFFD.
pub(super) fn warn_lone_half(position: Position, transcript: &mut Transcript, max: usize) {
    let warning = Warning::new("C14", position.event, "half a surrogate pair was replaced");
    transcript.warn(warning, position, max);
}

/// Joins a fragment to the half that waits before it, and holds back the half at its end (C14). True if a half found no
/// partner.
#[inline]
pub(super) fn join_halves<'f>(
    waiting: &mut Option<u16>,
    fragment: &'f Fragment<'_>,
) -> (Cow<'f, str>, bool) {
    if waiting.is_none() && fragment.low.is_none() {
        *waiting = fragment.high;
        return (Cow::Borrowed(&fragment.text), false);
    }
    if fragment.is_empty() {
        return (Cow::Borrowed(""), false);
    }
    let units = waiting.take().into_iter().chain(fragment.low);
    let (mut text, mut is_lone) = (String::new(), false);
    for unit in char::decode_utf16(units) {
        is_lone |= unit.is_err();
        text.push(unit.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    text.push_str(&fragment.text);
    *waiting = fragment.high;
    (Cow::Owned(text), is_lone)
}

/// The text of a fragment of a name, with U+FFFD for each half of a character, and whether there was one. Names are not
/// joined: no declared tool has one in which that is possible.
pub(super) fn replace_halves<'f>(fragment: &'f Fragment<'_>) -> (Cow<'f, str>, bool) {
    let [low, high] = [fragment.low, fragment.high].map(|half| half.map(|_| "\u{FFFD}"));
    if low.is_none() && high.is_none() {
        return (Cow::Borrowed(&fragment.text), false);
    }
    let text = [low.unwrap_or(""), &fragment.text, high.unwrap_or("")].concat();
    (Cow::Owned(text), true)
}
