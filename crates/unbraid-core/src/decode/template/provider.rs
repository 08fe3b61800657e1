//! Templates of the events of other dialects than chat.
//!
//! The dialect names the parts of an event that may differ in the next one, and what the event continues
//! ([`Continuation`]). Everything else is as in the templates of chunks.

use std::borrow::Cow;

use super::{
    Prototype, Template,
    site::{Site, Slot, span_in},
};
use crate::{
    Fragment, Update,
    decode::json_bytes::integer,
    dialect::{Continuation, Place},
    limits::MAX_NAME_BYTES,
    node::{Node, Value, compact},
};

/// What a dialect says of its events.
#[derive(Debug)]
pub(in crate::decode) struct Provided {
    /// What an event continues.
    pub(in crate::decode) place: Place,
    /// The name that each event has.
    pub(in crate::decode) name: Option<Box<[u8]>>,
    /// Whether the usage follows in an update without an id, although that of the event is not the stream's own.
    pub(super) resets_id: bool,
    /// The choice, if it is not in a hole.
    pub(super) choice: Option<u32>,
    /// The parts of the usage before each number in it: how long they are, and their text without white space.
    usage: Box<[(usize, Box<str>)]>,
}

/// What the template of a dialect's event is built from.
pub(in crate::decode) struct Event<'e, 'n, 'a> {
    pub(in crate::decode) text: &'a str,
    pub(in crate::decode) name: Option<&'e [u8]>,
    pub(in crate::decode) continuation: Continuation<'n, 'a>,
    /// The updates that the dialect has made of the event.
    pub(in crate::decode) updates: &'e [&'e Update<'a>],
    /// The first completion id of the stream.
    pub(in crate::decode) first_id: Option<&'e str>,
    pub(in crate::decode) depth: usize,
}

impl Template {
    /// Builds a template of an event whose only update continues a text, perhaps with usage in another one.
    pub(in crate::decode) fn of_event(event: &Event<'_, '_, '_>) -> Option<Self> {
        let (update, usage) = match event.updates {
            [update] => (*update, None),
            [update, stream] => (*update, Some(usage_of(stream)?)),
            _ => return None,
        };
        let (text_kind, fragment) = update.only_text()?;
        let is_whole = fragment.low.is_none() && fragment.high.is_none();
        let is_long = |name: &Option<Cow<'_, str>>| {
            name.as_ref()
                .is_some_and(|name| name.len() > MAX_NAME_BYTES) // it is dropped
        };
        if !is_whole
            || fragment.is_empty()
            || is_long(&update.id)
            || is_long(&update.model)
            || usage.is_some() != event.continuation.usage.is_some()
        {
            return None;
        }
        let sites = event.sites()?;
        let has_index = sites.iter().any(|site| site.slot == Slot::Index);
        let has_other_id = update.id.is_some() && update.id.as_deref() != event.first_id;
        let provided = Provided {
            resets_id: usage.is_some() && has_other_id,
            place: event.continuation.place,
            name: event.name.map(Box::from),
            choice: update.choice.map(|choice| choice.0).filter(|_| !has_index),
            usage: event
                .continuation
                .usage
                .map_or_else(Box::default, |node| usage_parts(event.text, node, &sites)),
        };
        let mut prototype = Update {
            last_of_event: true,
            is_chunk: true,
            id: update.id.clone(),
            created: update.created,
            model: update.model.clone(),
            kind: update.kind,
            tool_calls: update.tool_calls.clone(),
            ..Update::default()
        };
        if let Some(call) = prototype.tool_calls.first_mut() {
            call.arguments = Some(Fragment::default());
        }
        let prototype = Prototype {
            update: prototype.into_owned(),
            usage: usage.map(Box::from),
            extra: Vec::new(),
        };
        let mut template = Self {
            text: event.text.into(),
            sites: sites.into(),
            head_len: 0,
            holes: Box::default(),
            forms: Box::default(),
            has_values: false,
            text_kind,
            has_text: true,
            is_text_only: false,
            is_constant: false,
            has_field_holes: false,
            has_extra_holes: false,
            depth: event.depth,
            prototype: Box::new(prototype),
            provided: Some(Box::new(provided)),
            envelope: 0,
            known_version: None,
        };
        template.cut_holes();
        let gives_usage = template.gives_usage(event.continuation.usage);
        (gives_usage && template.gives(update, fragment)).then_some(template)
    }

    /// Whether a matching event with this text gives this update, so that nothing of the update is forgotten.
    fn gives(&self, update: &Update<'_>, fragment: &Fragment<'_>) -> bool {
        let Some(choice) = update.choice else {
            return false;
        };
        let mut own = self.update(choice, &fragment.text, Vec::new());
        (own.event_index, own.last_of_event) = (update.event_index, update.last_of_event);
        own == *update
    }

    /// Whether the usage of an event becomes that of the prototype.
    fn gives_usage(&self, usage: Option<&Node<'_>>) -> bool {
        let mut out = String::new();
        let own = usage
            .zip(self.provided())
            .and_then(|(node, provided)| provided.usage(node.raw.as_bytes(), &mut out));
        own == self.prototype.usage.as_deref()
    }

    /// The name of the events.
    pub(in crate::decode) fn name(&self) -> Option<&[u8]> {
        self.provided.as_ref()?.name.as_deref()
    }
}

impl Provided {
    /// The usage of a matching event without white space, of which `raw` is the text.
    pub(super) fn usage<'o>(&self, mut raw: &[u8], out: &'o mut String) -> Option<&'o str> {
        out.clear();
        for (length, part) in &self.usage {
            out.push_str(part);
            raw = raw.get(*length..)?;
            let digits = raw.iter().take_while(|byte| byte.is_ascii_digit()).count();
            out.push_str(str::from_utf8(raw.get(..digits)?).ok()?);
            raw = raw.get(digits..)?;
        }
        Some(out)
    }
}

/// The usage in an update of the stream that has nothing else.
fn usage_of<'u>(stream: &'u Update<'_>) -> Option<&'u str> {
    let usage = stream.usage.as_deref()?;
    let only_usage = Update {
        event_index: stream.event_index,
        last_of_event: stream.last_of_event,
        is_chunk: true,
        usage: stream.usage.clone(),
        ..Update::default()
    };
    (only_usage == *stream).then_some(usage)
}

impl Event<'_, '_, '_> {
    /// All values that may differ, in their order.
    fn sites(&self) -> Option<Vec<Site>> {
        let Continuation {
            text,
            unread,
            index,
            usage,
            ..
        } = &self.continuation;
        let site = |slot: Slot, part: &str, is_hole: bool| {
            let (start, end) = span_in(self.text, part)?;
            Some(Site {
                slot,
                start,
                end,
                is_hole,
            })
        };
        let mut sites = vec![site(Slot::Text, inside(text)?, true)?];
        for node in unread {
            // Any other value has to be the same in each event.
            let unread = match &node.value {
                Value::String(_) => site(Slot::Padding, inside(node)?, false),
                Value::Number(raw) if is_integer(raw) => site(Slot::Number, raw, true),
                _ => None,
            };
            sites.extend(unread);
        }
        if let Some(Value::Number(raw)) = index.map(|node| &node.value)
            && is_integer(raw)
        {
            sites.push(site(Slot::Index, raw, true)?);
        }
        if let Some(usage) = usage {
            let (start, end) = span_in(self.text, usage.raw)?;
            for (slot, at) in [(Slot::UsageStart, start), (Slot::UsageEnd, end)] {
                let (start, end) = (at, at);
                sites.push(Site {
                    slot,
                    start,
                    end,
                    is_hole: true,
                });
            }
            let mut numbers = Vec::new();
            integers(usage, &mut numbers);
            for raw in numbers {
                sites.push(site(Slot::Number, raw, true)?);
            }
        }
        if let Some(fields) = self.text.strip_suffix('}') {
            sites.push(Site {
                slot: Slot::Space,
                start: fields.trim_end_matches(' ').len(),
                end: fields.len(),
                is_hole: true,
            });
        }
        sites.sort_by_key(|site| site.start);
        let is_disjoint = sites
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.end <= b.start));
        is_disjoint.then_some(sites)
    }
}

/// The inside of the quotes of a string.
fn inside<'a>(node: &Node<'a>) -> Option<&'a str> {
    node.as_str()?;
    node.raw.strip_prefix('"')?.strip_suffix('"')
}

fn is_integer(raw: &str) -> bool {
    integer(raw.as_bytes()).is_some_and(|(_, length)| length == raw.len())
}

/// The integers in a value.
fn integers<'a>(node: &Node<'a>, found: &mut Vec<&'a str>) {
    match &node.value {
        Value::Number(raw) if is_integer(raw) => found.push(raw),
        Value::Array(items) => items.iter().for_each(|node| integers(node, found)),
        Value::Object(fields) => fields.iter().for_each(|(_, node)| integers(node, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The parts of the usage before each of its numbers, and after the last one.
fn usage_parts(text: &str, usage: &Node<'_>, sites: &[Site]) -> Box<[(usize, Box<str>)]> {
    let Some((start, end)) = span_in(text, usage.raw) else {
        return Box::default();
    };
    let mut from = start;
    let inside = |site: &&Site| (start..end).contains(&site.start) && site.slot == Slot::Number;
    let numbers = sites
        .iter()
        .filter(inside)
        .map(|site| (site.start, site.end));
    let parts = numbers.chain([(end, end)]).map(|(start, end)| {
        let part = text.get(from..start).unwrap_or_default();
        from = end;
        (part.len(), compact(part).into())
    });
    parts.collect()
}
