//! Finds the values of a chunk that may differ in the next one.

use super::site::{Site, Slot, span_in, span_of_number};
use crate::{
    chunk::{Chunk, Element},
    config::default_reasoning_keys,
    decode::{json_bytes::string, scan},
    text_delta::DeltaKind,
};

/// What a template is built from.
pub(in crate::decode) struct Learned<'c, 'a> {
    /// The event.
    pub(in crate::decode) text: &'a str,
    /// The chunk in it.
    pub(in crate::decode) chunk: &'c Chunk<'a>,
    /// The same chunk, whose strings keep their escapes and therefore borrow from the text.
    pub(in crate::decode) escaped: &'c Chunk<'a>,
    /// The inside of the text's quotes, if the text alone does not borrow, because it has escapes.
    pub(in crate::decode) text_span: Option<(usize, usize)>,
    /// The limit on nesting.
    pub(in crate::decode) depth: usize,
    /// Whether unknown fields may vary. In strict mode their types have to be checked in each chunk.
    pub(in crate::decode) is_strict: bool,
}

/// The keys of padding, in quotes: that of OpenAI has any text, and that of Mistral the start of an alphabet.
const PADDING: &str = "\"obfuscation\"";
const ALPHABET: &str = "\"p\"";

/// The values of a chunk that may be holes. Most of them are added by two functions that are not inlined: a dozen copies of these
/// would be loaded into the instruction cache for each chunk that is learned.
struct Sites<'a> {
    text: &'a str,
    sites: Vec<Site>,
}

impl Sites<'_> {
    fn add(&mut self, slot: Slot, (start, end): (usize, usize)) {
        self.sites.push(Site {
            slot,
            start,
            end,
            is_hole: slot.is_always_hole(),
        });
    }

    /// Adds a value that is part of the text.
    #[inline(never)]
    fn add_raw(&mut self, slot: Slot, raw: &str) {
        if let Some(span) = span_in(self.text, raw) {
            self.add(slot, span);
        }
    }

    /// Adds the inside of the quotes of a string.
    #[inline(never)]
    fn add_inside(&mut self, slot: Slot, inside: &str) {
        if let Some(span) = span_in_quotes(self.text, inside) {
            self.add(slot, span);
        }
    }
}

/// All values that may be holes, in their order. The spans come from the decoded chunk and not from a second parse: what
/// the template replaces is exactly what the decoder read.
pub(super) fn sites(
    learned: &Learned<'_, '_>,
    element: &Element<'_>,
    text_kind: DeltaKind,
) -> Option<Vec<Site>> {
    let Learned {
        text,
        chunk,
        escaped,
        ..
    } = *learned;
    const USUAL_SITES: usize = 8;
    let mut sites = Sites {
        text,
        sites: Vec::with_capacity(USUAL_SITES),
    };
    if let Some((_, fragment)) = element.update.only_text() {
        let span = learned.text_span;
        let span = span.or_else(|| span_in_quotes(text, &fragment.text))?;
        debug_assert!(has_only_text_escaped(learned, span));
        sites.add(Slot::Text, span);
    }
    // Without an index there is a single choice (E8).
    if let Some(index) = element.index {
        let span = span_of_number(text, u64::from(index), element.index_end?)?;
        sites.add(Slot::Index, span);
    }
    // The scan has noticed whether there is any, which spares most chunks the search.
    if escaped.has_padding || escaped.has_alphabet || element.has_padding {
        add_padding(learned, element, &mut sites);
    }
    if let (Some(created), Some(end)) = (chunk.created, escaped.created_end)
        && let Some(span) = span_of_number(text, created, end)
    {
        sites.add(Slot::Created, span);
    }
    if !learned.is_strict {
        add_values(learned, element, text_kind, &mut sites);
    }
    let mut sites = sites.sites;
    // The order of fields differs between servers.
    sites.sort_unstable_by_key(|site| site.start);
    // Holes that overlap could match a chunk that the decoder reads otherwise, so such a chunk gets no template.
    let is_disjoint = sites
        .windows(2)
        .all(|pair| matches!(pair, [a, b] if a.end <= b.start));
    is_disjoint.then_some(sites)
}

/// Whether a second scan finds the text at this span, if it is not made.
fn has_only_text_escaped(learned: &Learned<'_, '_>, span: (usize, usize)) -> bool {
    let Learned { text, depth, .. } = *learned;
    learned.text_span.is_none()
        || scan::escaped_chunk(text, depth, &default_reasoning_keys()).is_none_or(|escaped| {
            let texts = escaped.elements.iter().filter_map(|e| e.update.only_text());
            texts
                .map(|(_, fragment)| span_in_quotes(text, &fragment.text))
                .all(|found| found == Some(span))
        })
}

/// Adds the values that the scanner reads if they are holes.
fn add_values(
    learned: &Learned<'_, '_>,
    element: &Element<'_>,
    text_kind: DeltaKind,
    sites: &mut Sites<'_>,
) {
    let Learned { chunk, escaped, .. } = *learned;
    let update = &element.update;
    let (in_delta, in_choice) = (4, 3);
    let fields = [(&element.fields, in_delta), (&update.metadata, in_choice)];
    let mut number = 0;
    for (fields, outer_depth) in fields {
        for (key, raw) in fields {
            // Without a text of its own, the reasoning is in this field.
            if key != "reasoning_details" || text_kind == DeltaKind::Reasoning {
                sites.add_raw(Slot::Field(number, outer_depth), raw);
            }
            number += 1;
        }
    }
    for (number, (key, raw)) in (0..).zip(&escaped.extra) {
        // Another `p` may be padding, which is not a field.
        if key != "p" {
            sites.add_raw(Slot::Extra(number), raw);
        }
    }
    let values = [
        (Slot::Logprobs, &update.logprobs),
        (Slot::Usage, &escaped.usage),
        (Slot::Unused, &element.message),
    ];
    for (slot, raw) in values {
        if let Some(raw) = raw {
            sites.add_raw(slot, raw);
        }
    }
    // A name that was dropped, because it is long, is in the escaped chunk only.
    if let (Some(_), Some(id)) = (&chunk.id, &escaped.id) {
        sites.add_inside(Slot::Id, id);
    }
    if let (Some(_), Some(model)) = (&chunk.model, &escaped.model) {
        sites.add_inside(Slot::Model, model);
    }
    if let Some(text) = &element.unused_text {
        sites.add_inside(Slot::UnusedText, &text.text);
    }
}

/// The span of a part of a text, if the bytes around it are quotes.
fn span_in_quotes(text: &str, inside: &str) -> Option<(usize, usize)> {
    let (start, end) = span_in(text, inside)?;
    let quoted = text.get(start.checked_sub(1)?..end + 1)?;
    let is_string = quoted.len() > 2 && quoted.starts_with('"') && quoted.ends_with('"');
    is_string.then_some((start, end))
}

/// Adds the values that the decoder drops.
fn add_padding(learned: &Learned<'_, '_>, element: &Element<'_>, sites: &mut Sites<'_>) {
    let Learned { text, escaped, .. } = *learned;
    // Padding inside such a field is part of the field's raw JSON, so it has to be equal.
    let is_inside = |key: &str| {
        let fields = element.fields.iter().chain(&element.update.metadata);
        let mut fields = escaped.extra.iter().chain(fields);
        fields.any(|(_, raw)| raw.contains(key))
    };
    if let Some(span) = padding_span(text, PADDING).filter(|_| !is_inside(PADDING)) {
        sites.add(Slot::Padding, span);
    }
    if escaped.has_alphabet
        && let Some(span) = padding_span(text, ALPHABET).filter(|_| !is_inside(ALPHABET))
    {
        sites.add(Slot::Alphabet, span);
    }
}

/// The span of the padding under a key.
fn padding_span(text: &str, key: &str) -> Option<(usize, usize)> {
    let key_end = end_of_only(text, key)?;
    let after_key = text.get(key_end..)?;
    let value = after_key
        .strip_prefix(":\"")
        .or_else(|| after_key.strip_prefix(": \""))?;
    let start = text.len() - value.len();
    let (length, escaped) = string(text.get(start..)?.as_bytes())?;
    (!escaped).then_some((start, start + length))
}

/// The end of the only occurrence of a needle.
fn end_of_only(text: &str, needle: &str) -> Option<usize> {
    let mut matches = text.match_indices(needle);
    let (start, _) = matches.next()?;
    matches.next().is_none().then_some(start + needle.len())
}
