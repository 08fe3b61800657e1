//! Unknown fields: those of the choice, and those of its deltas, which belong to the message (C20, E24).

use std::{borrow::Cow, fmt, ops::Deref, sync::Arc};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Kind, Transcript};
use crate::{chunk::CONTENT_PARTS, event::Position, json_text::list_items, limits::MAX_FIELDS};

/// A field's name and its raw JSON.
pub(crate) type Field = (Arc<str>, Arc<str>);

/// Where a field is, in the stream and in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Choice,
    Message,
}

impl Level {
    /// Whether each delta contains the next entries of a list (C20, M12, M14, R4). Of every other field the last value
    /// counts.
    fn is_list(self, key: &str, raw: &str) -> bool {
        raw.starts_with('[') && self.grows(key)
    }

    fn grows(self, key: &str) -> bool {
        match self {
            Self::Choice => key == "token_ids",
            Self::Message => {
                matches!(
                    key,
                    "annotations"
                        | "executed_tools"
                        | "images"
                        | "reasoning_details"
                        | "thinking_blocks"
                        | CONTENT_PARTS
                )
            }
        }
    }
}

impl Transcript {
    /// Records a field of a delta or of its choice; true if it changed. `repeats` says that a full message contains the field,
    /// so that a known list does not change (E21).
    pub(crate) fn set_extra(&mut self, level: Level, key: &str, raw: &str, repeats: bool) -> bool {
        let is_list = level.is_list(key, raw);
        let keeps = |known: &str| is_void(raw) && !is_void(known);
        let repeats_list = is_list && (repeats || list_items(raw).is_empty());
        match level {
            Level::Choice => {
                let replaces =
                    |known: &str| !repeats_list && !keeps(known) && (is_list || *known != *raw);
                set_field(&mut self.extra, key, raw, replaces, |value| {
                    *value = raw.into();
                })
            }
            Level::Message => {
                // A delta's list is kept only in its event: images are large. An entry in place of a list is kept with a
                // mark, so that it counts once if it is repeated.
                let is_entry = !is_list && self.has_list(key);
                let kept: Cow<'_, str> = match (is_list, is_entry) {
                    (true, _) => "".into(),
                    (_, true) => format!("{ENTRY}{raw}").into(),
                    _ => raw.into(),
                };
                let is_repeated = repeats_list || (repeats && is_entry);
                let replaces =
                    |known: &str| !is_repeated && !keeps(known) && (is_list || *known != *kept);
                set_field(&mut self.delta_extra, key, &kept, replaces, |value| {
                    (*kept).clone_into(value);
                })
            }
        }
    }

    /// Whether a value without content of a delta follows a list that has arrived, which it does not replace (C20).
    pub(crate) fn is_blank_after_list(&self, key: &str, raw: &str) -> bool {
        is_blank(raw) && self.has_list(key)
    }

    /// Whether a list of this name has arrived in the deltas.
    fn has_list(&self, key: &str) -> bool {
        let mut fields = self.delta_extra.iter();
        Level::Message.grows(key)
            && fields.any(|(known, kept)| {
                **known == *key && (kept.is_empty() || kept.starts_with(ENTRY))
            })
    }

    /// Emits the fields that changed, those of the delta first. The record's number counts those.
    pub(crate) fn push_fields<K: AsRef<str>>(
        &mut self,
        fields: &[(K, K)],
        of_delta: u32,
        position: Position,
    ) {
        const MARKS: usize = r#"{"":,"#.len();
        if fields.is_empty() {
            return;
        }
        let lengths = fields
            .iter()
            .map(|(k, v)| k.as_ref().len() + v.as_ref().len());
        let length = lengths.map(|length| length + MARKS).sum();
        if self.discarded {
            let mut object = String::with_capacity(length);
            write_object(&mut object, fields);
            return self.push(Kind::Metadata, position, of_delta, &object);
        }
        // Written directly to the transcript's text: one field may be as long as an event.
        self.text.reserve(length);
        write_object(&mut self.text, fields);
        self.push(Kind::Metadata, position, of_delta, "");
    }

    /// How many of the fields of event `seq`, from the first, were inside the delta.
    pub(crate) fn delta_field_count(&self, seq: usize) -> usize {
        let record = self.records.get(seq);
        record
            .filter(|record| record.kind == Kind::Metadata)
            .map_or(0, |record| record.number as usize)
    }

    /// All fields of a level: lists concatenated, of others the last value.
    pub(crate) fn fields(&self, level: Level) -> Vec<Field> {
        let mut fields: Vec<(Cow<'_, str>, String)> = Vec::new();
        let records = self.records.iter().enumerate();
        let records = records.filter(|(_, record)| record.kind == Kind::Metadata);
        for (key, raw) in records.flat_map(|(seq, record)| {
            let (mut delta, of_delta) = (raw_pairs(self.text_of(seq)), record.number as usize);
            let choice = delta.split_off(of_delta.min(delta.len()));
            match level {
                Level::Choice => choice,
                Level::Message => delta,
            }
        }) {
            match fields.iter_mut().find(|(known, _)| *known == key) {
                Some((_, value)) if level.is_list(&key, raw) => append(value, raw),
                // One entry in place of a list.
                Some((_, value)) if level.is_list(&key, value) => {
                    append(value, &format!("[{raw}]"))
                }
                Some((_, value)) => raw.clone_into(value),
                None => fields.push((key, raw.to_owned())),
            }
        }
        let shared = |(key, raw): (Cow<'_, str>, String)| (Arc::from(key), Arc::from(raw));
        fields.into_iter().map(shared).collect()
    }
}

/// What is kept of an entry in place of a list begins with this mark, with which no other value begins that is kept.
const ENTRY: char = '[';

/// Whether a value in place of a list has no content.
fn is_blank(raw: &str) -> bool {
    matches!(raw, "0" | "false") || (is_void(raw) && !raw.starts_with('['))
}

/// Whether a value holds nothing: an empty string, list or object. In place of an absent field, servers send one after the value
/// (E24).
pub(crate) fn is_void(raw: &str) -> bool {
    let inner = |open, close| raw.strip_prefix(open)?.strip_suffix(close);
    let inner = inner('{', '}').or_else(|| inner('[', ']'));
    raw == "\"\"" || inner.is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// Adds a field, or replaces its value if that is to be replaced; true if it did either.
fn set_field<K, V>(
    fields: &mut Vec<(K, V)>,
    key: &str,
    raw: &str,
    replaces: impl Fn(&str) -> bool,
    replace: impl FnOnce(&mut V),
) -> bool
where
    K: Deref<Target = str> + for<'k> From<&'k str>,
    V: Deref<Target = str> + for<'v> From<&'v str>,
{
    let is_full = fields.len() >= MAX_FIELDS;
    match fields.iter_mut().find(|(known, _)| **known == *key) {
        Some((_, value)) if !replaces(value) => false,
        Some((_, value)) => {
            replace(value);
            true
        }
        None if is_full => false,
        None => {
            fields.push((key.into(), raw.into()));
            true
        }
    }
}

/// Appends the fields as one JSON object.
fn write_object<K: AsRef<str>>(object: &mut String, fields: &[(K, K)]) {
    for (at, (key, raw)) in fields.iter().enumerate() {
        object.push(if at == 0 { '{' } else { ',' });
        push_quoted(object, key.as_ref());
        object.push(':');
        object.push_str(raw.as_ref());
    }
    object.push('}');
}

/// Writes a name as a JSON string; hardly any needs an escape.
fn push_quoted(object: &mut String, name: &str) {
    // Without an early exit, the compiler vectorizes this loop.
    let is_special = |byte| matches!(byte, 0..=0x1F | b'"' | b'\\');
    if name.bytes().fold(false, |any, byte| any | is_special(byte)) {
        object.push_str(&serde_json::Value::from(name).to_string());
        return;
    }
    object.push('"');
    object.push_str(name);
    object.push('"');
}

/// Adds the entries of a list to another one, or to one entry in its place.
fn append(list: &mut String, more: &str) {
    if !list.starts_with('[') && !is_blank(list) {
        *list = format!("[{list}]");
    }
    if list_items(list).is_empty() || !list.ends_with(']') {
        more.clone_into(list);
        return;
    }
    list.pop();
    list.push(',');
    list.push_str(list_items(more));
    list.push(']');
}

/// The fields of an object, with their raw values; none for text that is not an object.
pub(crate) fn raw_pairs(object: &str) -> Vec<(Cow<'_, str>, &str)> {
    serde_json::from_str::<Pairs<'_>>(object).map_or_else(|_| Vec::new(), |pairs| pairs.0)
}

struct Pairs<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Deserialize<'a> for Pairs<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'a> Visitor<'a> for PairsVisitor {
            type Value = Pairs<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<M: MapAccess<'a>>(self, mut map: M) -> Result<Pairs<'a>, M::Error> {
                let mut pairs = Vec::new();
                while let Some((key, raw)) = map.next_entry::<Cow<'a, str>, &'a RawValue>()? {
                    pairs.push((key, raw.get()));
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}
