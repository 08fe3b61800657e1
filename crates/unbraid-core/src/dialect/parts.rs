//! Reads content that is a list of parts (C11), and joins a text from several strings.

use std::borrow::Cow;

use crate::{
    Fragment,
    chunk::{CONTENT_PARTS, Element, put_field, some_text},
    node::{JsonString, Node, Value},
};

/// Joins the strings of one delta to one text.
///
/// Two surrogate halves that meet become one character. The halves at the ends of the text stay, because the delta
/// before or after may have the other half (C14).
#[derive(Debug, Default)]
pub(super) struct TextJoiner {
    text: String,
    low: Option<u16>,
    high: Option<u16>,
    replaced_half: bool,
}

impl TextJoiner {
    pub(super) fn push(&mut self, part: &JsonString<'_>) {
        if part.is_empty() {
            return;
        }
        match (self.high.take(), part.low) {
            (Some(high), Some(low)) => {
                let character = char::decode_utf16([high, low]).flatten();
                self.text.extend(character);
            }
            (None, Some(low)) if self.text.is_empty() && self.low.is_none() => self.low = Some(low),
            (Some(_), None) | (None, Some(_)) => {
                self.text.push(char::REPLACEMENT_CHARACTER);
                self.replaced_half = true;
            }
            (None, None) => {}
        }
        self.text.push_str(&part.text);
        self.high = part.high;
    }

    /// The text, and whether half a surrogate pair in it was replaced.
    pub(super) fn finish(self) -> (Option<Fragment<'static>>, bool) {
        let text = Fragment {
            text: Cow::Owned(self.text),
            low: self.low,
            high: self.high,
        };
        (some_text(Some(text)), self.replaced_half)
    }
}

/// Reads content that is a string or a list of parts. Text parts are content, thinking parts are reasoning, and all
/// others are kept as raw JSON (C11).
pub(super) fn content<'a>(node: &Node<'a>, element: &mut Element<'a>) {
    let parts = match &node.value {
        Value::Null | Value::String(_) => {
            element.update.content = some_text(node.fragment());
            return;
        }
        Value::Array(parts) => parts.as_slice(),
        Value::Object(_) | Value::Bool(_) | Value::Number(_) => std::slice::from_ref(node),
    };
    let (mut text, mut thinking) = (TextJoiner::default(), TextJoiner::default());
    let mut other_parts = String::new();
    for part in parts {
        match part.get("type").and_then(Node::text).as_deref() {
            Some("thinking" | "reasoning") => push_part(&mut thinking, part),
            Some("text" | "output_text") => push_part(&mut text, part),
            None if is_text(part) => push_part(&mut text, part),
            kind => {
                element.has_unexpected_type |= kind.is_none();
                other_parts.push(if other_parts.is_empty() { '[' } else { ',' });
                other_parts.push_str(&part.to_json());
            }
        }
    }
    if !other_parts.is_empty() {
        other_parts.push(']');
        let key = Cow::Borrowed(CONTENT_PARTS);
        put_field(&mut element.fields, key, Cow::Owned(other_parts));
    }
    let (text, lost_text) = text.finish();
    let (thinking, lost_thinking) = thinking.finish();
    element.update.content = text;
    element.update.reasoning = thinking;
    element.replaced_half |= lost_text | lost_thinking;
}

/// Whether a part without a type is text.
fn is_text(part: &Node<'_>) -> bool {
    part.as_str().is_some() || part.get("text").is_some()
}

/// Appends the text of a part: the part itself if it is a string, otherwise its text, which may be a list of parts
/// again.
fn push_part(text: &mut TextJoiner, part: &Node<'_>) {
    const NAMES: [&str; 3] = ["text", "thinking", "reasoning"];
    if let Some(string) = part.as_str() {
        return text.push(string);
    }
    // An empty string stands for an absent field.
    let is_absent =
        |inner: &Node<'_>| inner.is_null() || inner.as_str().is_some_and(JsonString::is_empty);
    let inner = NAMES
        .iter()
        .find_map(|name| part.get(name).filter(|inner| !is_absent(inner)));
    let Some(inner) = inner else { return };
    if let Some(string) = inner.as_str() {
        return text.push(string);
    }
    let parts = inner.as_array().into_iter().flatten();
    parts
        .filter_map(|part| part.get("text")?.as_str())
        .for_each(|part| text.push(part));
}
