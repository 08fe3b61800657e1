//! What of a read is put off: a read may be of any size, and an event of it may bring many updates.

use std::collections::VecDeque;

use unbraid_core::pipeline::Pipeline;

use super::outbox::Outbox;

/// The bytes of the last read that are still to be decoded, once what came before them is delivered.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// In blocks, each freed when it is decoded: meanwhile the framer may keep as much.
    blocks: VecDeque<Vec<u8>>,
    /// How much of the first block was decoded.
    done: usize,
    /// Whether something is left to do: the pipeline may have kept a line of what it took.
    more: bool,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        !self.more
    }

    /// Decodes a portion of a read, and keeps the rest. Nothing may be held.
    pub(super) fn read(&mut self, bytes: &[u8], pipeline: &mut Pipeline<Outbox>) {
        const BLOCK: usize = 256 * 1024;
        let mut rest = bytes;
        self.more = pipeline.feed_portion(&mut rest);
        if self.more {
            self.blocks = rest.chunks(BLOCK).map(<[u8]>::to_vec).collect();
        }
    }

    /// Decodes the next portion of what is held; false if that is nothing.
    pub(super) fn feed(&mut self, pipeline: &mut Pipeline<Outbox>) -> bool {
        if self.is_empty() {
            return false;
        }
        let first = self.blocks.front().map_or(&[][..], Vec::as_slice);
        let mut rest = first.get(self.done..).unwrap_or_default();
        let more = pipeline.feed_portion(&mut rest);
        self.done = first.len() - rest.len();
        if rest.is_empty() {
            self.blocks.pop_front();
            self.done = 0;
        }
        self.more = more || !self.blocks.is_empty();
        if pipeline.router().closed().is_some() {
            *self = Self::default();
        }
        true
    }
}
