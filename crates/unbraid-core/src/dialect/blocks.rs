//! The open blocks of a message whose parts have an index: Anthropic's and Bedrock's.

use super::{
    calls::{Call, Stopped},
    object::Object,
    reader::Output,
};
use crate::limits::{MAX_ENTRIES, MAX_EVENT_BYTES};

/// The blocks that have started and not stopped, by their index, which is a key and not a position (D12).
#[derive(Default)]
pub(crate) struct Blocks {
    open: Vec<(i64, Block)>,
    /// The calls and objects that have stopped, of which more may arrive where events are reordered (A8).
    stopped: Vec<(i64, Stopped)>,
}

/// One block.
pub(crate) enum Block {
    Text,
    /// An object that is too long to be kept.
    Dropped,
    /// A call that the client answers.
    Call(Call),
    /// An object that is kept in a list of the message when it is complete.
    Object {
        list: &'static str,
        /// The key under which the provider has it, if its objects have one.
        key: &'static str,
        object: Object,
    },
}

impl Blocks {
    pub(crate) fn get_mut(&mut self, index: i64) -> Option<&mut Block> {
        let blocks = self.open.iter_mut().rev();
        let (_, block) = blocks.into_iter().find(|(known, _)| *known == index)?;
        Some(block)
    }

    pub(crate) fn get(&self, index: i64) -> Option<&Block> {
        let mut blocks = self.open.iter().rev();
        let (_, block) = blocks.find(|(known, _)| *known == index)?;
        Some(block)
    }

    /// The index of the block that started last.
    pub(crate) fn latest(&self) -> Option<i64> {
        self.open.last().map(|(index, _)| *index)
    }

    /// Adds a block. Beyond the limit the oldest one is returned, and has to be closed.
    pub(crate) fn insert(&mut self, index: i64, block: Block) -> Option<(i64, Block)> {
        let is_full = self.open.len() >= MAX_ENTRIES;
        let oldest = is_full.then(|| self.open.remove(0));
        self.stopped.retain(|(known, _)| *known != index);
        self.open.push((index, block));
        oldest
    }

    /// Notes that a block has stopped.
    pub(crate) fn stopped(&mut self, index: i64, block: Stopped) {
        if self.stopped.len() >= MAX_ENTRIES {
            self.stopped.remove(0);
        }
        self.stopped.push((index, block));
    }

    /// The call with this index that has stopped, if the block was one.
    pub(crate) fn stopped_call(&self, index: i64) -> Option<&Call> {
        let mut stopped = self.stopped.iter().rev();
        match stopped.find(|(known, _)| *known == index)? {
            (_, Stopped::Call(call)) => Some(call),
            (_, Stopped::Object) => None,
        }
    }

    /// Takes what is known of the block with this index that has stopped. An object remains stopped.
    pub(crate) fn take_stopped(&mut self, index: i64) -> Option<Stopped> {
        let mut stopped = self.stopped.iter();
        let at = stopped.rposition(|(known, _)| *known == index)?;
        match self.stopped.get(at) {
            Some((_, Stopped::Object)) => Some(Stopped::Object),
            Some((_, Stopped::Call(_))) => Some(self.stopped.remove(at).1),
            None => None,
        }
    }

    pub(crate) fn remove(&mut self, index: i64) -> Option<Block> {
        let at = self.open.iter().rposition(|(known, _)| *known == index)?;
        Some(self.open.remove(at).1)
    }

    /// Removes all blocks, in the order of their starts.
    pub(crate) fn take(&mut self) -> Vec<(i64, Block)> {
        std::mem::take(&mut self.open)
    }

    /// Iterates over the open calls.
    pub(crate) fn calls(&mut self) -> impl Iterator<Item = &mut Call> {
        self.open.iter_mut().filter_map(|(_, block)| match block {
            Block::Call(call) => Some(call),
            Block::Text | Block::Dropped | Block::Object { .. } => None,
        })
    }

    /// Whether a text of this length can be added to an object.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        /// A field that the object does not have yet.
        const FIELD: usize = 64;
        self.bytes() + length + FIELD <= MAX_EVENT_BYTES
    }

    fn bytes(&self) -> usize {
        self.open.iter().map(|(_, block)| block.bytes()).sum()
    }

    /// Drops the largest object if all of them together are longer than an event may be.
    pub(crate) fn check_size(&mut self, output: &mut Output<'_>) {
        if self.bytes() <= MAX_EVENT_BYTES {
            return;
        }
        let largest = self.open.iter_mut().max_by_key(|(_, block)| block.bytes());
        if let Some((_, block)) = largest {
            *block = Block::Dropped;
            output.warn("D16", "a block that is too long was not kept");
        }
    }
}

impl Block {
    /// How many bytes it keeps.
    fn bytes(&self) -> usize {
        match self {
            Self::Object { object, .. } => object.bytes(),
            Self::Text | Self::Dropped | Self::Call(_) => 0,
        }
    }
}
