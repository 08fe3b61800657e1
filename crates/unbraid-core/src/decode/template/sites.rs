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
    let mut sites = Vec::with_capacity(USUAL_SITES);
    let mut add = |slot: Slot, (start, end): (usize, usize)| {
        let is_hole = slot.is_always_hole();
        sites.push(Site {
            slot,
            start,
            end,
            is_hole,
        });
    };
    if let Some((_, fragment)) = element.update.only_text() {
        let span = learned.text_span;
        let span = span.or_else(|| span_in_quotes(text, &fragment.text))?;
        debug_assert!(has_only_text_escaped(learned, span));
        add(Slot::Text, span);
    }
    // Without an index there is a single choice (E8).
    if let Some(index) = element.index {
        let span = span_of_number(text, u64::from(index), element.index_end?)?;
        add(Slot::Index, span);
    }
    // The scan has noticed whether there is any, which spares most chunks the search.
    if escaped.has_padding || escaped.has_alphabet || element.has_padding {
        add_padding(learned, element, &mut add);
    }
    if let (Some(created), Some(end)) = (chunk.created, escaped.created_end)
        && let Some(span) = span_of_number(text, created, end)
    {
        add(Slot::Created, span);
    }
    if !learned.is_strict {
        add_values(learned, element, text_kind, &mut add);
    }
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
    add: &mut impl FnMut(Slot, (usize, usize)),
) {
    let Learned {
        text,
        chunk,
        escaped,
        ..
    } = *learned;
    let (in_delta, in_choice) = (4, 3);
    let delta = element.fields.iter().map(|field| (field, in_delta));
    let choice = element
        .update
        .metadata
        .iter()
        .map(|field| (field, in_choice));
    let fields = (0..).zip(delta.chain(choice));
    // Without a text of its own, the reasoning is in this field.
    let is_text = |key: &str| key == "reasoning_details" && text_kind != DeltaKind::Reasoning;
    let fields = fields
        .filter(|(_, ((key, _), _))| !is_text(key))
        .map(|(n, ((_, raw), outer_depth))| (Slot::Field(n, outer_depth), &**raw));
    // Another `p` may be padding, which is not a field.
    let extra = (0..)
        .zip(&escaped.extra)
        .filter(|(_, (key, _))| key != "p")
        .map(|(n, (_, raw))| (Slot::Extra(n), &**raw));
    let logprobs = element
        .update
        .logprobs
        .iter()
        .map(|raw| (Slot::Logprobs, &**raw));
    let usage = escaped.usage.iter().map(|raw| (Slot::Usage, &**raw));
    let message = element.message.iter().map(|raw| (Slot::Unused, &**raw));
    let all = fields
        .chain(extra)
        .chain(logprobs)
        .chain(usage)
        .chain(message);
    for (slot, raw) in all {
        if let Some(span) = span_in(text, raw) {
            add(slot, span);
        }
    }
    let id = escaped.id.iter().filter(|_| chunk.id.is_some());
    let model = escaped.model.iter().filter(|_| chunk.model.is_some());
    let names = id
        .map(|id| (Slot::Id, id))
        .chain(model.map(|model| (Slot::Model, model)));
    let unused = element
        .unused_text
        .iter()
        .map(|text| (Slot::UnusedText, &text.text));
    for (slot, name) in names.chain(unused) {
        if let Some(span) = span_in_quotes(text, name) {
            add(slot, span);
        }
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
fn add_padding(
    learned: &Learned<'_, '_>,
    element: &Element<'_>,
    add: &mut impl FnMut(Slot, (usize, usize)),
) {
    let Learned { text, escaped, .. } = *learned;
    // Padding inside such a field is part of the field's raw JSON, so it has to be equal.
    let is_inside = |key: &str| {
        let fields = element.fields.iter().chain(&element.update.metadata);
        let mut fields = escaped.extra.iter().chain(fields);
        fields.any(|(_, raw)| raw.contains(key))
    };
    if let Some(span) = padding_span(text, PADDING).filter(|_| !is_inside(PADDING)) {
        add(Slot::Padding, span);
    }
    if escaped.has_alphabet
        && let Some(span) = padding_span(text, ALPHABET).filter(|_| !is_inside(ALPHABET))
    {
        add(Slot::Alphabet, span);
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
