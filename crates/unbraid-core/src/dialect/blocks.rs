//! The open blocks of a message whose parts have an index: Anthropic's and Bedrock's.

use super::{
    calls::{Call, Stopped},
    object::Object,
    reader::Output,
};
use crate::limits::{MAX_ENTRIES, MAX_EVENT_BYTES};

/// The blocks that have started and not stopped, by their index, which is a key and not a position (D12).
///
/// An object that has stopped waits here for those of its list that have started before it, whose stops are late or missing (A12):
/// the lists of the message are in the order of the starts.
#[derive(Default)]
pub(crate) struct Blocks {
    open: Vec<Open>,
    /// The calls and objects that have stopped, of which more may arrive where events are reordered (A8).
    stopped: Vec<(i64, Stopped)>,
}

/// How many lists the objects of these dialects have.
const LISTS: usize = 3;

/// The list that keeps what has to be sent back with the reasoning.
pub(crate) const THINKING: &str = "reasoning_details";

struct Open {
    index: i64,
    block: Block,
    has_stopped: bool,
    /// Whether another block with its index has started since it stopped.
    is_superseded: bool,
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
    /// A complete object, as JSON.
    Entry {
        list: &'static str,
        json: String,
    },
}

impl Blocks {
    pub(crate) fn get_mut(&mut self, index: i64) -> Option<&mut Block> {
        let at = self.position(index)?;
        self.open.get_mut(at).map(|open| &mut open.block)
    }

    pub(crate) fn get(&self, index: i64) -> Option<&Block> {
        let at = self.position(index)?;
        self.open.get(at).map(|open| &open.block)
    }

    fn position(&self, index: i64) -> Option<usize> {
        let mut blocks = self.open.iter();
        blocks.rposition(|open| open.index == index && !open.has_stopped)
    }

    /// The index of the block that started last.
    pub(crate) fn latest(&self) -> Option<i64> {
        let mut blocks = self.open.iter().rev();
        Some(blocks.find(|open| !open.has_stopped)?.index)
    }

    /// Adds a block. Beyond the limit the oldest one is returned, and has to be closed.
    pub(crate) fn insert(&mut self, index: i64, block: Block) -> Option<(i64, Block)> {
        let is_full = self.open.len() >= MAX_ENTRIES;
        let oldest = is_full.then(|| self.open.remove(0));
        self.stopped.retain(|(known, _)| *known != index);
        for open in self.open.iter_mut().filter(|open| open.has_stopped) {
            open.is_superseded |= open.index == index;
        }
        self.open.push(Open {
            index,
            block,
            has_stopped: false,
            is_superseded: false,
        });
        oldest.map(|open| (open.index, open.block))
    }

    /// Adds a complete object if it has to wait for others; returns its JSON if it has not.
    pub(crate) fn hold_entry(&mut self, list: &'static str, json: String) -> Option<String> {
        let holds = |open: &Open| !open.has_stopped && open.block.list() == Some(list);
        let is_held = self.open.iter().any(holds) && self.has_room_to_hold();
        if !is_held || self.open.len() >= MAX_ENTRIES {
            return Some(json);
        }
        self.open.push(Open {
            index: 0,
            block: Block::Entry { list, json },
            has_stopped: true,
            is_superseded: true,
        });
        None
    }

    /// Marks a block as stopped.
    pub(crate) fn stop(&mut self, index: i64) {
        if let Some(open) = self.position(index).and_then(|at| self.open.get_mut(at)) {
            open.has_stopped = true;
        }
    }

    /// Takes the next block that has stopped and waits for no other one.
    pub(crate) fn take_complete(&mut self) -> Option<(i64, Block)> {
        let keeps_order = self.has_room_to_hold();
        let mut held: [Option<&str>; LISTS] = [None; LISTS];
        let at = self.open.iter().position(|open| {
            let list = open.block.list();
            let is_held = list.is_some() && held.contains(&list);
            let holds = !open.has_stopped && keeps_order && list.is_some() && !is_held;
            if let Some(free) = held.iter_mut().find(|known| holds && known.is_none()) {
                *free = list;
            }
            open.has_stopped && !is_held
        })?;
        let open = self.open.remove(at);
        Some((open.index, open.block))
    }

    /// Takes the next object, although its stop is missing or it waits for others: nothing follows.
    pub(crate) fn take_last(&mut self) -> Option<(i64, Block)> {
        let at = self
            .open
            .iter()
            .position(|open| open.block.list().is_some())?;
        let open = self.open.remove(at);
        Some((open.index, open.block))
    }

    /// Whether objects may wait: what is kept has a limit, beyond which blocks are dropped.
    fn has_room_to_hold(&self) -> bool {
        self.bytes() <= MAX_EVENT_BYTES / 2
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
        let Some(at) = stopped.rposition(|(known, _)| *known == index) else {
            // Thinking has no fragments that could be mistaken for those of a call.
            let is_waiting = |open: &Open| {
                let is_object =
                    matches!(&open.block, Block::Object { list, .. } if *list != THINKING);
                open.index == index && open.has_stopped && !open.is_superseded && is_object
            };
            let is_waiting = self.open.iter().any(is_waiting);
            return is_waiting.then_some(Stopped::Object);
        };
        match self.stopped.get(at) {
            Some((_, Stopped::Object)) => Some(Stopped::Object),
            Some((_, Stopped::Call(_))) => Some(self.stopped.remove(at).1),
            None => None,
        }
    }

    /// Removes all blocks, in the order of their starts.
    pub(crate) fn take(&mut self) -> Vec<(i64, Block)> {
        let open = std::mem::take(&mut self.open).into_iter();
        open.map(|open| (open.index, open.block)).collect()
    }

    /// Iterates over the open calls.
    pub(crate) fn calls(&mut self) -> impl Iterator<Item = &mut Call> {
        self.open
            .iter_mut()
            .filter_map(|open| match &mut open.block {
                Block::Call(call) => Some(call),
                Block::Text | Block::Dropped | Block::Object { .. } | Block::Entry { .. } => None,
            })
    }

    /// Reports the arguments that the starts of calls brought, but not those of the call with this index: they are complete once
    /// anything else arrives, although the stop is missing (A07, A12).
    pub(crate) fn flush_calls_beside(&mut self, index: i64, choice: u32, output: &mut Output<'_>) {
        for open in self.open.iter_mut().filter(|open| open.index != index) {
            if let Block::Call(call) = &mut open.block {
                call.flush(choice, output);
            }
        }
    }

    /// Whether a text of this length can be added to an object.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        /// A field that the object does not have yet.
        const FIELD: usize = 64;
        self.bytes() + length + FIELD <= MAX_EVENT_BYTES
    }

    fn bytes(&self) -> usize {
        self.open.iter().map(|open| open.block.bytes()).sum()
    }

    /// Drops the largest object if all of them together are longer than an event may be.
    pub(crate) fn check_size(&mut self, output: &mut Output<'_>) {
        if self.bytes() <= MAX_EVENT_BYTES {
            return;
        }
        let largest = self.open.iter_mut().max_by_key(|open| open.block.bytes());
        if let Some(open) = largest {
            open.block = Block::Dropped;
            output.warn("D16", "a block that is too long was not kept");
        }
    }
}

impl Block {
    /// The list of the message of which it becomes an entry.
    fn list(&self) -> Option<&'static str> {
        match self {
            Self::Object { list, .. } | Self::Entry { list, .. } => Some(list),
            Self::Text | Self::Dropped | Self::Call(_) => None,
        }
    }

    /// How many bytes it keeps.
    fn bytes(&self) -> usize {
        match self {
            Self::Object { object, .. } => object.bytes(),
            Self::Entry { json, .. } => json.len(),
            Self::Text | Self::Dropped | Self::Call(_) => 0,
        }
    }
}
