//! Citations: one by one while a text is streamed, and all of a part or a message with its complete value (D13).

use super::{
    CHOICE, Responses,
    cited::Cited,
    item::{ItemKind, part_of},
    key::Key,
};
use crate::{
    dialect::reader::{Lane, Output, entries, raw},
    node::Node,
};

impl Responses {
    /// One citation.
    pub(super) fn citation<'a>(&mut self, event: &Node<'a>, output: &mut Output<'a>) {
        if let Some(citation) = event.get("annotation").filter(|node| node.is_set()) {
            if let Some(item) = self.item(&Key::of_event(event), ItemKind::Message) {
                let part = item.number_of(Lane::Content, part_of(event));
                item.citations.note(part, citation);
            }
            self.arrived.annotations = true;
            output.entry(CHOICE, "annotations", &raw(citation));
        }
    }

    /// The citations of a complete part. The number of a part may be that of others, too, so a list that differs shows nothing.
    pub(super) fn part_citations<'a>(
        &mut self,
        event: &Node<'a>,
        part: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let citations = entries(part.get("annotations"));
        if citations.is_empty() {
            return;
        }
        if let Some(item) = self.item(&Key::of_event(event), ItemKind::Message) {
            let number = item.number_of(Lane::Content, part_of(event));
            let whole: Vec<_> = citations
                .iter()
                .map(|citation| (number, citation))
                .collect();
            item.citations.complete(&whole, Some(number), output);
            self.arrived.annotations = true;
        }
    }

    /// The citations of a complete message.
    pub(super) fn message_citations<'a>(
        &mut self,
        key: &Key<'_>,
        message: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let whole = citations_of(message);
        if let Some(item) = self.item(key, ItemKind::Message) {
            if !item.citations.complete(&whole, None, output) {
                output.warn("D13", "a complete value differs from its fragments");
            }
            self.arrived.annotations |= !whole.is_empty();
        }
    }
}

/// The citations of all parts of a message.
pub(super) fn citations_of<'n, 'a>(message: &'n Node<'a>) -> Vec<Cited<'n, 'a>> {
    let parts = (0..).zip(entries(message.get("content")));
    let citations = parts.flat_map(|(position, part)| {
        let citations = entries(part.get("annotations")).iter();
        citations.map(move |citation| (position, citation))
    });
    citations.collect()
}
