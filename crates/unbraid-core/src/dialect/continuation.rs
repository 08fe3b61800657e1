//! Values that only continue one text, which the decoder's templates match without parsing them.

use super::lane::Lane;
use crate::node::Node;

/// A value that only continues one text: its parts that the next such value may have otherwise.
pub(crate) struct Continuation<'n, 'a> {
    pub(crate) place: Place,
    /// The string that holds the text.
    pub(crate) text: &'n Node<'a>,
    /// Values that are not read: sequence numbers, padding.
    pub(crate) unread: Vec<&'n Node<'a>>,
    /// The index of the choice, if the value has one.
    pub(crate) index: Option<&'n Node<'a>>,
    /// Usage, of which any number may differ.
    pub(crate) usage: Option<&'n Node<'a>>,
    /// The value with the text, if that is also an entry of a list of the message.
    pub(crate) entry: Option<Entry<'n, 'a>>,
}

/// An entry of a list of the message, which the next such value adds as well.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'n, 'a> {
    pub(crate) list: &'static str,
    pub(crate) node: &'n Node<'a>,
}

impl<'n, 'a> Continuation<'n, 'a> {
    /// A value whose text alone may differ.
    pub(crate) fn new(place: Place, text: &'n Node<'a>) -> Self {
        Self {
            place,
            text,
            unread: Vec::new(),
            index: None,
            usage: None,
            entry: None,
        }
    }
}

/// What a value continues, in the terms of its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// An open block of a message, by its index.
    Block { index: i64, lane: BlockLane },
    /// An item of a response.
    Item(ItemPlace),
    /// A candidate, by the index of its choice.
    Candidate,
}

/// What a block's delta continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockLane {
    Text,
    Thinking,
    /// The arguments of the call with this ordinal.
    Arguments(i64),
}

/// What an event of a response continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemPlace {
    /// The item's `output_index`.
    pub(crate) index: i64,
    /// Whether the event has the item's id as well.
    pub(crate) has_id: bool,
    pub(crate) lane: ItemLane,
}

/// One of the texts of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ItemLane {
    Text {
        lane: Lane,
        /// Whether reasoning is a summary; `None` for any other text.
        is_summary: Option<bool>,
        /// The number of the part.
        part: i64,
    },
    /// The arguments of the call with this ordinal.
    Arguments(i64),
}
