//! One chunk between its JSON and its updates: both decoders fill it, one place turns it into updates.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::{ChoiceIndex, Fragment, ToolCallUpdate, Update, Warning, limits::MAX_FIELDS};

pub(crate) type Pairs<'a> = Vec<(Cow<'a, str>, Cow<'a, str>)>;

/// Names of reasoning text, the first non-empty one of a delta counts (R3, R5).
pub(crate) const REASONING: [&str; 5] = [
    "reasoning_content",
    "reasoning",
    "thinking",
    "thinking_content",
    "thought",
];

/// The list of a message's parts that are neither text nor reasoning (C11); no server's own field has the name.
pub(crate) const CONTENT_PARTS: &str = "content_parts";

#[derive(Debug, Default)]
pub(crate) struct Chunk<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) created: Option<u64>,
    pub(crate) model: Option<Cow<'a, str>>,
    pub(crate) has_choices: bool,
    pub(crate) elements: Vec<Element<'a>>,
    pub(crate) usage: Option<Cow<'a, str>>,
    pub(crate) error: Option<Cow<'a, str>>,
    pub(crate) extra: Pairs<'a>,
    pub(crate) warnings: Vec<Warning>,
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

/// Whether log probabilities hold any token: empty lists are none (M7).
pub(crate) fn has_tokens(raw: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Lists<'a> {
        #[serde(borrow)]
        content: Option<&'a RawValue>,
        #[serde(borrow)]
        refusal: Option<&'a RawValue>,
        #[serde(borrow)]
        tokens: Option<&'a RawValue>,
    }
    let some = |list: Option<&RawValue>| {
        let inner = list.and_then(|list| list.get().strip_prefix('['));
        inner.is_some_and(|inner| !inner.trim_start().starts_with(']'))
    };
    serde_json::from_str(raw).is_ok_and(|lists: Lists<'_>| {
        some(lists.content) || some(lists.refusal) || some(lists.tokens)
    })
}

/// Whether raw JSON holds what `serde_json` takes for syntax but not for a value: half a surrogate pair, a number out of
/// range, its own private name. It may say yes for a whole pair, and for a large exponent: the closer look is only slower.
pub(crate) fn is_doubtful(raw: &str) -> bool {
    let bytes = raw.as_bytes();
    let surrogate = || {
        memchr::memmem::find_iter(bytes, b"\\u")
            .any(|at| matches!(bytes.get(at + 2), Some(b'd' | b'D')))
    };
    let exponent = || {
        memchr::memchr2_iter(b'e', b'E', bytes).any(|at| {
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            let behind = bytes.get(at + 1..).unwrap_or_default();
            let digits = behind.strip_prefix(b"+").unwrap_or(behind);
            before.is_some_and(u8::is_ascii_digit)
                && digits.iter().take(3).filter(|b| b.is_ascii_digit()).count() == 3
        })
    };
    const LONGEST: usize = 300; // digits: `f64` ends at 1e308
    let long = || {
        bytes.len() > LONGEST
            && bytes
                .split(|b| !b.is_ascii_digit())
                .any(|run| run.len() > LONGEST)
    };
    // The name begins with a dollar, which may stand there as an escape.
    let private = || {
        let has = |needle: &str| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
        has("\"$serde_json") || has("\"\\u0024")
    };
    surrogate() || exponent() || long() || private()
}

pub(crate) fn non_empty(text: Option<Cow<'_, str>>) -> Option<Cow<'_, str>> {
    text.filter(|text| !text.is_empty())
}

pub(crate) fn some_text(fragment: Option<Fragment<'_>>) -> Option<Fragment<'_>> {
    fragment.filter(|fragment| !fragment.is_empty())
}

/// T3: several entries without index in one chunk are told apart by position.
pub(crate) fn number_calls(calls: &mut [ToolCallUpdate<'_>]) {
    if calls.iter().filter(|call| call.index.is_none()).count() < 2 {
        return;
    }
    for (position, call) in calls.iter_mut().enumerate() {
        if call.index.is_none() {
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
        self.update.delta_fields = self.fields.len();
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
            element.update.choice_index = Some(ChoiceIndex(index));
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
