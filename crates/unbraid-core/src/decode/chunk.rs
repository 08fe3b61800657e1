//! One chunk between its JSON and its updates: both decoders fill it, one place turns it into updates.

use std::{borrow::Cow, fmt};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::{
    BodyFormat, ChoiceIndex, Fragment, ToolCallUpdate, Update, Warning, limits::MAX_FIELDS,
};

pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// The list of a message's parts that are neither text nor reasoning (C11); no server's own field has the name.
pub(crate) const CONTENT_PARTS: &str = "content_parts";

#[derive(Debug, Default)]
pub(crate) struct Chunk<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) created: Option<u64>,
    pub(crate) model: Option<Cow<'a, str>>,
    /// The wire's `object`, which only serves to recognise a value without choices (E19).
    pub(crate) object: Option<Cow<'a, str>>,
    pub(crate) has_choices: bool,
    pub(crate) elements: Vec<Element<'a>>,
    pub(crate) usage: Option<Cow<'a, str>>,
    pub(crate) error: Option<Cow<'a, str>>,
    pub(crate) extra: Pairs<'a>,
    pub(crate) warnings: Vec<Warning>,
    /// What the value appears to be, where it brings no choice.
    pub(crate) format: Option<BodyFormat>,
}

/// One entry of `choices`.
#[derive(Debug, Default)]
pub(crate) struct Element<'a> {
    pub(crate) index: Option<u32>,
    /// Where the scanner saw the index end.
    pub(crate) index_end: Option<usize>,
    pub(crate) update: Update<'a>,
    /// Other fields of the delta; those of the choice are in the update (C20).
    pub(crate) fields: Pairs<'a>,
    /// The strict decoder has read a `delta`.
    pub(crate) has_delta: bool,
    /// It has read a `text`, or a `message`, too.
    pub(crate) has_text: bool,
    pub(crate) has_message: bool,
    /// Something stood where text belongs, and was kept as it came.
    pub(crate) odd: bool,
    /// The text came from `reasoning_details` alone (R4).
    pub(crate) details_only: bool,
    /// Half a character was replaced between two parts of a text (C14).
    pub(crate) lost_half: bool,
}

/// The last value of a key stays, at the place of the first (E26).
pub(crate) fn put<'a>(pairs: &mut Pairs<'a>, key: Cow<'a, str>, raw: Cow<'a, str>) {
    let full = pairs.len() >= MAX_FIELDS;
    match pairs.iter_mut().find(|(known, _)| *known == key) {
        Some((_, value)) => *value = raw,
        None if full => {}
        None => pairs.push((key, raw)),
    }
}

/// Padding against traffic analysis: it means nothing (E24).
pub(crate) fn is_padding(key: &str) -> bool {
    matches!(key, "obfuscation" | "nonce")
}

/// Whether log probabilities hold any token: empty lists are none (M7), and of equal keys the last one counts (E26).
pub(crate) fn has_tokens(raw: &str) -> bool {
    serde_json::from_str::<Lists>(raw).is_ok_and(|lists| lists.filled.contains(&true))
}

/// The names of the lists that log probabilities consist of, in chats and in text completions.
pub(crate) const LOGPROB_LISTS: [&str; 3] = ["content", "refusal", "tokens"];

/// Whether a raw value is a list that is not empty.
pub(crate) fn is_filled_list(raw: &str) -> bool {
    let inside = raw.strip_prefix('[');
    inside.is_some_and(|inside| !inside.trim_start().starts_with(']'))
}

/// Which of the [`LOGPROB_LISTS`] hold anything.
struct Lists {
    filled: [bool; LOGPROB_LISTS.len()],
}

impl<'a> Deserialize<'a> for Lists {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListsVisitor;
        impl<'a> Visitor<'a> for ListsVisitor {
            type Value = Lists;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Lists, M::Error> {
                let mut filled = [false; LOGPROB_LISTS.len()];
                while let Some((key, raw)) = map.next_entry::<Cow<'a, str>, &'a RawValue>()? {
                    let at = LOGPROB_LISTS.iter().position(|name| *name == key);
                    if let Some(filled) = at.and_then(|at| filled.get_mut(at)) {
                        *filled = is_filled_list(raw.get());
                    }
                }
                Ok(Lists { filled })
            }
        }
        deserializer.deserialize_map(ListsVisitor)
    }
}

/// Whether raw JSON holds what `serde_json` takes for syntax but not for a value: half a surrogate pair, or its own
/// private name. It may say yes for a whole pair: reading it field by field is only slower. A number of any size is
/// not doubtful: raw JSON has room for it.
pub(crate) fn is_doubtful(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let surrogate = || {
        memchr::memmem::find_iter(bytes, b"\\u")
            .any(|at| matches!(bytes.get(at + 2), Some(b'd' | b'D')))
    };
    // The name begins with a dollar, which may stand there as an escape.
    let private = || {
        let has = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
        has("\"$serde_json") || has("\"\\u0024")
    };
    surrogate() || private()
}

/// Whether raw JSON may hold a number beyond the largest `f64`. It may say yes for a large exponent that is in range.
pub(crate) fn may_overflow(raw: &str) -> bool {
    const LONGEST: usize = 300; // digits: `f64` ends at 1e308
    let bytes = raw.as_bytes();
    let exponent = || {
        memchr::memchr2_iter(b'e', b'E', bytes).any(|at| {
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            let behind = bytes.get(at + 1..).unwrap_or_default();
            let digits = behind.strip_prefix(b"+").unwrap_or(behind);
            before.is_some_and(u8::is_ascii_digit)
                && digits.iter().take(3).filter(|b| b.is_ascii_digit()).count() == 3
        })
    };
    let long = || {
        bytes.len() > LONGEST
            && bytes
                .split(|b| !b.is_ascii_digit())
                .any(|run| run.len() > LONGEST)
    };
    exponent() || long()
}

pub(crate) fn non_empty(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
}

pub(crate) fn some_text(fragment: Option<Fragment<'_>>) -> Option<Fragment<'_>> {
    fragment.filter(|fragment| !fragment.is_empty())
}

/// T3: several entries without index in one chunk are told apart by position.
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
    /// The update, with the delta's other fields before the choice's.
    pub(crate) fn into_update(mut self) -> Update<'a> {
        self.settle();
        self.update
    }

    /// Where in the scanned text the index stands.
    pub(crate) fn index_place(&self, text: &str) -> Option<(usize, usize)> {
        let (index, end) = (self.index?, self.index_end?);
        let digits = index.checked_ilog10().unwrap_or(0) as usize + 1;
        let start = end.checked_sub(digits)?;
        (text.get(start..end)?.parse() == Ok(index)).then_some((start, end))
    }

    /// Gives the delta's other fields to the update, before the choice's.
    pub(crate) fn settle(&mut self) {
        if self.fields.is_empty() {
            return;
        }
        self.update.delta_field_count = self.fields.len();
        self.fields.append(&mut self.update.metadata);
        self.update.metadata = std::mem::take(&mut self.fields);
    }
}

impl<'a> Chunk<'a> {
    /// Gives each entry its index: what is missing is 0, or the position among several (E8, E9).
    pub(crate) fn place(&mut self, at: u64) {
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
            if element.index.is_none() {
                let warning = Warning::new("E8", at, "the choice index is missing");
                element.update.warnings.push(warning);
            }
            for warning in &mut element.update.warnings {
                warning.choice = Some(ChoiceIndex(index));
            }
        }
    }
}
