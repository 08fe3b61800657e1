//! The open blocks of a message whose parts have an index: Anthropic's and Bedrock's.

use super::{calls::Call, object::Object, reader::Output};
use crate::limits::{MAX_ENTRIES, MAX_EVENT_BYTES};

/// The blocks that have started and not stopped, by their index, which is a key and not a position (D12).
#[derive(Default)]
pub(crate) struct Blocks {
    open: Vec<(i64, Block)>,
}

/// One block.
pub(crate) enum Block {
    Text,
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
    pub(crate) fn insert(&mut self, index: i64, block: Block) -> Option<Block> {
        let is_full = self.open.len() >= MAX_ENTRIES;
        let oldest = is_full.then(|| self.open.remove(0).1);
        self.open.push((index, block));
        oldest
    }

    pub(crate) fn remove(&mut self, index: i64) -> Option<Block> {
        let at = self.open.iter().rposition(|(known, _)| *known == index)?;
        Some(self.open.remove(at).1)
    }

    /// Removes all blocks, in the order of their starts.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Block> + use<> {
        std::mem::take(&mut self.open)
            .into_iter()
            .map(|(_, block)| block)
    }

    /// Iterates over the open calls.
    pub(crate) fn calls(&mut self) -> impl Iterator<Item = &mut Call> {
        self.open.iter_mut().filter_map(|(_, block)| match block {
            Block::Call(call) => Some(call),
            Block::Text | Block::Object { .. } => None,
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
            *block = Block::Text;
            output.warn("D16", "a block that is too long was not kept");
        }
    }
}

impl Block {
    /// How many bytes it keeps.
    fn bytes(&self) -> usize {
        match self {
            Self::Object { object, .. } => object.bytes(),
            Self::Text | Self::Call(_) => 0,
        }
    }
}
