//! Chunks that differ from an earlier one in a few places only, read without parsing.
//!
//! Of two chunks of a stream, often only the choice index, the piece of text and the padding differ. A [`Template`] keeps
//! what stands around these places; a chunk that fits holds an index and two strings, and means what the other meant.

use std::borrow::Cow;

use super::{
    chunk::{Chunk, is_padding},
    inside::{number, string},
};
use crate::{
    ChoiceIndex, EventIndex, Fragment, ToolCallUpdate, Update,
    text_delta::{DeltaKind, TextDelta},
};

/// An ordinary chunk of one choice and one piece of text, with holes in it.
#[derive(Debug, PartialEq)]
pub(super) struct Template {
    head: Box<[u8]>,
    /// Each hole, and what stands between it and the next.
    holes: Vec<(Hole, Box<[u8]>)>,
    lane: DeltaKind,
    /// Whether all that it says stands in a [`TextDelta`].
    is_piece: bool,
    /// All that the chunk says, but for what stands in the holes.
    like: Update<'static>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hole {
    Index,
    Text,
    Padding,
}

/// What stands in the holes of a chunk that fits.
pub(crate) struct Found<'t> {
    /// Which template it fits.
    pub(crate) template: usize,
    pub(crate) index: u32,
    /// The inside of a JSON string, free of control characters; not checked to be UTF-8.
    pub(crate) text: &'t [u8],
    /// The text and what follows it, if it is short.
    pub(crate) block: Option<&'t [u8; 16]>,
    pub(crate) escaped: bool,
    /// How long the chunk is.
    pub(crate) length: usize,
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
            && update.function_arguments.is_none();
        if !plain {
            return None;
        }
        let (lane, piece) = only_piece(update)?;
        let mut places = vec![(Hole::Text, place_of(text, piece)?)];
        let known = element.index_place(text);
        places.push((
            Hole::Index,
            known.or_else(|| index_place(text, element.index?))?,
        ));
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
            kind: update.kind,
            tool_calls: update.tool_calls.clone(),
            ..Update::default()
        };
        Self::cut(text, places, lane, like.into_owned())
    }

    fn cut(
        text: &str,
        mut places: Vec<(Hole, (usize, usize))>,
        lane: DeltaKind,
        like: Update<'static>,
    ) -> Option<Self> {
        places.sort_unstable_by_key(|(_, place)| *place);
        let ends = places.iter().skip(1).map(|(_, (start, _))| *start);
        let ends: Vec<usize> = ends.chain([text.len()]).collect();
        let head = text.get(..places.first()?.1.0)?.as_bytes().into();
        let mut holes = Vec::with_capacity(places.len());
        for ((hole, (_, end)), next) in places.into_iter().zip(ends) {
            holes.push((hole, text.get(end..next)?.as_bytes().into()));
        }
        Some(Self {
            head,
            holes,
            lane,
            is_piece: says_nothing_else(&like),
            like,
        })
    }

    /// What stands before the first hole.
    pub(super) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Whether the bytes begin with so much of the head.
    #[inline]
    pub(super) fn begins(&self, data: &[u8], common: usize) -> bool {
        self.head
            .get(..common)
            .is_some_and(|head| data.starts_with(head))
    }

    /// What stands in the holes, if a chunk that fits stands at the start; so much of the head is known to.
    #[inline(always)]
    pub(super) fn find<'t>(&self, data: &'t [u8], common: usize, own: usize) -> Option<Found<'t>> {
        let mut rest = data.get(common..)?;
        if common < self.head.len() {
            rest = rest.strip_prefix(self.head.get(common..)?)?;
        }
        let (mut index, mut text, mut block, mut escaped) = (None, None, None, false);
        for (hole, behind) in &self.holes {
            let length = match hole {
                Hole::Index => {
                    let (value, length) = number(rest)?;
                    index = Some(value);
                    length
                }
                Hole::Text => {
                    let (length, has_escapes) = string(rest)?;
                    text = rest.get(..length).filter(|text| !text.is_empty());
                    block = rest.first_chunk().filter(|block| length <= block.len());
                    escaped = has_escapes;
                    length
                }
                // Nobody reads it: other bytes than ASCII, which might be no UTF-8, are left to the parser.
                Hole::Padding => {
                    let (length, _) = string(rest).filter(|(_, escaped)| !escaped)?;
                    rest.get(..length)?.is_ascii().then_some(length)?
                }
            };
            rest = behind_of(rest.get(length..)?, behind)?;
        }
        Some(Found {
            template: own,
            index: index?,
            text: text?,
            block,
            escaped,
            length: data.len() - rest.len(),
        })
    }

    /// Which text it continues.
    pub(super) fn lane(&self) -> DeltaKind {
        self.lane
    }

    /// Whether another one's chunks tell the same of the stream as a whole.
    pub(super) fn shares_envelope(&self, other: &Self) -> bool {
        let envelope = |of: &Self| (of.like.id.clone(), of.like.created, of.like.model.clone());
        envelope(self) == envelope(other)
    }

    /// What a chunk that fits says, if all of it stands in a piece.
    pub(super) fn piece<'t>(&'t self, choice: ChoiceIndex, text: &'t str) -> Option<TextDelta<'t>> {
        let piece = TextDelta {
            event_index: EventIndex(0),
            choice,
            kind: self.like.kind,
            role: self.like.role.as_deref(),
            text_kind: self.lane,
            text,
        };
        Some(piece).filter(|_| self.is_piece)
    }

    /// The update of a chunk that fits.
    pub(super) fn update<'t>(&'t self, choice: ChoiceIndex, text: &'t str) -> Update<'t> {
        let (like, piece) = (&self.like, Fragment::from(text));
        let mut update = Update {
            last_of_event: true,
            is_chunk: true,
            choice: Some(choice),
            kind: like.kind,
            id: lent(&like.id),
            created: like.created,
            model: lent(&like.model),
            role: lent(&like.role),
            ..Update::default()
        };
        match self.lane {
            DeltaKind::Content => update.content = Some(piece),
            DeltaKind::Reasoning => update.reasoning = Some(piece),
            DeltaKind::Refusal => update.refusal = Some(piece),
            DeltaKind::Arguments(_) => {
                update.tool_calls = like.tool_calls.iter().map(lent_call).collect();
                if let Some(call) = update.tool_calls.first_mut() {
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
        wire_index: call.wire_index,
        id: lent(&call.id),
        kind: lent(&call.kind),
        name: call.name.as_ref().map(|name| Fragment::from(&*name.text)),
        ..ToolCallUpdate::default()
    }
}

/// The one piece of text of an update, if it is the only one, and stands in the chunk as it is.
fn only_piece<'u, 'a>(update: &'u Update<'a>) -> Option<(DeltaKind, &'u Fragment<'a>)> {
    let (index, call) = match update.tool_calls.as_slice() {
        [] => (0, None),
        [call] if call.extra.is_empty() && call.position.is_none() => {
            (call.wire_index.unwrap_or(0), Some(call.arguments.as_ref()?))
        }
        _ => return None,
    };
    let pieces = [
        (DeltaKind::Content, update.content.as_ref()),
        (DeltaKind::Reasoning, update.reasoning.as_ref()),
        (DeltaKind::Refusal, update.refusal.as_ref()),
        (DeltaKind::Arguments(index), call),
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
    let (value, length) = number(text.get(start..)?.as_bytes())?;
    (value == index).then_some((start, start + length))
}

fn padding_place(text: &str) -> Option<(usize, usize)> {
    debug_assert!(is_padding(PADDING.trim_matches('"')));
    let key = only(text, PADDING)?;
    let start = key + text.get(key..)?.strip_prefix(":\"").map(|_| 2)?;
    let (length, escaped) = string(text.get(start..)?.as_bytes())?;
    (!escaped).then_some((start, start + length))
}

/// Where the only occurrence of a needle ends.
fn only(text: &str, needle: &str) -> Option<usize> {
    let mut found = text.match_indices(needle);
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at + needle.len())
}

/// Whether the likes of it change nothing but one text: a call's header, or an index that is missing, does.
fn says_nothing_else(like: &Update<'_>) -> bool {
    like.tool_calls.iter().all(|call| {
        call.wire_index.is_some()
            && call.id.is_none()
            && call.name.is_none()
            && call.kind.as_deref().is_none_or(|kind| kind == "function")
    })
}

/// What stands behind some bytes, if the data begins with them.
///
/// They are few, and comparing them takes less than a call that is made for any number of them.
#[inline]
fn behind_of<'t>(data: &'t [u8], bytes: &[u8]) -> Option<&'t [u8]> {
    const STEP: usize = 16;
    let (start, rest) = data.split_at_checked(bytes.len())?;
    let same = match (start.last_chunk::<STEP>(), bytes.last_chunk::<STEP>()) {
        (Some(last), Some(of)) => {
            let (steps, _) = start.as_chunks::<STEP>();
            let (of_steps, _) = bytes.as_chunks::<STEP>();
            steps.iter().zip(of_steps).all(|(a, b)| a == b) && last == of
        }
        _ => start == bytes,
    };
    same.then_some(rest)
}

const PADDING: &str = "\"obfuscation\"";
