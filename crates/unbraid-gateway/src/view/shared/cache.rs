//! What one reader has computed and others use.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, Weak},
};

use bytes::Bytes;
use unbraid_log::Seq;

use super::lock;
use crate::view::{Target, chunk::Cuts};

/// The cuts of a stream's chunks, by the number of the event. It is empty until a view of one choice is read.
#[derive(Debug, Default)]
pub(super) struct CutCache {
    cuts: Vec<Option<Cuts>>,
}

impl CutCache {
    /// Beyond this number of events the cuts are found each time, so that a number from a foreign log cannot make the
    /// list large.
    const MAX_EVENTS: usize = 1 << 20;

    pub(super) fn get_or_find(&mut self, seq: Seq, find: impl FnOnce() -> Cuts) -> Cuts {
        let slot = usize::try_from(seq.0).unwrap_or(usize::MAX);
        if slot >= Self::MAX_EVENTS {
            return find();
        }
        if slot >= self.cuts.len() {
            self.cuts.resize(slot + 1, None);
        }
        match self.cuts.get_mut(slot) {
            Some(slot) => slot.get_or_insert_with(find).clone(),
            None => find(),
        }
    }
}

/// The latest frame of each view that has readers.
#[derive(Debug, Default)]
pub(super) struct FrameCache {
    frames: HashMap<Target, Weak<SharedFrame>>,
}

impl FrameCache {
    pub(super) fn of(&mut self, target: Target) -> Arc<SharedFrame> {
        if let Some(frame) = self.frames.get(&target).and_then(Weak::upgrade) {
            return frame;
        }
        self.frames.retain(|_, frame| frame.strong_count() > 0);
        let frame = Arc::new(SharedFrame::default());
        self.frames.insert(target, Arc::downgrade(&frame));
        frame
    }
}

/// The latest frame of one view. Readers that are at the same position share its bytes.
#[derive(Debug, Default)]
pub(in crate::view) struct SharedFrame(Mutex<Option<LastFrame>>);

#[derive(Debug, Clone)]
pub(in crate::view) struct LastFrame {
    /// The reader's next number before and after the frame.
    pub(in crate::view) from: Seq,
    pub(in crate::view) to: Seq,
    pub(in crate::view) bytes: Bytes,
    /// The id of its last event.
    pub(in crate::view) last_id: Seq,
}

impl SharedFrame {
    pub(in crate::view) fn get(&self, from: Seq, to: Seq) -> Option<LastFrame> {
        let last = lock(&self.0);
        let last = last.as_ref()?;
        (last.from == from && last.to == to).then(|| last.clone())
    }

    pub(in crate::view) fn set(&self, frame: LastFrame) {
        let _previous = lock(&self.0).replace(frame);
    }
}
