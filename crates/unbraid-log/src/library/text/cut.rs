//! A chunk without the entries of some choices. Everything else of it keeps its own text, digit by digit.

use std::borrow::Cow;

use serde_json::value::RawValue;
use unbraid_core::{ChoiceIndex, limits::MAX_ENTRIES};

use crate::fields::Fields;

/// A chunk without the entries of these choices; `None` if no entry is left.
///
/// What is not one JSON object with a list of choices stays whole: a chunk with damaged numbers, several chunks in one event,
/// or one of a provider that has no such list. So does a list whose entries are known by their position only. Dropping it would
/// take from the other choices what it brings for them, and readers drop by themselves what still arrives for a cancelled choice.
pub(super) fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>> {
    let Some(cut) = cut(payload, dropped) else {
        return Some(payload.to_vec());
    };
    cut.has_entry.then(|| cut.text.into_bytes())
}

struct Cut {
    text: String,
    has_entry: bool,
}

/// Cuts a chunk; `None` if it has no list of choices that can be read.
fn cut(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Cut> {
    let fields: Fields<'_> = serde_json::from_slice(payload).ok()?;
    let mut written = Vec::with_capacity(fields.0.len());
    let (mut has_list, mut has_entry) = (false, false);
    for (key, raw) in fields.0 {
        let mut value = Cow::Borrowed(raw.get());
        if key == "choices" {
            let entries = kept_entries(raw, dropped)?;
            (has_list, has_entry) = (true, has_entry || !entries.is_empty());
            value = Cow::Owned(format!("[{}]", entries.join(",")));
        }
        written.push(format!("{}:{value}", serde_json::to_string(&key).ok()?));
    }
    has_list.then(|| Cut {
        text: format!("{{{}}}", written.join(",")),
        has_entry,
    })
}

/// The entries of a list that are not of these choices.
fn kept_entries<'a>(list: &'a RawValue, dropped: &[ChoiceIndex]) -> Option<Vec<&'a str>> {
    let entries: Vec<&'a RawValue> = serde_json::from_str(list.get()).ok()?;
    // As in the core, which reads no further ones.
    let entries = entries.into_iter().take(MAX_ENTRIES);
    let entries: Vec<_> = entries.map(|entry| (entry, Index::of(entry))).collect();
    let is_valid = |index: &Index| !matches!(index, Index::Invalid);
    let count = entries.iter().filter(|(_, index)| is_valid(index)).count();
    if count > 1
        && entries
            .iter()
            .any(|(_, index)| matches!(index, Index::Missing))
    {
        return None; // without its neighbours such an entry would be that of another choice (E8)
    }
    let is_kept = |index: &Index| match index {
        Index::Number(number) => !dropped.contains(&ChoiceIndex(*number)),
        Index::Missing => !dropped.contains(&ChoiceIndex(0)),
        Index::Invalid => true,
    };
    let kept = entries.iter().filter(|(_, index)| is_kept(index));
    Some(kept.map(|(entry, _)| entry.get()).collect())
}

/// The index of an entry, read as the core reads it (E8 to E11).
enum Index {
    Number(u32),
    Missing,
    Invalid,
}

impl Index {
    fn of(entry: &RawValue) -> Self {
        let Ok(fields) = serde_json::from_str::<Fields<'_>>(entry.get()) else {
            return Self::Invalid;
        };
        let last = fields.0.iter().rfind(|(key, _)| key == "index");
        let Some(raw) = last.map(|(_, raw)| raw.get()) else {
            return Self::Missing;
        };
        let text = serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned());
        match text.trim() {
            "" | "null" => Self::Missing,
            number => number.parse().map_or(Self::Invalid, Self::Number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(payload: &str, dropped: u32, expected: Option<&str>) {
        let kept = without_choices(payload.as_bytes(), &[ChoiceIndex(dropped)]);
        let kept = kept.map(|kept| String::from_utf8(kept).unwrap());
        assert_eq!(kept.as_deref(), expected, "{payload}");
    }

    #[test]
    fn entries_of_dropped_choices_are_removed_and_the_rest_keeps_its_text() {
        check(
            r#"{"z":1,"choices":[{"index":1,"x":1.10},{"index":0}],"a":12345678901234567890123}"#,
            0,
            Some(r#"{"z":1,"choices":[{"index":1,"x":1.10}],"a":12345678901234567890123}"#),
        );
        check(
            r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"}},{"index":1}]}"#,
            1,
            Some(r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}"#),
        );
        check(r#"{"choices":[{"index":1}]}"#, 1, None);
    }

    #[test]
    fn e8_e10_e11_an_index_is_read_as_by_the_core() {
        check(
            r#"{"choices":[{"index":"0"},{"index":"1"}]}"#,
            1,
            Some(r#"{"choices":[{"index":"0"}]}"#),
        );
        check(
            r#"{"choices":[{"index":-1},{"a":0}]}"#,
            0,
            Some(r#"{"choices":[{"index":-1}]}"#),
        );
        check(r#"{"choices":[{"a":0}]}"#, 0, None);
    }

    #[test]
    fn a_chunk_that_cannot_be_cut_stays_as_it_is() {
        for payload in [
            "{",
            r#"{"candidates":[{"index":0},{"index":1}]}"#,
            r#"{"choices":[{"index":0,"logprob":NaN},{"index":1}]}"#,
            r#"{"choices":[{"index":0}]}{"choices":[{"index":1}]}"#,
            r#"{"choices":{"index":0}}"#,
            r#"{"choices":[{"a":0},{"index":null}]}"#,
        ] {
            check(payload, 1, Some(payload));
        }
    }
}
