//! Content that comes as a list of parts (C11), and text that is put together from several strings.

use std::borrow::Cow;

use crate::{
    Fragment,
    decode::{
        chunk::{CONTENT_PARTS, Element, put, some_text},
        node::{Node, Value, Wide},
    },
    dialect::openai_chat::fragment,
};

/// Text that is put together from several strings of one delta. Halves of characters that meet are joined, and those at
/// its ends stay, since the delta before or behind may hold the other half (C14).
#[derive(Debug, Default)]
pub(super) struct Joined {
    text: String,
    low: Option<u16>,
    high: Option<u16>,
    lost_half: bool,
}

impl Joined {
    pub(super) fn push(&mut self, piece: &Wide<'_>) {
        if piece.is_empty() {
            return;
        }
        match (self.high.take(), piece.low) {
            (Some(high), Some(low)) => {
                let joined = char::decode_utf16([high, low]).flatten();
                self.text.extend(joined);
            }
            (None, Some(low)) if self.text.is_empty() && self.low.is_none() => self.low = Some(low),
            (Some(_), None) | (None, Some(_)) => {
                self.text.push(char::REPLACEMENT_CHARACTER);
                self.lost_half = true;
            }
            (None, None) => {}
        }
        self.text.push_str(&piece.text);
        self.high = piece.high;
    }

    /// The text, and whether half a character was replaced in it.
    pub(super) fn end(self) -> (Option<Fragment<'static>>, bool) {
        let text = Fragment {
            text: Cow::Owned(self.text),
            low: self.low,
            high: self.high,
        };
        (some_text(Some(text)), self.lost_half)
    }
}

/// A string, or parts: text parts are text, thinking parts are reasoning (C11); whatever else it is, it is kept.
pub(super) fn content<'a>(node: &Node<'a>, element: &mut Element<'a>) {
    let parts = match &node.value {
        Value::Null | Value::String(_) => {
            element.update.content = some_text(fragment(node));
            return;
        }
        Value::Array(parts) => parts.as_slice(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => std::slice::from_ref(node),
    };
    let (mut text, mut thinking) = (Joined::default(), Joined::default());
    let mut others = String::new();
    for part in parts {
        match part.get("type").and_then(Node::text).as_deref() {
            Some("thinking" | "reasoning") => push_part(&mut thinking, part),
            Some("text" | "output_text") => push_part(&mut text, part),
            None if is_text(part) => push_part(&mut text, part),
            kind => {
                element.odd |= kind.is_none();
                others.push(if others.is_empty() { '[' } else { ',' });
                others.push_str(&part.to_json());
            }
        }
    }
    if !others.is_empty() {
        others.push(']');
        let key = Cow::Borrowed(CONTENT_PARTS);
        put(&mut element.fields, key, Cow::Owned(others));
    }
    let (text, lost_text) = text.end();
    let (thinking, lost_thinking) = thinking.end();
    element.update.content = text;
    element.update.reasoning = thinking;
    element.lost_half |= lost_text | lost_thinking;
}

/// Whether a part without a type is text all the same.
fn is_text(part: &Node<'_>) -> bool {
    part.as_str().is_some() || part.get("text").is_some()
}

/// Adds the text of a part, which may itself be a list of parts; a part that is a string is its text.
fn push_part(text: &mut Joined, part: &Node<'_>) {
    const NAMES: [&str; 3] = ["text", "thinking", "reasoning"];
    if let Some(whole) = part.as_str() {
        return text.push(whole);
    }
    let inner = NAMES
        .iter()
        .find_map(|name| part.get(name).filter(|inner| !inner.is_null()));
    let Some(inner) = inner else { return };
    if let Some(whole) = inner.as_str() {
        return text.push(whole);
    }
    let parts = inner.as_array().into_iter().flatten();
    parts
        .filter_map(|part| part.get("text")?.as_str())
        .for_each(|piece| text.push(piece));
}
