//! Reads content that is a list of parts (C11), and joins a text from several strings.

use std::borrow::Cow;

use super::{object::Object, reader::raw};
use crate::{
    Fragment,
    chunk::{CONTENT_PARTS, Element, Pairs, put_field, some_text},
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
    if matches!(node.value, Value::Null | Value::String(_)) {
        element.update.content = some_text(node.fragment());
        return;
    }
    // Neither a list nor an object in place of one (E22): kept as it is.
    let is_other = node.as_array().is_none() && node.entries().next().is_none();
    let parts = node.entries().chain(is_other.then_some(node));
    let (mut text, mut thinking) = (TextJoiner::default(), TextJoiner::default());
    let mut others = PartList::default();
    for part in parts {
        let kind = part.get("type").and_then(Node::text);
        match kind.as_deref() {
            Some("thinking" | "reasoning") => {
                push_part(&mut thinking, part, &REASONING_KEYS, &mut others);
            }
            Some("text" | "output_text") => push_part(&mut text, part, &TEXT_KEYS, &mut others),
            None if is_text(part) => push_part(&mut text, part, &TEXT_KEYS, &mut others),
            kind => {
                element.has_unexpected_type |= kind.is_none();
                others.push(&part.to_json());
            }
        }
    }
    others.keep(&mut element.fields);
    let (text, lost_text) = text.finish();
    let (thinking, lost_thinking) = thinking.finish();
    element.update.content = text;
    element.update.reasoning = thinking;
    element.replaced_half |= lost_text | lost_thinking;
}

/// Reads the text of a field other than `content`: a string, or what servers send in its place, a list of parts or one
/// part. What else they say is kept as raw JSON (C11).
pub(super) fn text_of<'a>(node: &Node<'a>, element: &mut Element<'a>) -> Option<Fragment<'a>> {
    if matches!(node.value, Value::Null | Value::String(_)) {
        return some_text(node.fragment());
    }
    let mut text = TextJoiner::default();
    let mut others = PartList::default();
    let parts = node
        .as_array()
        .unwrap_or_else(|| std::slice::from_ref(node));
    for part in parts {
        match &part.value {
            Value::Null => {}
            Value::String(_) | Value::Object(_) => {
                push_part(&mut text, part, &REASONING_KEYS, &mut others);
            }
            Value::Array(_) | Value::Bool(_) | Value::Number(_) => others.push(&part.to_json()),
        }
    }
    others.keep(&mut element.fields);
    let (text, replaced_half) = text.finish();
    element.replaced_half |= replaced_half;
    element.has_unexpected_type |= text.is_none() && node.is_set();
    text
}

/// Parts that are kept as raw JSON.
#[derive(Default)]
struct PartList(String);

impl PartList {
    fn push(&mut self, part: &str) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(part);
    }

    /// The list; `None` if it is empty.
    fn into_json(self) -> Option<String> {
        (!self.0.is_empty()).then(|| format!("[{}]", self.0))
    }

    /// Adds the parts to those of another field of the delta.
    fn keep(self, fields: &mut Pairs<'_>) {
        if self.0.is_empty() {
            return;
        }
        let known = fields.iter().find(|(key, _)| key == CONTENT_PARTS);
        let known = known.and_then(|(_, raw)| raw.strip_prefix('[')?.strip_suffix(']'));
        let raw = match known.filter(|known| !known.trim().is_empty()) {
            Some(known) => format!("[{known},{}]", self.0),
            None => format!("[{}]", self.0),
        };
        put_field(fields, Cow::Borrowed(CONTENT_PARTS), Cow::Owned(raw));
    }
}

/// Whether a part without a type is text.
fn is_text(part: &Node<'_>) -> bool {
    part.as_str().is_some() || part.get("text").is_some()
}

/// Where a part of text has its text.
const TEXT_KEYS: [&str; 3] = ["text", "thinking", "reasoning"];

/// Where a part of reasoning has its text. Databricks has it in `summary`, as the Responses API.
const REASONING_KEYS: [&str; 5] = ["text", "thinking", "reasoning", "summary", "content"];

/// Appends the text of a part: the part itself if it is a string, otherwise its text, which may be a list of parts
/// again. What else the part says, a signature or a citation, is kept as a part without the text.
fn push_part(text: &mut TextJoiner, part: &Node<'_>, keys: &[&'static str], others: &mut PartList) {
    if let Some(string) = part.as_str() {
        return text.push(string);
    }
    let mut used = keys.iter().copied();
    let used = used.find(|key| part.get(key).is_some_and(|inner| push_text(text, inner)));
    let inner = used.and_then(|key| Some((key, without_texts(part.get(key)?)?)));
    let Some(mut object) = without(part, used, inner.is_some()) else {
        return;
    };
    if let Some((key, inner)) = inner {
        object.set(key, inner);
    }
    others.push(&object.to_json());
}

/// A part without its text; `None` if nothing in it is kept, unless something else of it is.
fn without(part: &Node<'_>, text_key: Option<&str>, is_kept: bool) -> Option<Object> {
    let fields = part.as_object().unwrap_or_default().iter();
    let rest = fields.filter(|(key, value)| !value.is_null() && Some(&**key) != text_key);
    // Numbers and flags say where the part is, and whether it goes on (`closed` of Mistral). An id only names it.
    let is_mark = |key: &str, value: &Node<'_>| {
        matches!(key, "type" | "index" | "id")
            || matches!(value.value, Value::Bool(_) | Value::Number(_))
    };
    let mut others = rest.clone();
    if !is_kept && !others.any(|(key, value)| value.is_set() && !is_mark(key, value)) {
        return None;
    }
    let mut object = Object::default();
    rest.for_each(|(key, value)| object.set(key, raw(value)));
    Some(object)
}

/// What the entries of a list of texts say beside these.
fn without_texts(list: &Node<'_>) -> Option<String> {
    let entries = list.as_array().unwrap_or_default().iter();
    let mut rest = PartList::default();
    for object in entries.filter_map(|entry| without(entry, Some("text"), false)) {
        rest.push(&object.to_json());
    }
    rest.into_json()
}

/// Appends a text, or the texts of a list of parts; false if there is none.
fn push_text(text: &mut TextJoiner, value: &Node<'_>) -> bool {
    if let Some(string) = value.as_str() {
        text.push(string);
        return !string.is_empty();
    }
    let parts = value.as_array().unwrap_or_default().iter();
    let texts = parts.filter_map(|part| part.as_str().or_else(|| part.get("text")?.as_str()));
    let mut has_text = false;
    for part in texts {
        text.push(part);
        has_text |= !part.is_empty();
    }
    has_text
}
