//! Templates of the events of other dialects than chat.
//!
//! The dialect names the parts of an event that may differ in the next one, and what the event continues
//! ([`Continuation`]). Everything else is as in the templates of chunks.

use std::borrow::Cow;

use super::{
    Prototype, Template,
    site::{Part, Site, Slot, span_in},
};
use crate::{
    ChoiceIndex, EventIndex, Fragment, ToolCallUpdate, Update,
    decode::json_bytes::integer,
    dialect::{Continuation, Place},
    limits::MAX_NAME_BYTES,
    node::{Node, Value, compact},
    text_delta::{DeltaKind, DeltaUsage},
};

/// What a dialect says of its events.
#[derive(Debug)]
pub(in crate::decode) struct Provided {
    /// What an event continues.
    pub(in crate::decode) place: Place,
    /// The name that each event has.
    pub(in crate::decode) name: Option<Box<[u8]>>,
    /// Whether an update without an id follows the text, although the id of the event is not the stream's own.
    pub(super) resets_id: bool,
    /// The choice, if it is not in a hole.
    pub(super) choice: Option<u32>,
    /// The list to which each event adds the value with its text.
    list: Option<&'static str>,
    /// How many bytes of white space the usage has.
    usage_space: usize,
    /// The number of this template among those of the stream. Its matches have usage that differs in integers only.
    pub(super) form: u64,
}

/// What the template of a dialect's event is built from.
pub(in crate::decode) struct ProviderEvent<'e, 'n, 'a> {
    pub(in crate::decode) text: &'a str,
    pub(in crate::decode) name: Option<&'e [u8]>,
    pub(in crate::decode) continuation: Continuation<'n, 'a>,
    /// The updates that the dialect has made of the event.
    pub(in crate::decode) updates: &'e [&'e Update<'a>],
    /// The first completion id of the stream.
    pub(in crate::decode) first_id: Option<&'e str>,
    pub(in crate::decode) depth: usize,
}

/// The updates of an event that a template can stand for.
struct EventParts<'u, 'a> {
    /// Continues a text, and does nothing else.
    update: &'u Update<'a>,
    text_kind: DeltaKind,
    fragment: &'u Fragment<'a>,
    /// Adds a value to a list.
    entry: Option<&'u Update<'a>>,
    usage: Option<&'u str>,
}

impl Template {
    /// Builds a template of an event whose only update continues a text, perhaps with usage in another one.
    pub(in crate::decode) fn of_event(event: &ProviderEvent<'_, '_, '_>) -> Option<Self> {
        let parts = event.parts()?;
        let sites = event.sites()?;
        let provided = event.provided(&parts, &sites);
        let prototype = event.prototype(&parts);
        let mut template = Self::uncut(event.text, sites, parts.text_kind, prototype, event.depth);
        template.provided = Some(Box::new(provided));
        template.kind = parts.update.kind;
        template.cut_holes();
        template.gives_all(event, &parts).then_some(template)
    }

    /// Whether the event gives its own updates again, so that nothing of them is forgotten.
    fn gives_all(&self, event: &ProviderEvent<'_, '_, '_>, parts: &EventParts<'_, '_>) -> bool {
        let update = parts.update;
        let gives_usage = event.continuation.usage.is_none_or(|node| {
            let read = self.usage(node.raw.as_bytes(), update.event_index);
            read.map(|read| read.to_update().usage) == Some(parts.usage.map(Cow::Borrowed))
        });
        let mut buffer = String::new();
        let gives_entry = event.continuation.entry.is_none_or(|own| {
            let read = self.entry(own.node.raw.as_bytes(), update.choice, &mut buffer);
            read.is_some_and(|read| parts.entry.is_some_and(|entry| read == *entry))
        });
        gives_usage && gives_entry && self.gives(update, parts.fragment)
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

    /// The usage of a matching event, of which `raw` is the text.
    #[inline]
    pub(super) fn usage<'t>(
        &self,
        raw: &'t [u8],
        event_index: EventIndex,
    ) -> Option<DeltaUsage<'t>> {
        let provided = self.provided()?;
        self.prototype.usage.as_ref()?;
        let raw = str::from_utf8(raw).ok()?;
        Some(DeltaUsage {
            event_index,
            raw,
            compact_len: raw.len().saturating_sub(provided.usage_space),
            form: provided.form,
        })
    }

    /// The update of a matching event that adds its value to a list; `raw` is the text of the value.
    pub(super) fn entry<'b>(
        &self,
        raw: &[u8],
        choice: Option<ChoiceIndex>,
        buffer: &'b mut String,
    ) -> Option<Update<'b>> {
        let list = self.provided()?.list?;
        buffer.clear();
        buffer.push('[');
        buffer.push_str(&compact(str::from_utf8(raw).ok()?));
        buffer.push(']');
        Some(Update {
            choice,
            metadata: vec![(list.into(), (&**buffer).into())],
            delta_field_count: 1,
            is_chunk: true,
            ..Update::default()
        })
    }

    /// Whether an update that adds an entry to a list follows the text.
    pub(super) fn has_entry(&self) -> bool {
        self.provided()
            .is_some_and(|provided| provided.list.is_some())
    }

    /// Numbers the template.
    pub(in crate::decode) fn set_form(&mut self, form: u64) {
        if let Some(provided) = &mut self.provided {
            provided.form = form;
        }
    }

    /// The name of the events.
    pub(in crate::decode) fn name(&self) -> Option<&[u8]> {
        self.provided.as_ref()?.name.as_deref()
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

impl<'a> ProviderEvent<'_, '_, 'a> {
    /// The updates, if they are those that a template can stand for.
    fn parts(&self) -> Option<EventParts<'_, 'a>> {
        let (update, mut rest) = self.updates.split_first()?;
        let entry = self
            .continuation
            .entry
            .and_then(|_| rest.split_off_first())
            .copied();
        let usage = match rest {
            [] => None,
            [stream] => Some(usage_of(stream)?),
            _ => return None,
        };
        let (text_kind, fragment) = update.only_text()?;
        let is_whole = fragment.low.is_none() && fragment.high.is_none();
        let is_long = |name: &Option<Cow<'_, str>>| {
            name.as_ref()
                .is_some_and(|name| name.len() > MAX_NAME_BYTES) // it is dropped
        };
        let fits = is_whole
            && !fragment.is_empty()
            && !is_long(&update.id)
            && !is_long(&update.model)
            && usage.is_some() == self.continuation.usage.is_some()
            && entry.is_some() == self.continuation.entry.is_some();
        fits.then_some(EventParts {
            update,
            text_kind,
            fragment,
            entry,
            usage,
        })
    }

    fn provided(&self, parts: &EventParts<'_, '_>, sites: &[Site]) -> Provided {
        let update = parts.update;
        let has_index = sites.iter().any(|site| site.slot == Slot::Index);
        let has_other_id = update.id.is_some() && update.id.as_deref() != self.first_id;
        Provided {
            resets_id: (parts.usage.is_some() || parts.entry.is_some()) && has_other_id,
            place: self.continuation.place,
            name: self.name.map(Box::from),
            choice: update.choice.map(|choice| choice.0).filter(|_| !has_index),
            list: self.continuation.entry.map(|entry| entry.list),
            usage_space: self
                .continuation
                .usage
                .map_or(0, |node| node.raw.len() - compact(node.raw).len()),
            form: 0,
        }
    }

    fn prototype(&self, parts: &EventParts<'_, '_>) -> Prototype {
        let EventParts { update, usage, .. } = parts;
        let part = |part: &str| Part::of(self.text, part);
        Prototype {
            created: update.created,
            role: None,
            logprobs: None,
            fields: Vec::new(),
            delta_field_count: 0,
            calls: update
                .tool_calls
                .iter()
                .map(ToolCallUpdate::header)
                .collect(),
            id: update.id.as_deref().map(part),
            model: update.model.as_deref().map(part),
            usage: usage.map(part),
            extra: Vec::new(),
        }
    }

    /// All values that may differ, in their order.
    fn sites(&self) -> Option<Vec<Site>> {
        let Continuation {
            text,
            unread,
            index,
            usage,
            entry,
            ..
        } = &self.continuation;
        let mut sites = vec![self.site(Slot::Text, inside(text)?, true)?];
        for node in unread {
            // Any other value has to be the same in each event.
            let unread = match &node.value {
                Value::String(_) if entry.is_some() => {
                    self.site(Slot::Signature, inside(node)?, false)
                }
                Value::String(_) => self.site(Slot::Padding, inside(node)?, false),
                Value::Number(raw) if is_integer(raw) => self.site(Slot::Number, raw, true),
                _ => None,
            };
            sites.extend(unread);
        }
        if let Some(Value::Number(raw)) = index.map(|node| &node.value)
            && is_integer(raw)
        {
            sites.push(self.site(Slot::Index, raw, true)?);
        }
        if let Some(entry) = entry {
            sites.extend(self.enclose(entry.node, [Slot::EntryStart, Slot::EntryEnd])?);
        }
        if let Some(usage) = usage {
            sites.extend(self.enclose(usage, [Slot::UsageStart, Slot::UsageEnd])?);
            let mut numbers = Vec::new();
            integers(usage, &mut numbers);
            for raw in numbers {
                sites.push(self.site(Slot::Number, raw, true)?);
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

    /// The site of a part of the text.
    fn site(&self, slot: Slot, part: &str, is_hole: bool) -> Option<Site> {
        let (start, end) = span_in(self.text, part)?;
        Some(Site {
            slot,
            start,
            end,
            is_hole,
        })
    }

    /// The empty sites before and after a value.
    fn enclose(&self, node: &Node<'_>, slots: [Slot; 2]) -> Option<[Site; 2]> {
        let (start, end) = span_in(self.text, node.raw)?;
        let empty = |slot, at| Site {
            slot,
            start: at,
            end: at,
            is_hole: true,
        };
        let [before, after] = slots;
        Some([empty(before, start), empty(after, end)])
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
