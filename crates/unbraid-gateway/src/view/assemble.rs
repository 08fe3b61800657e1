//! The message so far, by the core's own assembly: as a response without streaming, and as one chunk.

mod halves;
mod snapshot;

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use unbraid_core::{ChoiceIndex, Config, Demux, Transcript, internal::aggregate_of};
use unbraid_log::{End, Event, Record, Seq};

use snapshot::response_choice;
pub(super) use snapshot::snapshot;

use super::{
    Target,
    chunk::{
        CallNumbers, Cuts, Rewritten, Selection, empty_entry, kind_of, object_of, only_choice,
        without_error,
    },
    frame::Frame,
    shared::StreamView,
};

/// The field `unbraid` of a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    pub(super) seq: Seq,
    pub(super) is_running: bool,
    pub(super) end: Option<End>,
}

/// The response without streaming, from the events up to a number.
pub(super) fn response(
    view: &StreamView,
    target: Target,
    upto: Seq,
    state: Option<State>,
) -> String {
    let demux = assemble(view, target, upto);
    let mut metadata = demux.metadata().clone();
    // An answer that has not begun shows neither its kind nor the other fields that every answer has.
    let meta = view.meta();
    metadata.kind.get_or_insert_with(|| kind_of(&meta.endpoint));
    metadata.id.get_or_insert_default();
    metadata.created.get_or_insert(meta.created);
    metadata
        .model
        .get_or_insert_with(|| meta.model.as_deref().unwrap_or_default().into());
    let mut choices: Vec<&Transcript> = demux.choices().collect();
    choices.sort_by_key(|transcript| transcript.index());
    let choices = choices.into_iter().map(response_choice).collect();
    let state = state.map(|state| {
        let name = if state.is_running { "running" } else { "ended" };
        json!({ "seq": state.seq, "state": name, "end": state.end.map(End::as_str) }).to_string()
    });
    // Replaces the state of an upstream that is another gateway of this kind.
    let more = state.as_deref().map(|state| ("unbraid", state));
    aggregate_of(&metadata, &demux.usage(), choices, more.as_slice())
}

/// The reported usage, as JSON text.
pub(super) fn usage(view: &StreamView, upto: Seq) -> Option<String> {
    let usage = assemble(view, Target::Combined, upto).usage();
    let text = serde_json::to_string(&usage).ok()?;
    let is_reported = serde_json::from_str::<Map<String, Value>>(&text)
        .is_ok_and(|fields| fields.values().any(|value| !value.is_null()));
    is_reported.then_some(text)
}

/// The chunk that reports a position, and nothing else.
pub(super) fn position(view: &StreamView, seq: Seq) -> Vec<u8> {
    let object = object_of(kind_of(&view.meta().endpoint));
    let chunk = json!({
        "id": "",
        "object": object,
        "created": view.meta().created,
        "model": view.meta().model.as_deref().unwrap_or_default(),
        "choices": [],
        "unbraid": { "position": seq },
    });
    chunk.to_string().into_bytes()
}

/// The core's state after the events up to a number.
pub(super) fn combined(view: &StreamView, upto: Seq) -> Demux {
    assemble(view, Target::Combined, upto)
}

/// The core's state after the events of a view up to a number.
fn assemble(view: &StreamView, target: Target, upto: Seq) -> Demux {
    let records = view.records();
    let config = if view.folds_choices(
        records
            .iter()
            .flat_map(Record::events)
            .map(|(_, event)| event),
    ) {
        StreamView::core_config(view.meta())
    } else {
        Config::default()
    };
    let mut assembly = Assembly {
        demux: Demux::new(config),
        view,
        target,
        calls: CallNumbers::default(),
    };
    let mut parts = Vec::new();
    for (seq, event) in records.iter().flat_map(Record::events) {
        let is_after = seq > upto;
        if is_after && !assembly.has_only_choice() {
            break;
        }
        let payload = match event {
            Event::Part { payload } => {
                parts.extend_from_slice(payload);
                continue;
            }
            Event::Chunk { payload, .. } | Event::Synthetic { payload, .. } => payload,
            Event::Error { payload, name } => {
                // An event with that name is an error, whatever its data is (S15).
                if !is_after && name != Some("error") {
                    parts.extend_from_slice(payload);
                    assembly.feed_beside_error(&parts);
                }
                parts.clear();
                continue;
            }
            _ => continue,
        };
        // The usage of an only choice belongs to it, although it may come after the end of its view.
        let is_left_out = is_after && !event.choices().is_empty();
        let payload = if parts.is_empty() {
            Cow::Borrowed(payload)
        } else {
            parts.extend_from_slice(payload);
            Cow::Owned(std::mem::take(&mut parts))
        };
        if !is_left_out {
            assembly.feed(seq, &event, &payload);
        }
    }
    assembly.open_choice();
    assembly.demux
}

struct Assembly<'v> {
    demux: Demux,
    view: &'v StreamView,
    target: Target,
    calls: CallNumbers,
}

impl Assembly<'_> {
    /// A choice that was requested exists, even if it has not appeared. Not before the events, because the first of them says in
    /// which dialect the upstream answers.
    fn open_choice(&mut self) {
        if let Some(index) = self.index()
            && self.demux.choice(index).is_none()
        {
            let entry = empty_entry(kind_of(&self.view.meta().endpoint), index);
            self.write(json!({ "choices": [entry] }).to_string().as_bytes());
        }
    }

    /// Whether the view is that of the only choice.
    fn has_only_choice(&self) -> bool {
        self.index().is_some() && self.view.meta().n.unwrap_or(1) == 1
    }

    /// The index that the choice of the view has in it.
    fn index(&self) -> Option<ChoiceIndex> {
        match self.target {
            Target::Combined => None,
            Target::Choice {
                index, keep_index, ..
            } => Some(if keep_index { index } else { ChoiceIndex(0) }),
        }
    }

    fn feed(&mut self, seq: Seq, event: &Event<'_>, payload: &[u8]) {
        let Target::Choice { index, .. } = self.target else {
            return self.write(payload);
        };
        let choices = event.choices();
        if choices.is_empty() && self.has_only_choice() {
            // Usage and the like belong to the only choice.
            return self.write(payload);
        }
        if !choices.contains(index) {
            return;
        }
        let cuts = self.view.cuts(seq, event, payload);
        self.apply(&cuts, payload, choices.iter().all(|choice| choice == index));
    }

    /// The choices of an error event: what they have comes before the error (X4).
    fn feed_beside_error(&mut self, payload: &[u8]) {
        let Some(chunk) = without_error(payload) else {
            return;
        };
        let Target::Choice { index, .. } = self.target else {
            return self.write(&chunk);
        };
        if let Some(chunk) = only_choice(&chunk, index) {
            self.apply(&Cuts::find(&chunk, false), &chunk, false);
        }
    }

    /// Reads the choice of the view in a chunk.
    fn apply(&mut self, cuts: &Cuts, payload: &[u8], is_only_choice: bool) {
        let Target::Choice {
            index,
            keep_index,
            part,
        } = self.target
        else {
            return self.write(payload);
        };
        let selection = Selection {
            choice: index.0,
            keep_index,
            is_only_choice,
            part,
            kind: kind_of(&self.view.meta().endpoint),
            is_always_shown: false,
        };
        match cuts.apply(payload, selection, &mut self.calls) {
            Rewritten::LeftOut => {}
            Rewritten::Unchanged(data) => self.write(data),
            Rewritten::Changed(data) => self.write(&data),
            Rewritten::Pieces(before, index, after) => {
                self.write(&[before, index.as_bytes(), after].concat());
            }
        }
    }

    fn write(&mut self, data: &[u8]) {
        let mut frame = Frame::new(false);
        frame.event_without_id(data);
        self.demux.feed(&frame.into_bytes());
    }
}
