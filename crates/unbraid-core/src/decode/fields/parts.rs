//! Content that is a list of parts, as far as it is ordinary (C11).

use std::borrow::Cow;

use super::{Fallback, FieldVisitor, ValueReader};
use crate::{Fragment, chunk::some_text};

/// The text of a delta's content, and the reasoning in it.
#[derive(Debug, Default)]
pub(in crate::decode) struct Content<'a> {
    pub(in crate::decode) text: Option<Fragment<'a>>,
    pub(in crate::decode) thinking: Option<Fragment<'a>>,
}

/// A part of a list: its type, and its text, which may be a list of parts again.
#[derive(Debug, Default)]
pub(in crate::decode) struct Part<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Cow<'a, str>>,
}

impl<'a> Content<'a> {
    /// Joins the parts of a list. Any part but an ordinary text or thinking is left to the lenient decoder.
    pub(in crate::decode) fn of_parts(parts: Vec<Part<'a>>) -> Result<Self, Fallback> {
        // The order of text and thinking within one delta is lost here, as it is wherever a delta has both fields.
        let (mut text, mut thinking) = (None, None);
        for part in parts {
            let joined = match part.kind.as_deref() {
                Some("text" | "output_text") => &mut text,
                Some("thinking" | "reasoning") => &mut thinking,
                _ => return Err(Fallback),
            };
            // A list without a text is kept by the lenient decoder.
            join(
                joined,
                part.text.filter(|text| !text.is_empty()).ok_or(Fallback)?,
            );
        }
        Ok(Self {
            text: some_text(text.map(Fragment::from)),
            thinking: some_text(thinking.map(Fragment::from)),
        })
    }
}

/// Appends a text. The first one that is not empty is usually the only one, and is not copied.
fn join<'a>(joined: &mut Option<Cow<'a, str>>, text: Cow<'a, str>) {
    match joined {
        _ if text.is_empty() => {}
        Some(joined) => joined.to_mut().push_str(&text),
        None => *joined = Some(text),
    }
}

impl<'a> FieldVisitor<'a> for Part<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        let is_repeated = match &*key {
            "type" => {
                let kind = value.text()?.ok_or(Fallback)?;
                self.kind.replace(kind).is_some()
            }
            "text" | "thinking" | "reasoning" => {
                let text = value.part_text()?;
                self.text.replace(text).is_some()
            }
            "index" | "id" => {
                value.raw()?;
                false
            }
            // What else a part says is kept by the lenient decoder.
            _ if is_mark(value.raw()?) => false,
            _ => return Err(Fallback),
        };
        // Which of two texts or types counts is decided by the lenient decoder.
        if is_repeated { Err(Fallback) } else { Ok(()) }
    }
}

/// Whether a raw value is empty, a number or a flag, which say nothing that is kept.
fn is_mark(raw: &str) -> bool {
    matches!(raw, "null" | "\"\"" | "[]" | "{}" | "false" | "true")
        || raw.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// An entry of a part's text that is a list. Its type does not matter.
#[derive(Debug, Default)]
pub(in crate::decode) struct InnerPart<'a> {
    text: Option<Cow<'a, str>>,
}

impl<'a> FieldVisitor<'a> for InnerPart<'a> {
    fn visit_field(
        &mut self,
        key: Cow<'a, str>,
        value: &mut impl ValueReader<'a>,
    ) -> Result<(), Fallback> {
        let is_read = match &*key {
            "text" => {
                let text = value.text()?.ok_or(Fallback)?;
                self.text.replace(text).is_none()
            }
            "type" | "index" | "id" => value.raw().map(|_| true)?,
            // As in a part: what else it says is kept by the lenient decoder.
            _ => is_mark(value.raw()?),
        };
        if is_read { Ok(()) } else { Err(Fallback) }
    }
}

/// The joined texts of a list inside of a part.
pub(in crate::decode) fn inner_text(parts: Vec<InnerPart<'_>>) -> Cow<'_, str> {
    let mut joined = None;
    for text in parts.into_iter().filter_map(|part| part.text) {
        join(&mut joined, text);
    }
    joined.unwrap_or_default()
}
