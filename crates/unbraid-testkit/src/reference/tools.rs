//! The tool calls of one choice, correlated by id, by index, or with the latest call.

use std::collections::HashMap;

use serde_json::Value;

use super::fault::is_present;
use super::lenient::{is_high_half, join_halves};
use super::ready::{self, Early, Step};
use super::status::{self, Cut};
use super::text;

/// A complete call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolCall {
    /// The id, if one was sent.
    pub id: Option<String>,
    /// The `type` on the wire, or `function` if none was sent (T30).
    pub kind: String,
    /// The name, if one was sent.
    pub name: Option<String>,
    /// The arguments, or the input of a custom tool: every fragment, verbatim.
    pub arguments: String,
    /// The status at the end of the choice, or `None` if this client cannot decide it.
    pub status: Option<&'static str>,
    /// Whether it could be run early: at the next call, and at whole JSON.
    pub early: [Option<Early>; 2],
}

/// The legacy `function_call` of a choice (T36).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionCall {
    /// The name, if one was sent.
    pub name: Option<String>,
    /// The arguments, verbatim.
    pub arguments: String,
    /// The status at the end of the choice, or `None` if this client cannot decide it.
    pub status: Option<&'static str>,
    /// Whether it could be run early: at the next call, and at whole JSON.
    pub early: [Option<Early>; 2],
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tools {
    slots: Vec<Slot>,
    function_call: FunctionCall,
    /// The slots in order of appearance; `None` is the legacy call.
    order: Vec<Option<usize>>,
    /// The call that was written last, as in `order`, unless text follows it.
    last: Option<Option<usize>>,
    steps: Vec<Step>,
}

/// A call under construction.
#[derive(Debug, Clone, Default, PartialEq)]
struct Slot {
    index: Option<i64>,
    /// Whether the entry that opened it had an index on the wire.
    numbered: bool,
    id: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    arguments: String,
}

/// One element of `tool_calls`.
#[derive(Debug, Clone)]
struct Entry {
    index: Option<i64>,
    /// Whether the index was sent, instead of derived from the position.
    numbered: bool,
    id: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    arguments: String,
}

impl Tools {
    pub(super) fn delta(&mut self, delta: &Value) {
        match delta.get("tool_calls") {
            Some(Value::Array(entries)) => self.entries(entries),
            Some(entry @ Value::Object(_)) => self.entry(Entry::read(entry)), // T42
            _ => {}
        }
        if let Some(call) = delta.get("function_call") {
            let before = self.function_call.name.clone();
            let text = arguments(call.get("arguments"));
            fold_name(&mut self.function_call.name, super::text(call, "name"));
            self.function_call.arguments.push_str(&text);
            let after = self.function_call.name.clone();
            self.record(None, before.as_deref(), after.as_deref(), text);
        }
    }

    /// Reads the calls of a further message (E21): arguments that begin with those so far repeat them. True if some did.
    pub(super) fn further_message(&mut self, message: &Value) -> bool {
        let before = self.clone();
        self.delta(message);
        let mut repeats = false;
        let slots = before.slots.iter().map(|slot| &slot.arguments);
        let known = slots.chain([&before.function_call.arguments]);
        let slots = self.slots.iter_mut().take(before.slots.len());
        let now = slots
            .map(|slot| &mut slot.arguments)
            .chain([&mut self.function_call.arguments]);
        for (known, now) in known.zip(now) {
            // The repeated arguments have the whole character.
            let whole = known.trim_end_matches(is_high_half);
            if !whole.is_empty() && now[known.len()..].starts_with(whole) {
                now.replace_range(..known.len(), "");
                repeats = true;
            }
        }
        let (earlier, new) = self.steps.split_at_mut(before.steps.len());
        for step in new {
            let Step::Text(call, text) = step else {
                continue;
            };
            let known = match before.order.get(*call) {
                Some(Some(slot)) => &before.slots[*slot].arguments,
                Some(None) => &before.function_call.arguments,
                None => continue,
            };
            let whole = known.trim_end_matches(is_high_half);
            let Some(rest) = text.strip_prefix(whole).filter(|_| !whole.is_empty()) else {
                continue;
            };
            *text = rest.to_owned();
            // The repeated arguments have the whole character.
            let last = earlier.iter_mut().rev().find_map(|step| match step {
                Step::Text(other, part) if other == call => Some(part),
                _ => None,
            });
            if let Some(part) = last {
                part.truncate(part.trim_end_matches(is_high_half).len());
            }
        }
        repeats
    }

    /// Text follows the calls so far.
    pub(super) fn text_follows(&mut self) {
        self.last = None;
    }

    /// The first finish reason arrives.
    pub(super) fn finish_reason(&mut self, reason: &str) {
        self.steps.push(Step::Finish(reason.to_owned()));
    }

    /// Records what an entry changed.
    fn record(
        &mut self,
        slot: Option<usize>,
        before: Option<&str>,
        after: Option<&str>,
        text: String,
    ) {
        if before == after && text.is_empty() {
            return;
        }
        let known = self.order.iter().position(|known| *known == slot);
        let call = known.unwrap_or(self.order.len());
        if known.is_none() {
            self.order.push(slot);
        }
        match (before, after) {
            (None, Some(_)) => self.steps.push(Step::Name(call)),
            (Some(before), Some(after)) if before != after => self.steps.push(Step::Rename(call)),
            _ => {}
        }
        // A call without a name shows only at the end of the choice.
        if after.is_some() && (before.is_none() || !text.is_empty()) {
            self.last = Some(slot);
        }
        if !text.is_empty() {
            self.steps.push(Step::Text(call, text));
        }
    }

    fn early(&self, slot: Option<usize>, custom: bool) -> [Option<Early>; 2] {
        let call = self.order.iter().position(|known| *known == slot);
        [false, true].map(|objects| ready::early(&self.steps, call?, custom, objects))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty() && self.function_call == FunctionCall::default()
    }

    /// Several entries without an index in one chunk get their position as the index (T3).
    fn entries(&mut self, entries: &[Value]) {
        let mut entries: Vec<Entry> = entries.iter().map(Entry::read).collect();
        if entries.iter().filter(|entry| entry.index.is_none()).count() > 1 {
            for (entry, position) in entries.iter_mut().zip(0..) {
                entry.index = entry.index.or(Some(position));
            }
        }
        entries.into_iter().for_each(|entry| self.entry(entry));
    }

    fn entry(&mut self, entry: Entry) {
        if entry.is_empty() {
            return; // T33
        }
        let slot = self.known_id(&entry).unwrap_or_else(|| match entry.index {
            Some(index) => self.by_index(index, &entry),
            None => self.latest(&entry),
        });
        let before = self.slots[slot].name.clone();
        let text = entry.arguments.clone();
        self.slots[slot].merge(entry);
        let after = self.slots[slot].name.clone();
        self.record(Some(slot), before.as_deref(), after.as_deref(), text);
    }

    /// (1) The call with this id. The same id with a name under another index is a separate call (T14).
    fn known_id(&self, entry: &Entry) -> Option<usize> {
        let id = entry.id.as_ref()?;
        let find = |fits: &dyn Fn(&Slot) -> bool| {
            self.slots
                .iter()
                .rposition(|slot| slot.id.as_ref() == Some(id) && fits(slot))
        };
        find(&|slot| slot.index == entry.index)
            .or_else(|| find(&|slot| slot.index.is_none() || entry.index.is_none()))
            .or_else(|| find(&|_| entry.name.is_none()))
    }

    /// (2) The call at this index. A new id with a name starts a new call (T7).
    fn by_index(&mut self, index: i64, entry: &Entry) -> usize {
        let found = self
            .slots
            .iter()
            .rposition(|slot| slot.index == Some(index));
        let continues_latest = self
            .slots
            .last()
            .is_some_and(|slot| slot.index.is_none() && slot.is_continued_by(entry));
        // T2: if no call was sent with an index, the index of a bare fragment counts the calls.
        let none_numbered = self.slots.iter().all(|slot| !slot.numbered);
        let counted = usize::try_from(index).ok().filter(|position| {
            let is_it = |slot: &Slot| slot.index.is_none() && slot.is_continued_by(entry);
            none_numbered && self.slots.get(*position).is_some_and(is_it)
        });
        if let (None, Some(position)) = (found, counted) {
            return position;
        }
        match found {
            Some(slot) if !entry.is_new_call() || self.slots[slot].is_headerless() => slot,
            // T2: a bare fragment with a new index belongs to the latest call if that has no index.
            None if continues_latest => self.slots.len() - 1,
            _ => self.open(Some(index), entry.numbered),
        }
    }

    /// (3) The latest call. A new id with a name, or another name, starts a new call (T3).
    fn latest(&mut self, entry: &Entry) -> usize {
        match self.slots.last() {
            Some(last) if last.is_headerless() || !last.is_followed_by(entry) => {
                self.slots.len() - 1
            }
            _ => self.open(None, false),
        }
    }

    fn open(&mut self, index: Option<i64>, numbered: bool) -> usize {
        self.slots.push(Slot {
            index,
            numbered,
            ..Slot::default()
        });
        self.slots.len() - 1
    }

    pub(super) fn finish(self, cut: Cut) -> (Vec<ToolCall>, Option<FunctionCall>) {
        let place = |call| self.order.iter().position(|known| *known == call);
        let last = self.last.and_then(place);
        let is_cut: HashMap<Option<usize>, bool> = self
            .order
            .iter()
            .map(|call| {
                let is_cut = match cut {
                    Cut::None => false,
                    // Calls that came before it in the stream are complete.
                    Cut::Last => last.is_some_and(|last| place(*call) >= Some(last)),
                    Cut::Any => true,
                };
                (*call, is_cut)
            })
            .collect();
        let is_cut = |call| is_cut.get(&call).copied().unwrap_or(cut != Cut::None);
        let early: Vec<_> = (0..)
            .zip(&self.slots)
            .map(|(index, slot)| self.early(Some(index), slot.kind.as_deref() == Some("custom")))
            .collect();
        let legacy_early = self.early(None, false);
        let calls: Vec<ToolCall> = self
            .slots
            .into_iter()
            .zip(early)
            .enumerate()
            .map(|(position, (slot, early))| ToolCall {
                early,
                ..slot.finish(is_cut(Some(position)))
            })
            .collect();
        let name = self.function_call.name.as_deref().map(join_halves);
        let arguments = join_halves(&self.function_call.arguments);
        let came = name.is_some() || !arguments.is_empty();
        let status = status::of_function(name.as_deref(), false, &arguments, is_cut(None));
        let legacy = FunctionCall {
            name,
            arguments,
            status,
            early: legacy_early,
        };
        let is_repeated = calls
            .iter()
            .any(|call| call.name == legacy.name && call.arguments == legacy.arguments);
        let legacy = Some(legacy).filter(|_| !is_repeated && came);
        (calls, legacy)
    }
}

impl Slot {
    /// Whether an entry at an unknown index may be a fragment of this call: it has neither an id nor a name, or repeats the name
    /// before any arguments (T15).
    fn is_continued_by(&self, entry: &Entry) -> bool {
        let repeats_name = self.arguments.is_empty() && entry.name == self.name;
        entry.is_bare() || (entry.id.is_none() && repeats_name)
    }

    /// Whether it has fragments, but neither an id nor a name.
    fn is_headerless(&self) -> bool {
        self.id.is_none() && self.name.is_none()
    }

    /// Whether an entry without an index or a known id starts another call.
    fn is_followed_by(&self, entry: &Entry) -> bool {
        let is_whole = serde_json::from_str::<Value>(&self.arguments).is_ok();
        let follows_whole = is_whole && !entry.arguments.is_empty();
        let has_another_name = (self.name.is_some() || follows_whole)
            && entry.name.is_some()
            && self.name != entry.name;
        entry.is_new_call() || has_another_name
    }

    /// Sets id and type once, folds the name and appends the arguments.
    fn merge(&mut self, entry: Entry) {
        self.index = self.index.or(entry.index);
        self.id = self.id.take().or(entry.id);
        self.kind = self.kind.take().or(entry.kind);
        fold_name(&mut self.name, entry.name.as_deref());
        self.arguments.push_str(&entry.arguments);
    }

    fn finish(self, cut: bool) -> ToolCall {
        let kind = self.kind.unwrap_or_else(|| "function".to_owned());
        let name = self.name.as_deref().map(join_halves);
        let arguments = join_halves(&self.arguments);
        let lacks_id = self.id.is_none();
        let status = match kind.as_str() {
            "custom" => Some(status::of_custom(name.as_deref(), lacks_id, cut)),
            _ => status::of_function(name.as_deref(), lacks_id, &arguments, cut),
        };
        ToolCall {
            id: self.id.as_deref().map(join_halves),
            kind,
            name,
            arguments,
            status,
            early: [None, None],
        }
    }
}

impl Entry {
    fn read(entry: &Value) -> Self {
        let owned = |object, key| text(object, key).map(str::to_owned);
        // T31: a custom tool has `custom` instead of `function`, and `input` instead of `arguments`.
        let custom = entry.get("custom").filter(|custom| custom.is_object());
        // Types with both members send the one that is not meant empty.
        let function = entry.get("function").filter(|function| !function.is_null());
        let is_function = entry["type"] == "function" && function.is_some_and(is_present);
        let custom =
            custom.filter(|custom| !is_function && (is_present(custom) || function.is_none()));
        let called = custom
            .or_else(|| entry.get("function"))
            .unwrap_or(&Value::Null);
        let key = if custom.is_some() {
            "input"
        } else {
            "arguments"
        };
        let index = entry.get("index").and_then(integer);
        Self {
            index,
            numbered: index.is_some(),
            id: owned(entry, "id").or_else(|| Some(entry.get("id")?.as_number()?.to_string())),
            kind: owned(entry, "type").or_else(|| custom.map(|_| "custom".to_owned())),
            name: owned(called, "name"),
            arguments: arguments(called.get(key)),
        }
    }

    fn is_new_call(&self) -> bool {
        self.id.is_some() && self.name.is_some()
    }

    fn is_bare(&self) -> bool {
        self.id.is_none() && self.name.is_none()
    }

    fn is_empty(&self) -> bool {
        self.is_bare() && self.arguments.is_empty()
    }
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// Strings verbatim, and other values as their JSON text, which `lenient::parse` has kept. Null and the placeholder `{}`
/// count as absent (T19, T20).
fn arguments(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(fragment)) => fragment.clone(),
        Some(Value::Object(fields)) if fields.is_empty() => String::new(),
        Some(value) => value.to_string(),
    }
}

/// A repeated name changes nothing, a longer one replaces the name, a fragment is appended (T15 to T17).
fn fold_name(name: &mut Option<String>, part: Option<&str>) {
    let Some(part) = part else { return };
    match name {
        Some(known) if known == part => {}
        Some(known) if !part.starts_with(known.as_str()) => known.push_str(part),
        _ => *name = Some(part.to_owned()),
    }
}
