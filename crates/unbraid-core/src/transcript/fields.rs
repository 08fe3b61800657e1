//! Unknown fields: those of the choice, and those of its deltas, which belong to the message (C20, E24).

use std::{borrow::Cow, ops::Deref, sync::Arc};

use super::{
    Kind, Transcript,
    objects::{Value, is_void, raw_pairs, write_object},
};
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

    /// All fields of a level: lists concatenated, objects merged, of others the last value.
    pub(crate) fn fields(&self, level: Level) -> Vec<Field> {
        let mut fields: Vec<(Cow<'_, str>, Value<'_>)> = Vec::new();
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
                Some((_, Value::Raw(known))) if level.grows(&key) => add_entries(known, raw),
                Some((_, value)) => value.replace(raw),
                None => fields.push((key, Value::new(raw))),
            }
        }
        let shared = |(key, value): (Cow<'_, str>, Value<'_>)| {
            (Arc::from(key), Arc::from(value.into_json()))
        };
        fields.into_iter().map(shared).collect()
    }
}

/// What is kept of an entry in place of a list begins with this mark, with which no other value begins that is kept.
const ENTRY: char = '[';

/// Whether a value in place of a list has no content.
fn is_blank(raw: &str) -> bool {
    matches!(raw, "0" | "false") || (is_void(raw) && !raw.starts_with('['))
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

/// Adds the entries of a later value to a list. Of single entries in place of lists the last one counts: they are not parts of one
/// object.
fn add_entries<'a>(list: &mut Cow<'a, str>, later: &'a str) {
    if later.starts_with('[') {
        append(list.to_mut(), later);
    } else if list.starts_with('[') {
        append(list.to_mut(), &format!("[{later}]"));
    } else {
        *list = later.into();
    }
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
