//! What of a read is put off: a read may be of any size, and an event of it may bring many updates.

use std::collections::VecDeque;

use unbraid_core::pipeline::Pipeline;

use super::outbox::Outbox;
use crate::apart;

/// The bytes of the last read that are still to be decoded, once what came before them is delivered.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// In blocks, each freed when it is decoded: meanwhile the framer may keep as much.
    blocks: VecDeque<Vec<u8>>,
    /// How much of the first block was decoded.
    done: usize,
    /// Whether something is left to do: the pipeline may have kept a line of what it took.
    more: bool,
    /// Whether large events, too, are decoded on the task: no other thread had time for one.
    here: bool,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        !self.more
    }

    /// Decodes a portion of a read, and keeps the rest. Nothing may be held.
    pub(super) fn read(&mut self, bytes: &[u8], pipeline: &mut Pipeline<Outbox>) {
        const BLOCK: usize = 256 * 1024; // only decides how early memory is freed
        let mut rest = bytes;
        self.more = self.ends_large(bytes, pipeline) || pipeline.feed_portion(&mut rest);
        if self.more {
            self.blocks = rest.chunks(BLOCK).map(<[u8]>::to_vec).collect();
        }
    }

    /// Whether the next portion may end a large event, which is to be decoded apart.
    pub(super) fn is_large(&self, pipeline: &Pipeline<Outbox>) -> bool {
        !self.is_empty() && self.ends_large(self.first(), pipeline)
    }

    /// Decides only where a portion is decoded: its events are the same on either thread.
    #[inline]
    fn ends_large(&self, bytes: &[u8], pipeline: &Pipeline<Outbox>) -> bool {
        self.is_apart() && apart::may_end_large(pipeline.intake(), bytes)
    }

    /// Whether large events are decoded apart. Asking again once there was no thread would cost time, and nothing else.
    pub(super) fn is_apart(&self) -> bool {
        !self.here
    }

    /// From here on they are decoded on the task.
    pub(super) fn stay(&mut self) {
        self.here = true;
    }

    /// What is left of the first block.
    pub(super) fn first(&self) -> &[u8] {
        let first = self.blocks.front().map_or(&[][..], Vec::as_slice);
        first.get(self.done..).unwrap_or_default()
    }

    /// Decodes the next portion of what is held; false if that is nothing.
    pub(super) fn feed(&mut self, pipeline: &mut Pipeline<Outbox>) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut rest = self.first();
        let length = rest.len();
        let more = pipeline.feed_portion(&mut rest);
        let (taken, used_up) = (length - rest.len(), rest.is_empty());
        self.done += taken;
        if used_up {
            self.blocks.pop_front();
            self.done = 0;
        }
        self.more = more || !self.blocks.is_empty();
        if pipeline.router().closed().is_some() {
            self.blocks.clear();
            (self.done, self.more) = (0, false);
        }
        true
    }
}
