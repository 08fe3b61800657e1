//! Reads chunks that differ from an earlier one only in a few places, without parsing.
//!
//! Two chunks of a stream often differ only in the choice index, the text and the padding. A [`Template`] keeps the
//! bytes around these places. A chunk with the same bytes there, an integer and two valid strings in the holes is
//! the same JSON with other values, so it means what the earlier chunk meant. Anything else is not a match, and is
//! parsed.

use std::borrow::Cow;

use super::json_bytes::{number, string};
use crate::{
    ChoiceIndex, EventIndex, Fragment, ToolCallUpdate, Update,
    chunk::{Chunk, is_padding},
    text_delta::{DeltaKind, TextDelta},
};

/// An ordinary chunk of one choice and one text, with holes in it.
#[derive(Debug, PartialEq)]
pub(super) struct Template {
    head: Box<[u8]>,
    /// Each hole, and the bytes between it and the next one.
    holes: Vec<(Hole, Box<[u8]>)>,
    text_kind: DeltaKind,
    /// Whether a [`TextDelta`] holds everything that a matching chunk says.
    is_text_only: bool,
    /// The update of the chunk, without the values in the holes.
    prototype: Update<'static>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Index,
    Text,
    Padding,
}

/// The values in the holes of a matching chunk.
pub(crate) struct TemplateMatch<'t> {
    /// The number of the template.
    pub(crate) template: usize,
    pub(crate) index: u32,
    /// The inside of a JSON string without control characters. It is not checked to be UTF-8.
    pub(crate) text: &'t [u8],
    /// The text and the bytes after it, if the text is short.
    pub(crate) block: Option<&'t [u8; 16]>,
    pub(crate) has_escapes: bool,
    /// The length of the chunk.
    pub(crate) length: usize,
}

impl Template {
    /// Builds a template of a decoded ordinary chunk; `None` if the chunk says more than one text.
    pub(super) fn new(text: &str, chunk: &Chunk<'_>) -> Option<Self> {
        let [element] = chunk.elements.as_slice() else {
            return None;
        };
        // Every other field would be missing in a delta. A chunk with one of them is rare, so it is not worth a hole.
        let update = &element.update;
        let has_text_only = chunk.usage.is_none()
            && chunk.error.is_none()
            && element.fields.is_empty()
            && update.metadata.is_empty()
            && update.logprobs.is_none()
            && update.finish_reason.is_none()
            && update.usage.is_none()
            && update.error.is_none()
            && update.function_name.is_none()
            && update.function_arguments.is_none();
        if !has_text_only {
            return None;
        }
        // The spans come from the decoded chunk and not from a second parse: what the template replaces is exactly
        // what the decoder read.
        let (text_kind, fragment) = only_text(update)?;
        let mut spans = vec![(Hole::Text, span_of(text, fragment)?)];
        let scanned = element.index_span(text);
        spans.push((
            Hole::Index,
            scanned.or_else(|| index_span(text, element.index?))?,
        ));
        // Padding inside such a field is part of the field's raw JSON, so it has to be equal.
        let has_padding = |(_, raw): &(Cow<'_, str>, Cow<'_, str>)| raw.contains(PADDING);
        if !chunk.extra.iter().any(has_padding) {
            spans.extend(padding_span(text).map(|span| (Hole::Padding, span)));
        }
        let prototype = Update {
            id: chunk.id.clone(),
            created: chunk.created,
            model: chunk.model.clone(),
            role: update.role.clone(),
            kind: update.kind,
            tool_calls: update.tool_calls.clone(),
            ..Update::default()
        };
        Self::split_at_holes(text, spans, text_kind, prototype.into_owned())
    }

    fn split_at_holes(
        text: &str,
        mut spans: Vec<(Hole, (usize, usize))>,
        text_kind: DeltaKind,
        prototype: Update<'static>,
    ) -> Option<Self> {
        // The order of fields differs between servers, so the holes are sorted by their offset.
        spans.sort_unstable_by_key(|(_, span)| *span);
        let ends = spans.iter().skip(1).map(|(_, (start, _))| *start);
        let ends: Vec<usize> = ends.chain([text.len()]).collect();
        let head = text.get(..spans.first()?.1.0)?.as_bytes().into();
        let mut holes = Vec::with_capacity(spans.len());
        for ((hole, (_, end)), next) in spans.into_iter().zip(ends) {
            holes.push((hole, text.get(end..next)?.as_bytes().into()));
        }
        Some(Self {
            head,
            holes,
            text_kind,
            is_text_only: changes_text_only(&prototype),
            prototype,
        })
    }

    /// The bytes before the first hole.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the data begins with this many bytes of the head.
    #[inline]
    pub(super) fn starts_with_head(&self, data: &[u8], common_len: usize) -> bool {
        self.head
            .get(..common_len)
            .is_some_and(|head| data.starts_with(head))
    }

    /// Matches a chunk at the start of the data, of which `common_len` bytes are known to be equal to the head.
    #[inline(always)]
    pub(super) fn match_start<'t>(
        &self,
        data: &'t [u8],
        common_len: usize,
        template: usize,
    ) -> Option<TemplateMatch<'t>> {
        let mut rest = data.get(common_len..)?;
        if common_len < self.head.len() {
            rest = rest.strip_prefix(self.head.get(common_len..)?)?;
        }
        let (mut index, mut text, mut block, mut has_escapes) = (None, None, None, false);
        for (hole, literal) in &self.holes {
            let length = match hole {
                Hole::Index => {
                    let (value, length) = number(rest)?;
                    index = Some(value);
                    length
                }
                Hole::Text => {
                    let (length, escapes) = string(rest)?;
                    text = rest.get(..length).filter(|text| !text.is_empty());
                    block = rest.first_chunk().filter(|block| length <= block.len());
                    has_escapes = escapes;
                    length
                }
                // The padding is never decoded, so it is not checked to be UTF-8. Only ASCII is accepted here.
                Hole::Padding => {
                    let (length, _) = string(rest).filter(|(_, escaped)| !escaped)?;
                    rest.get(..length)?.is_ascii().then_some(length)?
                }
            };
            rest = strip_literal(rest.get(length..)?, literal)?;
        }
        Some(TemplateMatch {
            template,
            index: index?,
            text: text?,
            block,
            has_escapes,
            length: data.len() - rest.len(),
        })
    }

    /// The text that matching chunks continue.
    pub(super) fn text_kind(&self) -> DeltaKind {
        self.text_kind
    }

    /// Whether the chunks of both templates have the same envelope.
    pub(super) fn shares_envelope(&self, other: &Self) -> bool {
        let envelope = |template: &Self| {
            (
                template.prototype.id.clone(),
                template.prototype.created,
                template.prototype.model.clone(),
            )
        };
        envelope(self) == envelope(other)
    }

    /// The text delta of a matching chunk, if it says everything.
    pub(super) fn text_delta<'t>(
        &'t self,
        choice: ChoiceIndex,
        text: &'t str,
    ) -> Option<TextDelta<'t>> {
        let delta = TextDelta {
            event_index: EventIndex(0),
            choice,
            kind: self.prototype.kind,
            role: self.prototype.role.as_deref(),
            text_kind: self.text_kind,
            text,
        };
        Some(delta).filter(|_| self.is_text_only)
    }

    /// The update of a matching chunk.
    pub(super) fn update<'t>(&'t self, choice: ChoiceIndex, text: &'t str) -> Update<'t> {
        let (prototype, fragment) = (&self.prototype, Fragment::from(text));
        let mut update = Update {
            last_of_event: true,
            is_chunk: true,
            choice: Some(choice),
            kind: prototype.kind,
            id: borrowed(&prototype.id),
            created: prototype.created,
            model: borrowed(&prototype.model),
            role: borrowed(&prototype.role),
            ..Update::default()
        };
        match self.text_kind {
            DeltaKind::Content => update.content = Some(fragment),
            DeltaKind::Reasoning => update.reasoning = Some(fragment),
            DeltaKind::Refusal => update.refusal = Some(fragment),
            DeltaKind::Arguments(_) => {
                update.tool_calls = prototype.tool_calls.iter().map(borrowed_call).collect();
                if let Some(call) = update.tool_calls.first_mut() {
                    call.arguments = Some(fragment);
                }
            }
        }
        update
    }
}

fn borrowed<'t>(text: &'t Option<Cow<'static, str>>) -> Option<Cow<'t, str>> {
    text.as_deref().map(Cow::Borrowed)
}

fn borrowed_call<'t>(call: &'t ToolCallUpdate<'static>) -> ToolCallUpdate<'t> {
    ToolCallUpdate {
        wire_index: call.wire_index,
        id: borrowed(&call.id),
        kind: borrowed(&call.kind),
        name: call.name.as_ref().map(|name| Fragment::from(&*name.text)),
        ..ToolCallUpdate::default()
    }
}

/// The only text of an update; `None` if there are several.
fn only_text<'u, 'a>(update: &'u Update<'a>) -> Option<(DeltaKind, &'u Fragment<'a>)> {
    let (index, arguments) = match update.tool_calls.as_slice() {
        [] => (0, None),
        [call] if call.extra.is_empty() && call.position.is_none() => {
            (call.wire_index.unwrap_or(0), Some(call.arguments.as_ref()?))
        }
        _ => return None,
    };
    let texts = [
        (DeltaKind::Content, update.content.as_ref()),
        (DeltaKind::Reasoning, update.reasoning.as_ref()),
        (DeltaKind::Refusal, update.refusal.as_ref()),
        (DeltaKind::Arguments(index), arguments),
    ];
    let mut texts = texts
        .into_iter()
        .filter_map(|(kind, fragment)| Some((kind, fragment?)));
    let only = texts.next()?;
    texts.next().is_none().then_some(only)
}

/// The span of a fragment that was borrowed from the text. The bytes around it have to be its quotes.
fn span_of(text: &str, fragment: &Fragment<'_>) -> Option<(usize, usize)> {
    let Cow::Borrowed(inside) = fragment.text else {
        return None;
    };
    let start = (inside.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start + inside.len();
    let quoted = text.get(start.checked_sub(1)?..end + 1)?;
    let is_string = quoted.len() > 2 && quoted.starts_with('"') && quoted.ends_with('"');
    is_string.then_some((start, end))
}

/// The span of the choice's index: the value of the only key of that name, or of the first key of the first choice.
///
/// These bytes cannot be part of a string, because a quote inside a string has a backslash before it.
fn index_span(text: &str, index: u32) -> Option<(usize, usize)> {
    let end = end_of_only(text, "\"index\":")
        .or_else(|| end_of_only(text, "\"choices\":[{\"index\":"))?;
    let space = usize::from(text.get(end..)?.starts_with(' '));
    let start = end + space;
    let (value, length) = number(text.get(start..)?.as_bytes())?;
    (value == index).then_some((start, start + length))
}

fn padding_span(text: &str) -> Option<(usize, usize)> {
    debug_assert!(is_padding(PADDING.trim_matches('"')));
    let key_end = end_of_only(text, PADDING)?;
    let start = key_end + text.get(key_end..)?.strip_prefix(":\"").map(|_| 2)?;
    let (length, escaped) = string(text.get(start..)?.as_bytes())?;
    (!escaped).then_some((start, start + length))
}

/// The end of the only occurrence of a needle.
fn end_of_only(text: &str, needle: &str) -> Option<usize> {
    let mut matches = text.match_indices(needle);
    let (start, _) = matches.next()?;
    matches.next().is_none().then_some(start + needle.len())
}

/// Whether matching chunks change nothing but one text. A call's id or name would change the call as well, and a missing
/// index has to be resolved.
fn changes_text_only(prototype: &Update<'_>) -> bool {
    prototype.tool_calls.iter().all(|call| {
        call.wire_index.is_some()
            && call.id.is_none()
            && call.name.is_none()
            && call.kind.as_deref().is_none_or(|kind| kind == "function")
    })
}

/// The data after a literal, if the data begins with it.
///
/// The literals are short. Comparing them in steps of a constant size is faster than a call of `memcmp`, which has to
/// handle every length.
#[inline]
fn strip_literal<'t>(data: &'t [u8], literal: &[u8]) -> Option<&'t [u8]> {
    const STEP: usize = 16;
    let (start, rest) = data.split_at_checked(literal.len())?;
    let is_equal = match (start.last_chunk::<STEP>(), literal.last_chunk::<STEP>()) {
        (Some(last), Some(literal_last)) => {
            let (steps, _) = start.as_chunks::<STEP>();
            let (literal_steps, _) = literal.as_chunks::<STEP>();
            steps.iter().zip(literal_steps).all(|(a, b)| a == b) && last == literal_last
        }
        _ => start == literal,
    };
    is_equal.then_some(rest)
}

const PADDING: &str = "\"obfuscation\"";
