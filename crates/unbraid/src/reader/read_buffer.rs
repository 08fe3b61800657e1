//! The rest of a read that is not decoded yet: a read may have any size, and one event of it may bring many updates.

use std::collections::VecDeque;

use tokio::time::Instant;
use unbraid_core::internal::Pipeline;

use super::{
    job_pacer::{GATHER_BYTES, JobPacer},
    outbox::Outbox,
};
use crate::blocking;

/// The longest block of a read, and the size from which a gathered read has its own blocks. Both decide only how early memory
/// is freed.
const BLOCK: usize = 256 * 1024;

/// Bytes that have been read and are decoded once everything before them has been delivered.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct ReadBuffer {
    content: Content,
    /// Whether large events, too, are decoded on the task, because no blocking thread took one in time.
    inline_only: bool,
    /// The bytes in blocks. Each is freed once it is decoded, because meanwhile the framer may keep as much.
    blocks: VecDeque<Vec<u8>>,
    /// How much of the first block has been decoded.
    decoded: usize,
    pacer: JobPacer,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Content {
    #[default]
    Empty,
    /// Something is left to decode. There may be no block, because the pipeline can keep a line of what it took.
    Portions,
    /// A large event may end in the first block, so that block is decoded on a blocking thread. More reads are gathered.
    LargeEvent,
}

impl ReadBuffer {
    pub(super) fn is_empty(&self) -> bool {
        self.content == Content::Empty
    }

    /// Whether a further read may be added: the buffer is empty, or still gathers what may end a large event.
    pub(super) fn accepts_read(&self) -> bool {
        self.is_empty() || (self.has_large_event() && !self.is_full())
    }

    fn is_full(&self) -> bool {
        self.blocks.len() != 1 || self.first_block().len() >= GATHER_BYTES
    }

    /// Decodes a portion of a read and keeps the rest, or gathers the read. Call it only if the buffer
    /// [`accepts_read`](Self::accepts_read).
    pub(super) fn read(&mut self, bytes: &[u8], pipeline: &mut Pipeline<Outbox>) {
        if self.has_large_event() {
            return self.gather(bytes);
        }
        let mut rest = bytes;
        let ends_large = self.ends_large_event(bytes, pipeline);
        // The usual read is decoded from the slice of the source, and nothing of it is copied.
        if !ends_large && !pipeline.feed_portion(&mut rest) {
            return;
        }
        self.blocks = rest.chunks(BLOCK).map(<[u8]>::to_vec).collect();
        self.content = Content::Portions; // each block is checked by itself, before it is decoded
    }

    fn gather(&mut self, bytes: &[u8]) {
        match self.blocks.back_mut() {
            Some(block) if bytes.len() < GATHER_BYTES => block.extend_from_slice(bytes),
            _ => self.blocks.extend(bytes.chunks(BLOCK).map(<[u8]>::to_vec)),
        }
    }

    /// Whether the next portion may end a large event, which is then decoded on a blocking thread. From then on further
    /// reads are gathered.
    pub(super) fn check_large_event(&mut self, pipeline: &Pipeline<Outbox>) -> bool {
        if self.content == Content::Portions && self.ends_large_event(self.first_block(), pipeline)
        {
            self.content = Content::LargeEvent;
        }
        self.has_large_event()
    }

    pub(super) fn has_large_event(&self) -> bool {
        self.content == Content::LargeEvent
    }

    /// Whether what is gathered should be decoded even if the source has more.
    pub(super) fn is_due(&self) -> bool {
        self.is_full() || self.next_job().is_none()
    }

    /// When what is gathered may be decoded, however little it is; `None` if that is now.
    pub(super) fn next_job(&self) -> Option<Instant> {
        self.pacer.next_job()
    }

    pub(super) fn record_job(&mut self) {
        self.pacer.record_job();
    }

    #[inline]
    fn ends_large_event(&self, bytes: &[u8], pipeline: &Pipeline<Outbox>) -> bool {
        self.uses_blocking_threads() && blocking::may_end_large(pipeline.update_reader(), bytes)
    }

    pub(super) fn uses_blocking_threads(&self) -> bool {
        !self.inline_only
    }

    /// From here on large events, too, are decoded on the task.
    pub(super) fn stop_using_blocking_threads(&mut self) {
        self.inline_only = true;
    }

    /// What is left of the first block.
    pub(super) fn first_block(&self) -> &[u8] {
        let first = self.blocks.front().map_or(&[][..], Vec::as_slice);
        first.get(self.decoded..).unwrap_or_default()
    }

    /// Decodes the next portion; returns false if there is none.
    pub(super) fn feed(&mut self, pipeline: &mut Pipeline<Outbox>) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut rest = self.first_block();
        let length = rest.len();
        let more = pipeline.feed_portion(&mut rest);
        let (taken, used_up) = (length - rest.len(), rest.is_empty());
        self.decoded += taken;
        if used_up {
            self.blocks.pop_front();
            self.decoded = 0;
        }
        self.content = if more || !self.blocks.is_empty() {
            Content::Portions
        } else {
            Content::Empty
        };
        // What follows the end of the stream is ignored (S26), so it need not be kept until the handles are dropped.
        if pipeline.router().closed().is_some() {
            self.blocks.clear();
            (self.decoded, self.content) = (0, Content::Empty);
        }
        true
    }
}
