//! Log probabilities: with each fragment of a text, or only with the whole of it (P11, P12).

use super::{
    CHOICE, Responses,
    item::{ItemKind, part_of},
    key::Key,
};
use crate::{
    dialect::reader::{Lane, Output, entries, raw},
    node::Node,
};

impl Responses {
    /// Those of a fragment.
    pub(super) fn logprobs<'a>(&mut self, event: &Node<'a>, output: &mut Output<'a>) {
        if has_tokens(event) {
            self.note_logprobs(event);
            self.report_logprobs(event, output);
        }
    }

    /// Those of a complete part, unless they came before.
    pub(super) fn whole_logprobs<'a>(
        &mut self,
        event: &Node<'_>,
        part: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        if has_tokens(part) && self.note_logprobs(event) {
            self.report_logprobs(part, output);
        }
    }

    /// Those of a complete message, unless some of it came before.
    pub(super) fn message_logprobs<'a>(
        &mut self,
        key: &Key<'_>,
        message: &Node<'a>,
        output: &mut Output<'a>,
    ) {
        let parts = entries(message.get("content"));
        let known = self.item(key, ItemKind::Message);
        if known.is_some_and(|known| known.logprobs.is_empty() && !known.is_done) {
            for part in parts.iter().filter(|part| has_tokens(part)) {
                self.report_logprobs(part, output);
            }
        }
    }

    /// Notes that the part of an event has them. Returns whether they are the first ones of the part.
    fn note_logprobs(&mut self, event: &Node<'_>) -> bool {
        let item = self.item(&Key::of_event(event), ItemKind::Message);
        item.is_some_and(|item| {
            // Its text has the same number: another part may start with that of a complete one (D13).
            item.note_logprobs(item.number_of(Lane::Content, part_of(event)))
        })
    }

    fn report_logprobs<'a>(&mut self, node: &Node<'a>, output: &mut Output<'a>) {
        if let Some(tokens) = node.get("logprobs") {
            self.arrived.logprobs = true;
            let logprobs = format!("{{\"content\":{}}}", raw(tokens));
            output.choice(CHOICE).logprobs = Some(logprobs.into());
        }
    }
}

fn has_tokens(node: &Node<'_>) -> bool {
    node.get("logprobs").is_some_and(Node::is_set)
}
