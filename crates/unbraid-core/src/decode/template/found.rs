//! What a match finds in the holes of a template.

use std::ops::Range;

use super::site::Slot;
use crate::{
    chunk::{Pairs, is_start_of_alphabet},
    decode::json_bytes::{integer, integer_length, number, string},
};

/// How many holes of a template may contain values that a match keeps, beside the index, the text and the time of creation.
pub(super) const MAX_VALUE_HOLES: usize = 8;

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
    /// The time of creation, if it is a hole.
    pub(super) created: Option<u64>,
    /// The length of the chunk.
    pub(crate) length: usize,
    /// The part of the data from the first to the last hole that needs the scanner, and where it starts.
    pub(super) values: &'t str,
    pub(super) values_start: usize,
    /// The usage, if its numbers are holes.
    pub(super) usage: &'t [u8],
    /// The value that becomes an entry of a list.
    pub(super) entry: &'t [u8],
}

/// The spans of the values that a match keeps, in the order of their holes. They are valid until the next match, and lie
/// outside of it, because nearly all matches have none.
pub(super) type ValueSpans = [Range<usize>; MAX_VALUE_HOLES];

/// Buffers that all templates of a stream share.
#[derive(Debug, Default)]
pub(in crate::decode) struct MatchBuffers {
    pub(super) spans: ValueSpans,
    /// The buffer for the fields of an update.
    pub(super) fields: Pairs<'static>,
    /// The buffer for an entry of a list.
    pub(super) entry: String,
}

impl<'t> TemplateMatch<'t> {
    #[inline(always)]
    pub(super) fn new(template: usize) -> Self {
        Self {
            template,
            index: 0,
            text: &[],
            block: None,
            has_escapes: false,
            created: None,
            length: 0,
            values: "",
            values_start: 0,
            usage: &[],
            entry: &[],
        }
    }

    /// Reads the value of a hole whose slot does not [need the scanner](Slot::needs_scanner), and returns its length.
    #[inline(always)]
    pub(super) fn read_hole(&mut self, hole: Slot, rest: &'t [u8]) -> Option<usize> {
        match hole {
            Slot::Index => {
                let (value, length) = number(rest)?;
                self.index = value;
                Some(length)
            }
            Slot::Text => {
                let (length, escapes) = string(rest)?;
                self.text = rest.get(..length)?;
                self.block = rest.first_chunk().filter(|block| length <= block.len());
                self.has_escapes = escapes;
                Some(length)
            }
            Slot::Created => {
                let (value, length) = integer(rest)?;
                self.created = Some(value);
                Some(length)
            }
            Slot::Number => integer_length(rest),
            Slot::Space => Some(rest.iter().take_while(|byte| **byte == b' ').count()),
            Slot::UsageStart => {
                self.usage = rest;
                Some(0)
            }
            Slot::UsageEnd => cut_at(&mut self.usage, rest),
            Slot::EntryStart => {
                self.entry = rest;
                Some(0)
            }
            Slot::EntryEnd => cut_at(&mut self.entry, rest),
            Slot::Alphabet => {
                let (length, _) = string(rest)?;
                is_start_of_alphabet(rest.get(..length)?).then_some(length)
            }
            Slot::Signature => unread(rest).filter(|length| *length > 0),
            _ => unread(rest),
        }
    }
}

/// Ends a value, which began with the rest of the chunk at its start, before this rest. The end itself has no bytes.
#[inline(always)]
fn cut_at(value: &mut &[u8], rest: &[u8]) -> Option<usize> {
    let length = value.len().checked_sub(rest.len())?;
    *value = value.get(..length)?;
    Some(0)
}

/// The length of the inside of a string that is not read: padding, or a signature. It is never decoded, so it is not checked to be
/// UTF-8. Only ASCII is accepted here.
#[inline(always)]
fn unread(rest: &[u8]) -> Option<usize> {
    let (length, _) = string(rest).filter(|(_, escaped)| !escaped)?;
    rest.get(..length)?.is_ascii().then_some(length)
}
