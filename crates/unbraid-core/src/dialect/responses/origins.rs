//! Which streamed item each item of the final output is (P10).

use std::{borrow::Cow, collections::HashMap};

use super::{
    Responses,
    item::{Item, ItemKind},
    whole::{ItemType, item_type, other_type},
};
use crate::{dialect::reader::text, node::Node};

/// What an item of the final output is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemOrigin {
    /// A streamed item, by its ordinal.
    Streamed(u64),
    /// An item that was not streamed.
    New,
    /// One of the streamed items, or none: nothing shows which.
    Unknown,
}

impl ItemOrigin {
    /// The ordinal of a streamed item.
    pub(super) fn streamed(self) -> Option<u64> {
        match self {
            Self::Streamed(ordinal) => Some(ordinal),
            Self::New | Self::Unknown => None,
        }
    }
}

/// The items of one type.
#[derive(Default)]
struct OfType<'k> {
    /// Positions in the final output.
    output: Vec<usize>,
    streamed: Vec<&'k Item>,
}

impl Responses {
    /// The origin of each item of the final output.
    ///
    /// Items of a type have the same order in both, but servers may have other ids there, or leave some out (P05, P10). So an item
    /// is a streamed one if it has its id; otherwise by its place among those of its type, if there are at least as many of them
    /// as were streamed.
    pub(super) fn origins(&self, output: &[Node<'_>]) -> Vec<ItemOrigin> {
        let mut types: HashMap<Cow<'_, str>, OfType<'_>> = HashMap::new();
        for (at, item) in output.iter().enumerate() {
            if let Some(name) = type_of(item) {
                types.entry(name).or_default().output.push(at);
            }
        }
        for item in &self.items {
            if let Some(of_type) = item.type_name().and_then(|name| types.get_mut(name)) {
                of_type.streamed.push(item);
            }
        }
        // Items beyond the limit are not known any more.
        let is_complete = self.opened == self.items.len() as u64;
        let mut origins = vec![ItemOrigin::Unknown; output.len()];
        for of_type in types.into_values() {
            of_type.assign(output, is_complete, &mut origins);
        }
        origins
    }
}

impl OfType<'_> {
    fn assign(mut self, output: &[Node<'_>], is_complete: bool, origins: &mut [ItemOrigin]) {
        let mut set = |at: usize, origin: ItemOrigin| {
            if let Some(known) = origins.get_mut(at) {
                *known = origin;
            }
        };
        let mut ids: HashMap<&str, u64> = HashMap::new();
        for item in &self.streamed {
            if let Some(id) = item.id.as_deref() {
                ids.entry(id).or_insert_with(|| item.ordinal());
            }
        }
        let mut by_id = Vec::new();
        self.output.retain(|at| {
            let id = output.get(*at).and_then(|item| text(item, "id"));
            let ordinal = id.and_then(|id| ids.remove(&*id));
            if let Some(ordinal) = ordinal {
                by_id.push(ordinal);
                set(*at, ItemOrigin::Streamed(ordinal));
            }
            ordinal.is_none()
        });
        by_id.sort_unstable();
        self.streamed
            .retain(|item| by_id.binary_search(&item.ordinal()).is_err());
        if !is_complete {
            return;
        }
        self.streamed.sort_by_key(|item| item.index);
        let (output, streamed) = (self.output, self.streamed);
        if output.len() >= streamed.len() {
            let known = streamed
                .iter()
                .map(|item| ItemOrigin::Streamed(item.ordinal()));
            let known = known.chain(std::iter::repeat(ItemOrigin::New));
            output
                .iter()
                .zip(known)
                .for_each(|(at, origin)| set(*at, origin));
        } else {
            // Some are missing here. Those beyond the ones that have ended are not among these.
            let ended = streamed.iter().filter(|item| item.is_done).count();
            output
                .iter()
                .skip(ended)
                .for_each(|at| set(*at, ItemOrigin::New));
        }
    }
}

impl Item {
    /// The type under which items are counted; `None` for calls, which have ids of their own.
    fn type_name(&self) -> Option<&str> {
        match self.kind {
            ItemKind::Message => Some("message"),
            ItemKind::Reasoning => Some("reasoning"),
            ItemKind::Other => Some(self.type_name.as_deref().unwrap_or_default()),
            ItemKind::Call(_) => None,
        }
    }
}

/// The same of an item of the final output.
fn type_of<'a>(item: &Node<'a>) -> Option<Cow<'a, str>> {
    match item_type(item) {
        ItemType::Message => Some("message".into()),
        ItemType::Reasoning => Some("reasoning".into()),
        ItemType::Other => Some(other_type(item).unwrap_or_default()),
        ItemType::Call { .. } => None,
    }
}
