//! Follows one upstream body with the core's own machinery, and writes its events to the log.
//!
//! The core decides which choices an event concerns, and when a choice ends. The data itself is copied once, into the
//! record, and nothing else parses it.

mod event;
mod lists;
mod role;
mod routed;

use std::{fmt, marker::PhantomData};

use serde::de::IgnoredAny;
use unbraid_core::{
    ChoiceIndex, Config, EventIndex, Limits, ServerError, StreamError, Update,
    internal::{Decoder, Frame, FrameError, FrameKind, FrameLimits, Framer, Router},
};

pub use self::role::{ChunkText, Identity, Role, TrackedChoice};
use self::{
    event::{Decoded, Entry, Held, PartName, Written, write},
    role::body_end,
    routed::Routed,
};
use crate::{End, Event, RecordBuilder};

/// Bytes of an event, as in the library.
const MAX_EVENT_BYTES: usize = unbraid_core::limits::MAX_EVENT_BYTES;

/// One upstream body.
// What a delta needs comes first: see docs/design/020.
#[repr(C)]
pub struct Tracker<C> {
    /// How its events are written.
    pub role: Role,
    is_done: bool,
    part_name: PartName,
    /// Choices that were cancelled and whose deltas still arrive.
    discarded: Vec<ChoiceIndex>,
    /// The last events, if they have nothing but usage and it is not known whether the body has all choices.
    held: Held,
    routed: Routed,
    framer: Framer,
    decoder: Decoder,
    router: Router,
    chunks: PhantomData<fn() -> C>,
}

impl<C: ChunkText> Tracker<C> {
    /// A body of which nothing was read.
    #[must_use]
    pub fn new(role: Role, max_choices: u32) -> Self {
        let single = match role {
            Role::Single(index) => Some(index),
            Role::Whole | Role::MaybeWhole => None,
        };
        let choices = if single.is_some() { 1 } else { max_choices };
        let limits = Limits::default()
            .with_choices(choices as usize)
            // The bytes of the log are limited, and not those of the transcripts, which the gateway does not keep.
            .with_choice_bytes(u64::MAX)
            .with_completion_bytes(u64::MAX);
        let config = Config::default().with_limits(limits);
        Self {
            role,
            chunks: PhantomData,
            framer: Framer::new(FrameLimits::new(MAX_EVENT_BYTES, MAX_EVENT_BYTES), false),
            decoder: Decoder::new(false, config.limits.json_depth),
            router: Router::new(config),
            routed: Routed::new(single),
            discarded: Vec::new(),
            held: Held::default(),
            part_name: PartName::default(),
            is_done: false,
        }
    }

    /// Takes the next bytes of the body.
    pub fn feed(&mut self, bytes: &[u8], identity: &mut Identity, log: &mut RecordBuilder) {
        let mut input = bytes;
        while self.router.closed().is_none() {
            let Self {
                framer,
                decoder,
                router,
                routed,
                discarded,
                part_name,
                is_done,
                ..
            } = self;
            let Some(frame) = framer.next(&mut input) else {
                return;
            };
            let mut event = Decoded {
                decoder,
                router,
                routed,
                discarded,
                is_done,
            };
            match frame {
                Ok(frame) => {
                    let path = event.decode(&frame);
                    let entry = Entry::of(&frame, path, part_name, event.router, event.routed);
                    // The entry borrows the framer only, so the other fields can be used again.
                    write::<C>(
                        entry,
                        Written {
                            role: self.role,
                            routed: &mut self.routed,
                            discarded: &self.discarded,
                            held: &mut self.held,
                            metadata: self.router.metadata(),
                            identity,
                        },
                        log,
                    );
                }
                Err(error) => self.abort(framing_error(error)),
            }
            self.write_ends(identity, log);
        }
    }

    /// Ends the body with an error, after what its dialect has held back. The only choice of a body gets the error, also if nothing
    /// of it has arrived.
    fn abort(&mut self, error: StreamError) {
        self.open_single();
        let Self {
            decoder,
            router,
            routed,
            ..
        } = self;
        if router.closed().is_none() {
            decoder.finish_updates(false, &mut |update| router.update(update, routed));
        }
        router.abort(error, routed);
    }

    /// Takes the end of the body, or the error that ended it.
    pub fn finish(
        &mut self,
        error: Option<StreamError>,
        identity: &mut Identity,
        log: &mut RecordBuilder,
    ) {
        if self.router.closed().is_none() {
            self.finish_frames(identity, log);
        }
        match error {
            Some(error) => self.abort(error),
            None => {
                let Self {
                    framer,
                    decoder,
                    router,
                    routed,
                    ..
                } = self;
                if router.closed().is_none() {
                    if framer.ends_inside() {
                        decoder.cut_before_data();
                    }
                    // What a dialect has held back until here, without an event of its own.
                    decoder.finish_updates(true, &mut |update| router.update(update, routed));
                }
                router.finish(framer.bytes(), framer.seen_field(), routed);
            }
        }
        self.write_ends(identity, log);
    }

    /// Takes an event that is complete except for its blank line. An event that was cut off is dropped: its JSON could not
    /// be parsed by any client.
    fn finish_frames(&mut self, identity: &mut Identity, log: &mut RecordBuilder) {
        loop {
            let rest = match self.framer.finish() {
                Some(Ok(frame)) => {
                    let complete = frame.kind != FrameKind::Truncated || is_complete(frame.data);
                    if !complete {
                        self.decoder.discard_cut(frame.data);
                    }
                    complete.then(|| {
                        let name = frame.event.map(<[u8]>::to_vec);
                        (name, frame.data.to_vec(), frame.kind, frame.is_later_part)
                    })
                }
                Some(Err(error)) => {
                    self.abort(framing_error(error));
                    None
                }
                None => return,
            };
            let Some((name, data, kind, is_later_part)) = rest else {
                continue;
            };
            if self.router.closed().is_some() {
                continue;
            }
            let mut frame = Frame::of_data(&data, 0);
            frame.event = name.as_deref();
            frame.is_later_part = is_later_part;
            if kind != FrameKind::Truncated {
                frame.kind = kind;
            }
            let path = Decoded {
                decoder: &mut self.decoder,
                router: &mut self.router,
                routed: &mut self.routed,
                discarded: &self.discarded,
                is_done: &mut self.is_done,
            }
            .decode(&frame);
            let part_name = &mut self.part_name;
            let entry = Entry::of(&frame, path, part_name, &self.router, &self.routed);
            let written = Written {
                role: self.role,
                routed: &mut self.routed,
                discarded: &self.discarded,
                held: &mut self.held,
                metadata: self.router.metadata(),
                identity,
            };
            write::<C>(entry, written, log);
            self.write_ends(identity, log);
        }
    }

    /// Writes the events that were held back, because the body has all choices; or drops them, because it has one.
    pub fn resolve_held(&mut self, is_whole: bool, log: &mut RecordBuilder) {
        if is_whole {
            self.held.release(log);
        }
        drop(self.held.take());
    }

    /// The bytes of the events that are held back.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// No byte arrived for a while: choices with a finish reason end.
    pub fn handle_idle(&mut self, identity: &Identity, log: &mut RecordBuilder) {
        self.router.handle_idle(&mut self.routed);
        self.write_ends(identity, log);
    }

    /// Writes the ends of choices. The only choice of a body that failed gets a last chunk that says so, and waits for the
    /// first chunk of another body, whose id it has.
    fn write_ends(&mut self, identity: &Identity, log: &mut RecordBuilder) {
        let is_early = matches!(self.role, Role::Single(_)) && !identity.has_chunks;
        if !(is_early && self.routed.new_failure().is_some()) {
            self.write_late_ends(identity, log);
        }
    }

    /// Writes the end of a failed choice that waits for the first chunk of the answer.
    pub fn write_late_ends(&mut self, identity: &Identity, log: &mut RecordBuilder) {
        if let Role::Single(index) = self.role
            && let Some(end) = self.routed.new_failure()
        {
            let chunk = C::failed(identity, index, end, self.server_error());
            log.push(&Event::Synthetic {
                choices: (&[index][..]).into(),
                payload: chunk.as_bytes(),
            });
        }
        self.routed.write_ends(log);
    }

    /// The error that the server reported inside the body, which has ended it.
    #[must_use]
    pub fn server_error(&self) -> Option<&ServerError> {
        match self.router.closed() {
            Some(Err(StreamError::Server(error))) => Some(error),
            _ => None,
        }
    }

    /// Whether silence ends a choice.
    #[must_use]
    pub fn has_finished_choices(&self) -> bool {
        self.router.closed().is_none() && self.router.has_finished_choices()
    }

    /// Cancels a choice, also one that has not appeared. Returns false if it had ended before.
    pub fn cancel(
        &mut self,
        index: ChoiceIndex,
        identity: &Identity,
        log: &mut RecordBuilder,
    ) -> bool {
        if self.router.closed().is_some() {
            return false;
        }
        let wire_index = match self.role {
            Role::Single(_) => self.routed.wire_index().unwrap_or_default(),
            Role::Whole | Role::MaybeWhole => index,
        };
        if self.router.slot(wire_index).is_none() {
            // It opens with an update that brings nothing, as part of the last event, so that no other choice ends.
            let last = EventIndex(self.decoder.events().saturating_sub(1));
            let update = Update::default()
                .with_event_index(last)
                .with_choice(wire_index);
            self.router.update(&update, &mut self.routed);
            self.routed.clear_touched();
        }
        let Some(slot) = self.router.slot(wire_index) else {
            return false;
        };
        if !self.router.cancel(slot, &mut self.routed) {
            return false;
        }
        self.discarded.push(wire_index);
        if self.routed.finish_reason(index).is_none() {
            let chunk = C::cancelled(identity, index);
            log.push(&Event::Synthetic {
                choices: (&[index][..]).into(),
                payload: chunk.as_bytes(),
            });
        }
        self.write_ends(identity, log);
        true
    }

    /// Whether a choice of the body was cancelled.
    #[must_use]
    pub fn has_cancelled(&self) -> bool {
        !self.discarded.is_empty()
    }

    /// Opens the choice of a single body that failed before its first event.
    pub fn open_single(&mut self) {
        let last = EventIndex(self.decoder.events().saturating_sub(1));
        self.routed.open_single(&mut self.router, last);
    }

    /// How the stream of this body alone ends.
    #[must_use]
    pub fn end(&self) -> End {
        body_end(self.closed(), self.is_done, self.choices())
    }

    /// The result of the body, once it has ended.
    #[must_use]
    pub fn closed(&self) -> Option<&Result<(), StreamError>> {
        self.router.closed()
    }

    /// Whether the body's own end mark has arrived.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// The bytes of the body so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.framer.bytes()
    }

    /// The choices that have appeared.
    #[must_use]
    pub fn choices(&self) -> &[TrackedChoice] {
        self.routed.choices()
    }

    /// Whether a delta of a choice has arrived after it was cancelled.
    #[must_use]
    pub fn has_dropped_from(&self, choice: ChoiceIndex) -> bool {
        self.routed.has_dropped_from(choice)
    }

    /// The reported usage.
    #[must_use]
    pub fn usage(&self) -> Option<serde_json::Value> {
        let usage = self.router.usage().raw;
        (!usage.is_null()).then_some(usage)
    }
}

fn is_complete(data: &[u8]) -> bool {
    data.trim_ascii() == b"[DONE]" || serde_json::from_slice::<IgnoredAny>(data).is_ok()
}

fn framing_error(error: FrameError) -> StreamError {
    use unbraid_core::{Limit, LimitExceeded};

    let limit = match error {
        FrameError::LineTooLong { .. } => Limit::Line,
        _ => Limit::Event,
    };
    StreamError::Limit(LimitExceeded::new(limit, MAX_EVENT_BYTES as u64))
}

/// Shows counts, and nothing that the upstream has sent.
impl<C> fmt::Debug for Tracker<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("role", &self.role)
            .field("bytes", &self.framer.bytes())
            .finish_non_exhaustive()
    }
}
