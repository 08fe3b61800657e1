//! One chunk between its JSON and its updates.
//!
//! All decode paths fill a [`Chunk`], and one place turns it into updates, so the paths can differ only in what they
//! read.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

mod recognise;

use crate::{
    BodyFormat, ChoiceIndex, CompletionKind, Fragment, ToolCallUpdate, Update, Warning,
    limits::MAX_FIELDS, node::Node,
};

pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The field that holds a message's parts which are neither text nor reasoning (C11). No known server uses this name.
pub(crate) const CONTENT_PARTS: &str = "content_parts";

/// The `object` of a text completion and of its chunks.
pub(crate) const TEXT_COMPLETION: &str = "text_completion";

/// Usage as raw JSON. An empty object reports nothing, nor does one with nothing but null, and neither hides usage in another
/// place (U2, U5).
pub(crate) fn usage_json<'a>(node: &Node<'a>) -> Option<Cow<'a, str>> {
    node.object_json().filter(|_| has_values(node))
}

/// Whether a value is anything but null, or an object without any such value.
fn has_values(node: &Node<'_>) -> bool {
    match node.as_object() {
        Some(fields) => fields.iter().any(|(_, value)| has_values(value)),
        None => !node.is_null(),
    }
}

/// Whether the raw JSON of an object certainly has a number. It may be false for one that has one.
pub(crate) fn has_number(raw: &str) -> bool {
    let is_number = |value: &[u8]| matches!(value.trim_ascii_start(), [b'-' | b'0'..=b'9', ..]);
    // Nearly always the first field is one.
    let first = || {
        let rest = raw
            .strip_prefix('{')?
            .trim_ascii_start()
            .strip_prefix('"')?;
        let (name, rest) = rest.split_once('"')?;
        let value = rest.trim_ascii_start().strip_prefix(':')?;
        Some(!name.contains('\\') && is_number(value.as_bytes()))
    };
    // Without an escape, a quote before a colon ends a key.
    let any = || {
        let bytes = raw.as_bytes();
        let mut colons = memchr::memchr_iter(b':', bytes).filter_map(|at| {
            let (before, after) = bytes.split_at_checked(at)?;
            before.ends_with(b"\"").then(|| after.get(1..)).flatten()
        });
        !raw.contains('\\') && colons.any(is_number)
    };
    // The search covers the first field as well, but not in an object with escapes.
    first() == Some(true) || any()
}

#[derive(Debug, Default)]
pub(crate) struct Chunk<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) created: Option<u64>,
    /// The offset at which `created` ends, if the scan read it.
    pub(crate) created_end: Option<usize>,
    pub(crate) model: Option<Cow<'a, str>>,
    /// The field `object`, which only serves to recognize the format of a value without choices (E19).
    pub(crate) object: Option<Cow<'a, str>>,
    pub(crate) has_choices: bool,
    pub(crate) elements: Vec<Element<'a>>,
    pub(crate) usage: Option<Cow<'a, str>>,
    /// Usage inside of an unknown field, until all fields are read (U6).
    pub(crate) inner_usage: Option<Cow<'a, str>>,
    pub(crate) error: Option<Cow<'a, str>>,
    pub(crate) extra: Pairs<'a>,
    /// Whether padding was dropped from the envelope.
    pub(crate) has_padding: bool,
    /// Whether the padding `p` was dropped from it (E24).
    pub(crate) has_alphabet: bool,
    /// The strings with escapes, if the scan read the chunk.
    pub(crate) escapes: Escapes,
    pub(crate) warnings: Vec<Warning>,
    /// The format of the value, if it has no choice.
    pub(crate) format: Option<BodyFormat>,
}

/// The strings of a chunk that the scan has copied, because they have escapes. Raw values are not among them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Escapes {
    pub(crate) count: usize,
    /// The inside of the last one's quotes.
    pub(crate) last: (usize, usize),
    /// Whether content in parts was read, which may be copied without an escape.
    pub(crate) may_join: bool,
}

/// One entry of `choices`.
#[derive(Debug, Default)]
pub(crate) struct Element<'a> {
    pub(crate) index: Option<u32>,
    /// The offset at which the index ends, if the scan read it.
    pub(crate) index_end: Option<usize>,
    pub(crate) update: Update<'a>,
    /// Unknown fields of the delta. Unknown fields of the choice are in the update (C20).
    pub(crate) fields: Pairs<'a>,
    /// Whether padding was dropped from the choice or from its delta.
    pub(crate) has_padding: bool,
    /// Whether the strict decoder has read a `delta`.
    pub(crate) has_delta: bool,
    /// Whether it has also read a `text`.
    pub(crate) has_text: bool,
    /// That text, if the delta's content counts in its place (C19).
    pub(crate) unused_text: Option<Fragment<'a>>,
    /// The raw JSON of a `message`.
    pub(crate) message: Option<Cow<'a, str>>,
    /// Whether a value that should be text had another type, and was kept as raw JSON.
    pub(crate) has_unexpected_type: bool,
    /// Where the update's reasoning is from.
    pub(crate) reasoning_origin: Option<ReasoningOrigin>,
    /// Whether half a surrogate pair between two parts of a text was replaced (C14).
    pub(crate) replaced_half: bool,
}

/// Where one delta's reasoning is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningOrigin {
    /// The reasoning field whose name has this rank.
    Field(usize),
    /// Parts of the content (C11).
    ContentParts,
    /// `reasoning_details` alone (R4).
    Details,
}

/// The buffer of a list that is no longer needed, for the next list.
pub(crate) fn recycled<'b>(mut pairs: Pairs<'_>) -> Pairs<'b> {
    /// A larger buffer is not worth its memory.
    const MAX_CAPACITY: usize = 32;
    pairs.clear();
    pairs.shrink_to(MAX_CAPACITY);
    // No pair is left to convert, and `collect` keeps the buffer of a list of equal type.
    let none = pairs
        .into_iter()
        .map(|_| (Cow::Borrowed(""), Cow::Borrowed("")));
    none.collect()
}

/// The same for the entries of a chunk.
pub(crate) fn recycled_elements<'b>(mut elements: Vec<Element<'_>>) -> Vec<Element<'b>> {
    const MAX_CAPACITY: usize = 1;
    elements.clear();
    elements.shrink_to(MAX_CAPACITY);
    elements.into_iter().map(|_| Element::default()).collect()
}

/// Sets a field. Its last value replaces an earlier one, at the position of the first (E26).
pub(crate) fn put_field<'a>(pairs: &mut Pairs<'a>, key: Cow<'a, str>, raw: Cow<'a, str>) {
    let is_full = pairs.len() >= MAX_FIELDS;
    match pairs.iter_mut().find(|(known, _)| *known == key) {
        Some((_, value)) => *value = raw,
        None if is_full => {}
        None => pairs.push((key, raw)),
    }
}

/// Whether a field is padding against traffic analysis, which is dropped (E24).
pub(crate) fn is_padding(key: &str) -> bool {
    matches!(key, "obfuscation" | "nonce")
}

/// Whether the raw value of a field `p` of the envelope is padding, too: Mistral sends the start of an alphabet (E24).
pub(crate) fn is_padding_of_p(raw: &str) -> bool {
    let inside = raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"'));
    inside.is_some_and(|inside| is_start_of_alphabet(inside.as_bytes()))
}

/// Whether a text is the start of an alphabet with its digits.
#[inline]
pub(crate) fn is_start_of_alphabet(text: &[u8]) -> bool {
    const ALPHABETS: [&[u8]; 2] = [
        b"abcdefghijklmnopqrstuvwxyz0123456789",
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
    ];
    ALPHABETS.iter().any(|alphabet| alphabet.starts_with(text))
}

/// Whether log probabilities hold a token. Empty lists count as absent (M7), and the last of equal keys counts (E26).
pub(crate) fn has_tokens(raw: &str) -> bool {
    serde_json::from_str::<LogprobLists>(raw).is_ok_and(|lists| lists.filled.contains(&true))
}

/// The names of the lists of log probabilities, in chats (those of reasoning are from DeepSeek) and in text completions.
pub(crate) const LOGPROB_LISTS: [&str; 5] = [
    "content",
    "refusal",
    "tokens",
    "reasoning_content",
    "reasoning",
];

/// Whether a raw value is a list that is not empty, or an object with positions as keys in its place (E22).
pub(crate) fn is_filled_list(raw: &str) -> bool {
    if let Some(inside) = raw.strip_prefix('[') {
        return !inside.trim_start().starts_with(']');
    }
    let inside = raw.strip_prefix('{').unwrap_or_default();
    let key = inside.trim_start().strip_prefix('"');
    key.is_some_and(|key| key.starts_with(|first: char| first.is_ascii_digit()))
}

/// Which of the [`LOGPROB_LISTS`] hold a token.
struct LogprobLists {
    filled: [bool; LOGPROB_LISTS.len()],
}

impl<'a> Deserialize<'a> for LogprobLists {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct LogprobListsVisitor;
        impl<'a> Visitor<'a> for LogprobListsVisitor {
            type Value = LogprobLists;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<LogprobLists, M::Error> {
                let mut filled = [false; LOGPROB_LISTS.len()];
                while let Some((key, raw)) = map.next_entry::<Cow<'a, str>, &'a RawValue>()? {
                    let list = LOGPROB_LISTS.iter().position(|name| *name == key);
                    if let Some(filled) = list.and_then(|list| filled.get_mut(list)) {
                        *filled = is_filled_list(raw.get());
                    }
                }
                Ok(LogprobLists { filled })
            }
        }
        deserializer.deserialize_map(LogprobListsVisitor)
    }
}

pub(crate) fn non_empty(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
}

/// The finish reason of a string. DashScope writes `"null"` into each chunk before the last one (F1), and servers that print a
/// value of Python write `"None"`.
pub(crate) fn some_reason(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !matches!(&**text, "" | "null" | "None"))
}

pub(crate) fn some_text(fragment: Option<Fragment<'_>>) -> Option<Fragment<'_>> {
    fragment.filter(|fragment| !fragment.is_empty())
}

/// Whether a field of what is called would take the place of a field of the call, if it was kept there.
pub(crate) fn is_call_field(key: &str) -> bool {
    matches!(key, "id" | "index" | "type" | "function" | "custom")
}

/// Gives several calls without an index their position in the chunk, which distinguishes them (T3).
pub(crate) fn number_calls(calls: &mut [ToolCallUpdate<'_>]) {
    if calls
        .iter()
        .filter(|call| call.wire_index.is_none())
        .count()
        < 2
    {
        return;
    }
    for (position, call) in calls.iter_mut().enumerate() {
        if call.wire_index.is_none() {
            call.position = u32::try_from(position).ok();
        }
    }
}

impl<'a> Element<'a> {
    /// The update, with the delta's unknown fields before the choice's.
    pub(crate) fn into_update(mut self) -> Update<'a> {
        self.merge_fields();
        self.update
    }

    /// Moves the delta's unknown fields to the update, before the choice's.
    pub(crate) fn merge_fields(&mut self) {
        if self.fields.is_empty() {
            return;
        }
        self.update.delta_field_count = self.fields.len();
        self.fields.append(&mut self.update.metadata);
        self.update.metadata = std::mem::take(&mut self.fields);
    }
}

impl<'a> Chunk<'a> {
    /// Whether the chunk is one of a text completion.
    pub(crate) fn is_text(&self) -> bool {
        let is_text = |element: &Element<'_>| element.update.kind == CompletionKind::Text;
        self.object.as_deref() == Some(TEXT_COMPLETION) || self.elements.iter().any(is_text)
    }

    /// Gives each entry its choice index. A missing one is 0, or the position if the chunk has several entries (E8,
    /// E9). A choice keeps one warning of that, and a chunk with a warning matches no template. So the only choice of a chunk is
    /// warned about once in a stream: `was_warned` is whether it was, and is set here.
    pub(crate) fn assign_indices(&mut self, event_index: u64, was_warned: &mut bool) {
        let several = self.elements.len() > 1;
        for (position, element) in self.elements.iter_mut().enumerate() {
            let index = element.index.unwrap_or_else(|| {
                if several {
                    u32::try_from(position).unwrap_or(u32::MAX)
                } else {
                    0
                }
            });
            element.update.choice = Some(ChoiceIndex(index));
            if element.index.is_none() && (several || !std::mem::replace(was_warned, true)) {
                let warning = Warning::new("E8", event_index, "the choice index is missing");
                element.update.warnings.push(warning);
            }
            for warning in &mut element.update.warnings {
                warning.choice = Some(ChoiceIndex(index));
            }
        }
    }
}
