//! Chunks that differ from an earlier one in a few places only, read without parsing.
//!
//! Of two chunks of a stream, often only the choice index, the piece of text and the padding differ. A [`Template`] keeps
//! what stands around these places; a chunk that fits holds an index and two strings, and means what the other meant.

use std::borrow::Cow;

use super::chunk::{Chunk, is_padding};
use crate::{ChoiceIndex, Fragment, ToolCallUpdate, Update};

/// An ordinary chunk of one choice and one piece of text, with holes in it.
#[derive(Debug)]
pub(super) struct Template {
    head: Box<str>,
    /// Each hole, and what stands between it and the next.
    holes: Vec<(Hole, Box<str>)>,
    field: Field,
    /// All that the chunk says, but for what stands in the holes.
    like: Update<'static>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Index,
    Text,
    Padding,
}

/// Where the piece of text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Content,
    Reasoning,
    Refusal,
    Arguments,
}

impl Template {
    /// Makes a template of a chunk that the strict decoder has read; `None` if it says more than one piece of text.
    pub(super) fn new(text: &str, chunk: &Chunk<'_>) -> Option<Self> {
        let [element] = chunk.elements.as_slice() else {
            return None;
        };
        let update = &element.update;
        let plain = chunk.usage.is_none()
            && chunk.error.is_none()
            && element.fields.is_empty()
            && update.metadata.is_empty()
            && update.logprobs.is_none()
            && update.finish_reason.is_none()
            && update.usage.is_none()
            && update.error.is_none()
            && update.function_name.is_none()
            && update.function_arguments_update.is_none();
        if !plain {
            return None;
        }
        let (field, piece) = only_piece(update)?;
        let mut places = vec![(Hole::Text, place_of(text, piece)?)];
        places.push((Hole::Index, index_place(text, element.index?)?));
        // Padding deeper inside is part of a field that is kept as it is.
        let kept = |(_, raw): &(Cow<'_, str>, Cow<'_, str>)| raw.contains(PADDING);
        if !chunk.extra.iter().any(kept) {
            places.extend(padding_place(text).map(|place| (Hole::Padding, place)));
        }
        let like = Update {
            id: chunk.id.clone(),
            created: chunk.created,
            model: chunk.model.clone(),
            role: update.role.clone(),
            shape: update.shape,
            tool_call_updates: update.tool_call_updates.clone(),
            ..Update::default()
        };
        Self::cut(text, places, field, like.into_owned())
    }

    fn cut(
        text: &str,
        mut places: Vec<(Hole, (usize, usize))>,
        field: Field,
        like: Update<'static>,
    ) -> Option<Self> {
        places.sort_unstable_by_key(|(_, place)| *place);
        let ends = places.iter().skip(1).map(|(_, (start, _))| *start);
        let ends: Vec<usize> = ends.chain([text.len()]).collect();
        let head = text.get(..places.first()?.1.0)?.into();
        let mut holes = Vec::with_capacity(places.len());
        for ((hole, (_, end)), next) in places.into_iter().zip(ends) {
            holes.push((hole, text.get(end..next)?.into()));
        }
        Some(Self {
            head,
            holes,
            field,
            like,
        })
    }

    /// The update of a chunk that fits.
    pub(super) fn read<'t>(&'t self, text: &'t str) -> Option<Update<'t>> {
        let mut rest = text.strip_prefix(&*self.head)?;
        let (mut index, mut piece) = (None, None);
        for (hole, behind) in &self.holes {
            let length = match hole {
                Hole::Index => digits(rest)?,
                Hole::Text | Hole::Padding => string(rest)?,
            };
            let (value, next) = rest.split_at_checked(length)?;
            match hole {
                Hole::Index => index = Some(value.parse().ok()?),
                Hole::Text => piece = Some(decoded(value)?),
                Hole::Padding if value.contains('\\') => return None,
                Hole::Padding => {}
            }
            rest = next.strip_prefix(&**behind)?;
        }
        let piece = piece.filter(|_| rest.is_empty())?;
        Some(self.update(ChoiceIndex(index?), Fragment::from(piece)))
    }

    /// Whether it stands for reasoning, which the decoder keeps account of (R4).
    pub(super) fn is_reasoning(&self) -> bool {
        self.field == Field::Reasoning
    }

    fn update<'t>(&'t self, index: ChoiceIndex, piece: Fragment<'t>) -> Update<'t> {
        let like = &self.like;
        let mut update = Update {
            last: true,
            recognised: true,
            choice_index: Some(index),
            shape: like.shape,
            id: lent(&like.id),
            created: like.created,
            model: lent(&like.model),
            role: lent(&like.role),
            ..Update::default()
        };
        match self.field {
            Field::Content => update.content_update = Some(piece),
            Field::Reasoning => update.reasoning_update = Some(piece),
            Field::Refusal => update.refusal_update = Some(piece),
            Field::Arguments => {
                update.tool_call_updates = like.tool_call_updates.iter().map(lent_call).collect();
                if let Some(call) = update.tool_call_updates.first_mut() {
                    call.arguments = Some(piece);
                }
            }
        }
        update
    }
}

fn lent<'t>(text: &'t Option<Cow<'static, str>>) -> Option<Cow<'t, str>> {
    text.as_deref().map(Cow::Borrowed)
}

fn lent_call<'t>(call: &'t ToolCallUpdate<'static>) -> ToolCallUpdate<'t> {
    ToolCallUpdate {
        index: call.index,
        id: lent(&call.id),
        kind: lent(&call.kind),
        name: call.name.as_ref().map(|name| Fragment::from(&*name.text)),
        ..ToolCallUpdate::default()
    }
}

/// The one piece of text of an update, if it is the only one, and stands in the chunk as it is.
fn only_piece<'u, 'a>(update: &'u Update<'a>) -> Option<(Field, &'u Fragment<'a>)> {
    let call = match update.tool_call_updates.as_slice() {
        [] => None,
        [call] if call.extra.is_empty() && call.position.is_none() => {
            Some(call.arguments.as_ref()?)
        }
        _ => return None,
    };
    let pieces = [
        (Field::Content, update.content_update.as_ref()),
        (Field::Reasoning, update.reasoning_update.as_ref()),
        (Field::Refusal, update.refusal_update.as_ref()),
        (Field::Arguments, call),
    ];
    let mut pieces = pieces
        .into_iter()
        .filter_map(|(field, piece)| Some((field, piece?)));
    let only = pieces.next()?;
    pieces.next().is_none().then_some(only)
}

/// Where a piece stands that was borrowed from the text.
fn place_of(text: &str, piece: &Fragment<'_>) -> Option<(usize, usize)> {
    let Cow::Borrowed(piece) = piece.text else {
        return None;
    };
    let start = (piece.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start + piece.len();
    let quoted = text.get(start.checked_sub(1)?..end + 1)?;
    let is_string = quoted.len() > 2 && quoted.starts_with('"') && quoted.ends_with('"');
    is_string.then_some((start, end))
}

/// Where the choice's index stands: behind the only key of that name, or behind the first key of the first choice.
///
/// No string holds these bytes, for a quote inside of one has a backslash before it.
fn index_place(text: &str, index: u32) -> Option<(usize, usize)> {
    let at = only(text, "\"index\":").or_else(|| only(text, "\"choices\":[{\"index\":"))?;
    let space = usize::from(text.get(at..)?.starts_with(' '));
    let start = at + space;
    let end = start + digits(text.get(start..)?)?;
    (text.get(start..end)?.parse() == Ok(index)).then_some((start, end))
}

fn padding_place(text: &str) -> Option<(usize, usize)> {
    debug_assert!(is_padding(PADDING.trim_matches('"')));
    let key = only(text, PADDING)?;
    let start = key + text.get(key..)?.strip_prefix(":\"").map(|_| 2)?;
    let end = start + string(text.get(start..)?)?;
    (!text.get(start..end)?.contains('\\')).then_some((start, end))
}

/// Where the only occurrence of a needle ends.
fn only(text: &str, needle: &str) -> Option<usize> {
    let mut found = text.match_indices(needle);
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at + needle.len())
}

/// The length of the JSON number that a text begins with, if it is a whole one.
fn digits(text: &str) -> Option<usize> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let padded = length > 1 && text.starts_with('0');
    (length > 0 && !padded).then_some(length)
}

/// The length of a JSON string whose opening quote stands before the text; `None` if a control character is in it.
fn string(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            0..=0x1F => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// The text of a string's inside; an empty one is no piece of text.
fn decoded(inside: &str) -> Option<Cow<'_, str>> {
    if inside.is_empty() {
        return None;
    }
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    // Half a surrogate pair is an error here, and the lenient decoder's business.
    serde_json::from_str(&format!("\"{inside}\""))
        .ok()
        .map(Cow::Owned)
}

const PADDING: &str = "\"obfuscation\"";
