//! One event: what the core makes of it, and what the log gets of it.

use std::borrow::Cow;

use unbraid_core::{
    ChoiceIndex, Metadata, StreamError, Update,
    internal::{Decoder, Frame, FrameKind, Router},
    limits::MAX_NAME_BYTES,
};

use super::{ChunkText, Identity, Role, lists::with_lists, routed::Routed};
use crate::{Event, RecordBuilder};

/// The parts of a tracker that decode an event.
pub(super) struct Decoded<'t> {
    pub(super) decoder: &'t mut Decoder,
    pub(super) router: &'t mut Router,
    pub(super) routed: &'t mut Routed,
    pub(super) discarded: &'t [ChoiceIndex],
    pub(super) is_done: &'t mut bool,
}

impl Decoded<'_> {
    pub(super) fn decode(&mut self, frame: &Frame<'_>) -> Path {
        self.routed.begin_event();
        let ordinary = |decoder: &Decoder| (decoder.template_hits(), decoder.scanned());
        let before = ordinary(self.decoder);
        let Self {
            decoder,
            router,
            routed,
            discarded,
            is_done,
        } = self;
        // Errors are those of strict mode, which is off.
        let _tolerant = decoder.decode(*frame, &mut |update: &Update<'_>| {
            **is_done |= update.done;
            routed.has_usage |= update.usage.is_some();
            if let Some(choice) = update.choice.filter(|choice| discarded.contains(choice)) {
                routed.note_dropped(choice);
            }
            // Nothing can open once the body has ended.
            if update.choice.is_none() && (update.error.is_some() || update.done) {
                routed.open_single(router, update.event_index);
            }
            router.update(update, *routed);
            if let Some(choice) = update.choice {
                routed.note(choice);
            }
        });
        match ordinary(decoder) == before {
            true => Path::Lenient,
            false => Path::Ordinary,
        }
    }
}

/// How the core has read an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    /// It has the structure that nearly all servers send.
    Ordinary,
    Lenient,
}

/// What an event is to the log.
pub(super) enum Entry<'f> {
    Chunk(Option<&'f str>, Cow<'f, [u8]>),
    Error(Option<&'f str>, &'f [u8]),
    /// The end mark, or something that is not an event.
    Nothing,
}

impl<'f> Entry<'f> {
    pub(super) fn of(
        frame: &Frame<'f>,
        path: Path,
        part_name: &'f mut PartName,
        router: &Router,
        routed: &Routed,
    ) -> Self {
        part_name.note(frame);
        let name = frame.event.or_else(|| part_name.of(frame));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let is_error = matches!(router.closed(), Some(Err(StreamError::Server(_))));
        match frame.kind {
            _ if is_error => Self::Error(name, frame.data),
            FrameKind::BareDone | FrameKind::Garbage | FrameKind::BareJson => Self::Nothing,
            _ if frame.data.trim_ascii() == b"[DONE]" => Self::Nothing,
            _ if routed.has_dropped && routed.touched().is_empty() => Self::Nothing,
            _ if path == Path::Ordinary => Self::Chunk(name, frame.data.into()),
            _ => {
                let lists = with_lists(frame.data).map(Cow::Owned);
                Self::Chunk(name, lists.unwrap_or(Cow::Borrowed(frame.data)))
            }
        }
    }
}

/// The name of the event that arrives in parts. Each of them becomes an event of its own, which needs the name, too.
#[derive(Default)]
pub(super) struct PartName(Vec<u8>);

impl PartName {
    /// Takes the name of the first part.
    fn note(&mut self, frame: &Frame<'_>) {
        if frame.kind == FrameKind::Line && (frame.event.is_some() || !frame.is_later_part) {
            self.0.clear();
            // A longer name is not written, either.
            let name = frame.event.filter(|name| name.len() <= MAX_NAME_BYTES);
            self.0.extend_from_slice(name.unwrap_or_default());
        }
    }

    fn of(&self, frame: &Frame<'_>) -> Option<&[u8]> {
        // S16: the blank line after a ping is missing, and what follows is not one.
        let is_known = frame.is_later_part && !self.0.is_empty() && self.0 != b"ping";
        is_known.then_some(&self.0)
    }
}

/// The parts of a tracker that write an event.
pub(super) struct Written<'t> {
    pub(super) role: Role,
    pub(super) routed: &'t mut Routed,
    pub(super) discarded: &'t [ChoiceIndex],
    pub(super) held: &'t mut Held,
    pub(super) metadata: &'t Metadata,
    pub(super) identity: &'t mut Identity,
}

pub(super) fn write<C: ChunkText>(entry: Entry<'_>, written: Written<'_>, log: &mut RecordBuilder) {
    // The first chunk of all bodies gives the identity.
    written.identity.absorb(written.metadata);
    let (name, payload) = match entry {
        Entry::Nothing => return,
        Entry::Error(name, payload) => {
            if !matches!(written.role, Role::Single(_)) {
                written.held.release(log);
                log.push(&Event::Error { name, payload });
                return;
            }
            // What the event has of the choice comes before its error (X4).
            let has_choice = !written.routed.touched().is_empty();
            let Some(chunk) = C::before_failure(payload).filter(|_| has_choice) else {
                return;
            };
            (name, Cow::Owned(chunk))
        }
        Entry::Chunk(name, payload) => (name, payload),
    };
    let payload = &*payload;
    let touched = written.routed.touched();
    let usage_only = touched.is_empty() && written.routed.has_usage;
    if let Role::Single(index) = written.role {
        // The usage of all bodies is summed at the end.
        if usage_only {
            return;
        }
        let refused = written.routed.refused();
        let rest = match refused {
            [] => None,
            _ => C::without_choices(payload, refused),
        };
        let payload = rest.as_deref().unwrap_or(payload);
        if let Some(chunk) = C::merged(payload, index, &written.identity.metadata) {
            written.identity.has_chunks = true;
            push(log, touched, name, chunk.as_bytes());
        }
        return;
    }
    if written.role == Role::MaybeWhole && usage_only {
        return written.held.push(name, payload);
    }
    written.identity.has_chunks = true;
    // Usage that is followed by more was not the usage of the whole body, and keeps its place.
    written.held.release(log);
    if written.routed.has_dropped {
        if let Some(chunk) = C::without_choices(payload, written.discarded) {
            push(log, touched, name, &chunk);
        }
    } else {
        push(log, touched, name, payload);
    }
}

fn push(log: &mut RecordBuilder, choices: &[ChoiceIndex], name: Option<&str>, payload: &[u8]) {
    log.push(&Event::Chunk {
        choices: choices.into(),
        name,
        payload,
    });
}

/// Events that are held back.
#[derive(Default)]
pub(super) struct Held {
    events: Vec<(Option<String>, Vec<u8>)>,
    bytes: u64,
}

impl Held {
    fn push(&mut self, name: Option<&str>, payload: &[u8]) {
        self.bytes += payload.len() as u64 + HELD_EVENT;
        self.events
            .push((name.map(str::to_owned), payload.to_vec()));
    }

    /// The memory that they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn release(&mut self, log: &mut RecordBuilder) {
        for (name, payload) in self.take() {
            push(log, &[], name.as_deref(), &payload);
        }
    }

    pub(super) fn take(&mut self) -> Vec<(Option<String>, Vec<u8>)> {
        self.bytes = 0;
        std::mem::take(&mut self.events)
    }
}

/// What an event takes beside its payload.
const HELD_EVENT: u64 = 64;
