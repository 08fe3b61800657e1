//! The places of a chunk whose values may differ in the next one.

use crate::{
    decode::json_bytes::{integer, string},
    limits::MAX_NAME_BYTES,
};

/// What the decoder reads at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// The index of the choice.
    Index,
    /// The inside of the text's quotes.
    Text,
    /// The inside of the padding's quotes.
    Padding,
    /// The inside of the quotes of a signature. Without any text it would mean something else.
    Signature,
    /// The inside of the quotes of padding that is the start of an alphabet.
    Alphabet,
    /// The time of creation.
    Created,
    /// An integer that is not read, or that is part of the usage.
    Number,
    /// Spaces before the last brace: Anthropic pads its events with them.
    Space,
    /// The place before a usage of which the integers are holes.
    UsageStart,
    /// The place after it.
    UsageEnd,
    /// The place before the value that becomes an entry of a list.
    EntryStart,
    /// The place after it.
    EntryEnd,
    /// The inside of the quotes of the completion's id.
    Id,
    /// The inside of the quotes of the model.
    Model,
    /// Log probabilities with a token.
    Logprobs,
    /// Usage in the envelope.
    Usage,
    /// A value that does not count because of the text beside it: a message beside a delta (E21).
    Unused,
    /// The inside of the quotes of a text that does not count because of the delta's (C19).
    UnusedText,
    /// The n-th unknown field of the envelope.
    Extra(u16),
    /// The n-th unknown field of the update, counted from that of the delta, and how many arrays and objects it lies in.
    Field(u16, u8),
}

impl Slot {
    /// Whether the values of two chunks are never taken to be equal.
    pub(super) fn is_always_hole(self) -> bool {
        matches!(
            self,
            Self::Index | Self::Text | Self::Padding | Self::Signature | Self::Alphabet
        )
    }

    /// Whether the scanner has to read the value in a hole.
    pub(super) fn needs_scanner(self) -> bool {
        !self.is_always_hole()
            && !matches!(
                self,
                Self::Created
                    | Self::Number
                    | Self::Space
                    | Self::UsageStart
                    | Self::UsageEnd
                    | Self::EntryStart
                    | Self::EntryEnd
            )
    }

    /// Of the slots that need the scanner: whether it is the inside of a string's quotes, and not a whole value.
    pub(super) fn is_inside(self) -> bool {
        matches!(self, Self::Id | Self::Model | Self::UnusedText)
    }

    /// The length of a value that is so simple that the scanner need not read it, although the slot may have any value: a
    /// name, an integer, or a string without escapes.
    pub(super) fn simple_value_len(self, rest: &[u8]) -> Option<usize> {
        let unescaped = |inside: &[u8]| {
            let (length, escapes) = string(inside)?;
            let is_text = str::from_utf8(inside.get(..length)?).is_ok();
            (is_text && !escapes).then_some(length)
        };
        match (self, rest) {
            (Self::Id | Self::Model | Self::UnusedText, _) => {
                unescaped(rest).filter(|length| *length <= MAX_NAME_BYTES)
            }
            (Self::Logprobs | Self::Usage, _) => None,
            (_, [b'"', inside @ ..]) => Some(unescaped(inside)? + 2),
            (_, [b'0'..=b'9', ..]) => {
                let (_, length) = integer(rest)?;
                let is_end = matches!(rest.get(length)?, b',' | b'}');
                is_end.then_some(length)
            }
            _ => None,
        }
    }

    /// Whether a match keeps the text of the value.
    pub(super) fn is_value(self) -> bool {
        self.needs_scanner() && !matches!(self, Self::Unused | Self::UnusedText)
    }

    /// The number of arrays and objects that the value lies in. It bounds the nesting inside of the value, so it matters for
    /// the slots that the scanner reads.
    pub(super) fn outer_depth(self) -> usize {
        const ENVELOPE: usize = 1;
        const CHOICE: usize = 3; // the envelope, the list and its entry
        match self {
            Self::Index
            | Self::Text
            | Self::Padding
            | Self::Signature
            | Self::Alphabet
            | Self::Logprobs
            | Self::Unused
            | Self::UnusedText => CHOICE,
            Self::Created
            | Self::Number
            | Self::Space
            | Self::UsageStart
            | Self::UsageEnd
            | Self::EntryStart
            | Self::EntryEnd
            | Self::Id
            | Self::Model
            | Self::Usage
            | Self::Extra(_) => ENVELOPE,
            Self::Field(_, outer_depth) => usize::from(outer_depth),
        }
    }
}

/// A value in the text of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) slot: Slot,
    pub(super) start: usize,
    pub(super) end: usize,
    /// Whether it is a hole. Otherwise its value is compared as the bytes around it are.
    pub(super) is_hole: bool,
}

/// A part of a template's text or, if it had escapes there, a text of its own.
#[derive(Debug)]
pub(super) enum Part {
    Span(u32, u32),
    Own(Box<str>),
}

impl Part {
    pub(super) fn of(text: &str, part: &str) -> Self {
        let offset = |at: usize| u32::try_from(at).ok();
        let span =
            span_in(text, part).and_then(|(start, end)| Some((offset(start)?, offset(end)?)));
        span.map_or_else(
            || Self::Own(part.into()),
            |(start, end)| Self::Span(start, end),
        )
    }

    /// The part, from the text that it is a part of.
    pub(super) fn get<'t>(&'t self, text: &'t str) -> &'t str {
        match self {
            Self::Span(start, end) => text.get(*start as usize..*end as usize).unwrap_or_default(),
            Self::Own(part) => part,
        }
    }
}

/// The span of a part of a text.
pub(super) fn span_in(text: &str, part: &str) -> Option<(usize, usize)> {
    // By address and not by a search: the same value may occur twice, and only one of them is this field's. A part of another
    // allocation is out of range below.
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let end = start.checked_add(part.len())?;
    (text.get(start..end)? == part).then_some((start, end))
}

/// The span of an integer in decimal digits that ends at an offset.
pub(super) fn span_of_number(text: &str, value: u64, end: usize) -> Option<(usize, usize)> {
    // The decoder has refused leading zeros, signs and exponents, so the value has one spelling.
    let digits = value.checked_ilog10().unwrap_or(0) as usize + 1;
    let start = end.checked_sub(digits)?;
    (text.get(start..end)?.parse() == Ok(value)).then_some((start, end))
}
