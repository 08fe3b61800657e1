//! Compares a chunk with a template.

use std::{cell::Cell, ops::Range};

use super::{MatchBuffers, Template, TemplateMatch, form::Form, site::Slot};
use crate::{
    decode::{
        fields::{ValueReader, usage},
        scan::Scanner,
    },
    limits::MAX_VALUES,
    node::may_overflow,
};

/// The line at the start of some data. The part of it that a scanner needs is checked to be UTF-8.
#[derive(Debug)]
pub(in crate::decode) struct Line<'t> {
    data: &'t [u8],
    /// Where the checked part starts, and the part up to the end of the line.
    checked: Cell<Option<(usize, &'t str)>>,
}

impl<'t> Line<'t> {
    pub(in crate::decode) fn new(data: &'t [u8]) -> Self {
        Self {
            data,
            checked: Cell::new(None),
        }
    }

    /// A checked part of the line that contains an offset: where the part starts, and its text up to the end of the line. A
    /// chunk is one line, except in events of several lines, which are not matched.
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
    /// Matches a chunk at the start of the data, of which `common_len` bytes are known to be equal to the head, if no hole
    /// needs the scanner.
    #[inline(always)]
    pub(in crate::decode) fn match_start<'t>(
        &self,
        data: &'t [u8],
        common_len: usize,
        template: usize,
    ) -> Option<TemplateMatch<'t>> {
        let mut rest = self.after_head(data, common_len)?;
        let mut found = TemplateMatch::new(template);
        for hole in &self.holes {
            let length = found.read_hole(hole.slot, rest)?;
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

    /// As [`match_start`](Self::match_start), for a template some of whose holes need the scanner. The spans of the values in
    /// these holes are stored in the buffers.
    #[inline(never)]
    pub(in crate::decode) fn match_values<'t>(
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
                let simple = slot.simple_value_len(rest);
                let end = match simple.or_else(|| self.known_value(slot, form, rest)) {
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
                pos += found.read_hole(slot, rest)?;
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
