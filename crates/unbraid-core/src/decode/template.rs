//! Reads chunks that differ from an earlier one only in some values, without parsing the rest.
//!
//! The chunks of a stream differ in the choice index, the text and the padding, and in some streams also in the id, the
//! time of creation, or the value of an unknown field. A [`Template`] keeps the bytes around these values. A chunk with
//! the same bytes there, and with a value of the same type in each hole, is the same JSON with other values: it has the
//! same keys in the same places, so it means what the earlier chunk meant. Anything else is not a match, and is parsed.
//! The scanner that reads unknown chunks also reads the values in the holes, so it decides what is valid there. A value
//! that has the form of a valid one ([`Form`]) is not read again.

mod build;
mod form;
mod provider;
mod site;
mod updates;

use std::{cell::Cell, ops::Range, sync::Arc};

use super::{
    fields::{ValueReader, usage},
    json_bytes::{integer, integer_length, number, string},
    scan::Scanner,
};
use crate::{
    CompletionKind, Update,
    chunk::{Pairs, is_start_of_alphabet},
    limits::MAX_VALUES,
    node::may_overflow,
    prefetch::prefetch,
    text_delta::DeltaKind,
};
pub(super) use build::Learned;
use form::Form;
pub(super) use provider::{Event as ProviderEvent, Provided};
use site::{Part, Site, Slot};

/// How many holes of a template may contain values that a match keeps, beside the index, the text and the time of creation.
const MAX_VALUE_HOLES: usize = 8;

/// An ordinary chunk of one choice and at most one text, or an event of another dialect, with holes in it.
#[derive(Debug)]
// What a match needs comes first.
#[repr(C)]
pub(super) struct Template {
    /// The chunk that it was learned from.
    text: Arc<str>,
    /// The length of the text before the first hole.
    head_len: usize,
    /// Each hole. They refer to the text, so that a match reads one allocation from its start to its end.
    holes: Box<[Hole]>,
    /// The number of its envelope. Templates with the same number have the same id, time of creation and model.
    pub(super) envelope: u64,
    /// What the dialect says of the event, if it is not a chunk.
    provided: Option<Box<Provided>>,
    text_kind: DeltaKind,
    kind: CompletionKind,
    /// Whether the prototype has nothing beside the text that belongs to a `TextDelta`.
    is_bare: bool,
    /// Whether there are unknown fields in the envelope.
    has_extra: bool,
    /// Whether there are holes that the scanner has to read.
    has_values: bool,
    /// Whether there is a text. Some servers send chunks without one again and again: an empty text, a call without arguments.
    has_text: bool,
    /// Whether a `TextDelta` holds everything that a matching chunk says of its choice.
    is_text_only: bool,
    /// Whether a match keeps no value but the text, the index and the time of creation, and there is no usage.
    is_constant: bool,
    /// Whether there is usage whose integers are holes, and a match keeps no other value.
    has_usage_form: bool,
    /// Whether an unknown field of the choice or of its delta is a hole.
    has_field_holes: bool,
    /// Whether an unknown field of the envelope is a hole.
    has_extra_holes: bool,
    /// The version of the stream's envelope in which all unknown fields were known to have the values of this template.
    pub(super) known_version: Option<u64>,
    prototype: Box<Prototype>,
    /// The forms of the values in the holes that the scanner has to read.
    forms: Box<[Form]>,
    /// All values in the chunk that may become a hole, in their order.
    sites: Vec<Site>,
    /// The limit on nesting.
    depth: usize,
}

/// A hole, and the bytes between it and the next one.
#[derive(Debug, Clone, Copy)]
struct Hole {
    slot: Slot,
    /// Where these bytes lie in the text of the template.
    literal: (u32, u32),
}

/// The updates of the chunk, without the values in the holes.
#[derive(Debug)]
struct Prototype {
    /// The update of the choice, without the id and the model.
    update: Update<'static>,
    id: Option<Part>,
    model: Option<Part>,
    /// The usage in the envelope, as raw JSON.
    usage: Option<Part>,
    /// The unknown fields of the envelope, as raw JSON.
    extra: Vec<(Part, Part)>,
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
    /// The time of creation, if it is a hole.
    created: Option<u64>,
    /// The length of the chunk.
    pub(crate) length: usize,
    /// The part of the data from the first value that was stored to the last one, and where it starts.
    values: &'t str,
    values_start: usize,
    /// The usage, if its numbers are holes.
    usage: &'t [u8],
    /// The value that becomes an entry of a list.
    entry: &'t [u8],
}

/// The spans of the values that a match keeps, in the order of their holes. They are valid until the next match, and lie
/// outside of it, because nearly all matches have none.
type ValueSpans = [Range<usize>; MAX_VALUE_HOLES];

/// Buffers that all templates of a stream share.
#[derive(Debug, Default)]
pub(super) struct MatchBuffers {
    spans: ValueSpans,
    /// The buffer for the fields of an update.
    fields: Pairs<'static>,
    /// The buffer for an entry of a list.
    entry: String,
}

/// The line at the start of some data. The part of it that a scanner needs is checked to be UTF-8.
#[derive(Debug)]
pub(super) struct Line<'t> {
    data: &'t [u8],
    /// Where the checked part starts, and the part up to the end of the line.
    checked: Cell<Option<(usize, &'t str)>>,
}

impl<'t> Line<'t> {
    pub(super) fn new(data: &'t [u8]) -> Self {
        Self {
            data,
            checked: Cell::new(None),
        }
    }

    /// Where a text starts that the scanner may read from an offset on, and the text. A chunk is one line, except in events of
    /// several lines, which are not matched.
    fn text(&self, pos: usize) -> Option<(usize, &'t str)> {
        if let Some((start, text)) = self.checked.get().filter(|(start, _)| *start <= pos) {
            return Some((start, text));
        }
        let rest = self.data.get(pos..)?;
        let end = memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        if pos + end > MAX_VALUES {
            return None; // the scanner declines a longer text, too
        }
        let text = (pos, str::from_utf8(rest.get(..end)?).ok()?);
        self.checked.set(Some(text));
        Some(text)
    }
}

impl Template {
    /// The chunk that it was learned from.
    pub(super) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Loads what a match needs beside the text.
    #[inline]
    pub(super) fn prefetch(&self) {
        let holes = [self.holes.first(), self.holes.last()];
        let starts = holes
            .into_iter()
            .flatten()
            .map(|hole| u64::from(hole.literal.0));
        prefetch(starts.sum::<u64>() + u64::from(self.has_extra_holes));
    }

    /// The bytes before the first hole.
    pub(super) fn head(&self) -> &[u8] {
        self.text
            .as_bytes()
            .get(..self.head_len)
            .unwrap_or_default()
    }

    /// A part of the chunk that it was learned from.
    fn part<'t>(&'t self, part: &'t Option<Part>) -> Option<&'t str> {
        part.as_ref().map(|part| part.get(&self.text))
    }

    /// The bytes between a hole and the next one.
    #[inline(always)]
    fn literal_after(&self, hole: &Hole) -> Option<&[u8]> {
        let (start, end) = hole.literal;
        self.text.as_bytes().get(start as usize..end as usize)
    }

    /// Whether the data begins with this many bytes of the head.
    #[inline]
    pub(super) fn starts_with_head(&self, data: &[u8], common_len: usize) -> bool {
        let start = self.text.as_bytes().get(..common_len);
        start.is_some_and(|start| data.starts_with(start))
    }

    /// Whether there are holes that the scanner has to read.
    pub(super) fn has_values(&self) -> bool {
        self.has_values
    }

    /// Matches a chunk at the start of the data, of which `common_len` bytes are known to be equal to the head, if no hole
    /// needs the scanner.
    #[inline(always)]
    pub(super) fn match_start<'t>(
        &self,
        data: &'t [u8],
        common_len: usize,
        template: usize,
    ) -> Option<TemplateMatch<'t>> {
        let mut rest = self.after_head(data, common_len)?;
        let mut found = TemplateMatch::new(template);
        for hole in &self.holes {
            let length = found.narrow_hole(hole.slot, rest)?;
            rest = strip_literal(rest.get(length..)?, self.literal_after(hole)?)?;
        }
        found.length = data.len() - rest.len();
        self.accepts_text(&found).then_some(found)
    }

    #[inline(always)]
    fn after_head<'t>(&self, data: &'t [u8], common_len: usize) -> Option<&'t [u8]> {
        let rest = data.get(common_len..)?;
        if common_len < self.head_len {
            return rest.strip_prefix(self.text.as_bytes().get(common_len..self.head_len)?);
        }
        Some(rest)
    }

    /// The same if some holes need the scanner. The spans of the values in them are stored.
    #[inline(never)]
    pub(super) fn match_values<'t>(
        &self,
        line: &Line<'t>,
        common_len: usize,
        template: usize,
        buffers: &mut MatchBuffers,
    ) -> Option<TemplateMatch<'t>> {
        let data = line.data;
        self.after_head(data, common_len)?;
        let mut found = TemplateMatch::new(template);
        let mut slots = buffers.spans.iter_mut();
        let mut forms = self.forms.iter();
        let mut pos = self.head_len;
        let mut values: Option<Range<usize>> = None;
        for hole in &self.holes {
            let (slot, literal) = (hole.slot, self.literal_after(hole)?);
            let rest = data.get(pos..)?;
            if slot.needs_scanner() {
                let form = forms.next()?;
                let narrow = slot.narrow_value(rest);
                let end = match narrow.or_else(|| self.known_value(slot, form, rest)) {
                    Some(length) => pos + length,
                    None => {
                        let (start, text) = line.text(pos)?;
                        start + self.value_end(slot, text, pos - start)?
                    }
                };
                if slot.is_value() {
                    *slots.next()? = pos..end;
                }
                values = Some(values.map_or(pos, |values| values.start)..end);
                pos = end;
            } else {
                pos += found.narrow_hole(slot, rest)?;
            }
            strip_literal(data.get(pos..)?, literal)?;
            pos += literal.len();
        }
        found.length = pos;
        // Checked once for all values, which are then cut out of the checked text.
        let values = values?;
        found.values_start = values.start;
        found.values = str::from_utf8(data.get(values)?).ok()?;
        self.accepts_text(&found).then_some(found)
    }

    /// A chunk with an empty text is not a delta, so it differs from one with a text in more than that.
    #[inline(always)]
    fn accepts_text(&self, found: &TemplateMatch<'_>) -> bool {
        self.has_text != found.text.is_empty()
    }

    /// The length of a value that has the form of the prototype's, and is valid for that reason if it is UTF-8.
    fn known_value(&self, slot: Slot, form: &Form, rest: &[u8]) -> Option<usize> {
        if slot.is_inside() {
            return None;
        }
        let length = form.value_len(self.text.as_bytes(), rest)?;
        if slot == Slot::Usage && may_overflow(str::from_utf8(rest.get(..length)?).ok()?) {
            return None;
        }
        Some(length)
    }

    /// The end of the value at an offset, if it is what the decoder reads in such a place: then it takes the same part in
    /// the chunk as the prototype's value.
    fn value_end(&self, hole: Slot, line: &str, pos: usize) -> Option<usize> {
        if hole.is_inside() {
            return None; // escapes would have to be checked, and a long name is dropped
        }
        // The scanner skips white space, which the parser does not count as part of the value.
        if line.as_bytes().get(pos)?.is_ascii_whitespace() {
            return None;
        }
        let mut scanner = Scanner::of_values(line, self.depth, hole.outer_depth())?;
        scanner.seek(pos);
        match hole {
            Slot::Logprobs => drop(scanner.logprobs().ok()??),
            Slot::Usage => drop(usage(&mut scanner).ok()??),
            Slot::Unused => drop(scanner.raw().ok()?),
            // In a field that counts, `null` would count as absent.
            _ => drop(scanner.raw().ok().filter(|raw| *raw != "null")?),
        }
        scanner.last_value_end()
    }

    /// The choice of a match.
    pub(super) fn choice(&self, found: &TemplateMatch<'_>) -> u32 {
        let provided = self.provided.as_deref();
        provided.and_then(|p| p.choice).unwrap_or(found.index)
    }

    /// Whether the chunk that it was learned from has a time of creation.
    pub(super) fn has_created(&self) -> bool {
        let created = self.prototype.update.created;
        created.is_some_and(|created| created != 0)
    }

    /// What a matching event continues, and the name that it needs; `None` for a chunk.
    pub(super) fn provided(&self) -> Option<&Provided> {
        self.provided.as_deref()
    }

    /// The text that matching chunks continue.
    pub(super) fn text_kind(&self) -> DeltaKind {
        self.text_kind
    }
}

impl<'t> TemplateMatch<'t> {
    #[inline(always)]
    fn new(template: usize) -> Self {
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

    /// Reads the value of a hole that needs no scanner, and returns its length.
    #[inline(always)]
    fn narrow_hole(&mut self, hole: Slot, rest: &'t [u8]) -> Option<usize> {
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
            Slot::UsageEnd => {
                let length = self.usage.len().checked_sub(rest.len())?;
                self.usage = self.usage.get(..length)?;
                Some(0)
            }
            Slot::EntryStart => {
                self.entry = rest;
                Some(0)
            }
            Slot::EntryEnd => {
                let length = self.entry.len().checked_sub(rest.len())?;
                self.entry = self.entry.get(..length)?;
                Some(0)
            }
            Slot::Alphabet => {
                let (length, _) = string(rest)?;
                is_start_of_alphabet(rest.get(..length)?).then_some(length)
            }
            // The padding is never decoded, so it is not checked to be UTF-8. Only ASCII is accepted here.
            _ => {
                let (length, _) = string(rest).filter(|(_, escaped)| !escaped)?;
                rest.get(..length)?.is_ascii().then_some(length)
            }
        }
    }
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
