//! What of a read is put off: a read may be of any size, and an event of it may bring many updates.

use std::collections::VecDeque;

use tokio::time::Instant;
use unbraid_core::pipeline::Pipeline;

use super::outbox::Outbox;
use crate::{
    apart,
    reader::gather::{GATHER_BYTES, Pace},
};

/// The longest block.
const BLOCK: usize = 256 * 1024;

/// The bytes of the last read that are still to be decoded, once what came before them is delivered.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// In blocks, each freed when it is decoded: meanwhile the framer may keep as much.
    blocks: VecDeque<Vec<u8>>,
    /// How much of the first block was decoded.
    done: usize,
    /// Whether something is left to do: the pipeline may have kept a line of what it took.
    more: bool,
    /// Whether a large event may end in the first block, so that it is decoded apart.
    large: bool,
    pace: Pace,
    /// Whether large events, too, are decoded on the task: no other thread had time for one.
    here: bool,
}

impl Held {
    pub(super) fn is_empty(&self) -> bool {
        !self.more
    }

    /// Whether a further read is taken: nothing is held, or what may end a large event is still gathered.
    pub(super) fn takes_more(&self) -> bool {
        self.is_empty() || (self.large && !self.is_full())
    }

    fn is_full(&self) -> bool {
        self.blocks.len() != 1 || self.first().len() >= GATHER_BYTES
    }

    /// Decodes a portion of a read, and keeps the rest; or adds it to what is gathered. Only if it
    /// [`takes_more`](Self::takes_more).
    pub(super) fn read(&mut self, bytes: &[u8], pipeline: &mut Pipeline<Outbox>) {
        if self.large {
            return self.gather(bytes);
        }
        let mut rest = bytes;
        self.large = self.ends_large(bytes, pipeline);
        self.more = self.large || pipeline.feed_portion(&mut rest);
        if self.more {
            self.blocks = rest.chunks(BLOCK).map(<[u8]>::to_vec).collect();
            self.large &= self.blocks.len() == 1; // of several blocks each is checked by itself
        }
    }

    fn gather(&mut self, bytes: &[u8]) {
        match self.blocks.back_mut() {
            Some(block) if bytes.len() < GATHER_BYTES => block.extend_from_slice(bytes),
            _ => self.blocks.extend(bytes.chunks(BLOCK).map(<[u8]>::to_vec)),
        }
    }

    /// Whether the next portion may end a large event, which is to be decoded apart. More is gathered from then on.
    pub(super) fn check_large(&mut self, pipeline: &Pipeline<Outbox>) -> bool {
        self.large = self.large || (!self.is_empty() && self.ends_large(self.first(), pipeline));
        self.large
    }

    /// Whether anything is gathered.
    pub(super) fn is_large(&self) -> bool {
        self.large
    }

    /// Whether what is gathered should be decoded although the source may have more.
    pub(super) fn is_due(&self) -> bool {
        self.is_full() || self.next_job().is_none()
    }

    /// When what is gathered may be decoded, however little it is; `None` if that is now.
    pub(super) fn next_job(&self) -> Option<Instant> {
        self.pace.next_job()
    }

    pub(super) fn job_ended(&mut self) {
        self.pace.job_ended();
    }

    #[inline]
    fn ends_large(&self, bytes: &[u8], pipeline: &Pipeline<Outbox>) -> bool {
        self.is_apart() && apart::may_end_large(pipeline.intake(), bytes)
    }

    /// Whether large events are decoded apart.
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
        self.large = false;
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
