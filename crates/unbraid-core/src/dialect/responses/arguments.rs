//! The calls of a response: what is known of them, and their arguments, in fragments and complete (P08, P25).

use super::{CHOICE, Responses, item::ItemKind, key::Key};
use crate::{
    Fragment,
    dialect::reader::{Output, arguments_of, text},
    node::Node,
};

impl Responses {
    pub(super) fn call_header<'a>(
        &mut self,
        key: &Key<'_>,
        item: &Node<'a>,
        is_custom: bool,
        output: &mut Output<'a>,
    ) {
        if let Some(known) = self.call(key) {
            known.describe_call(item, is_custom, output);
        }
    }

    pub(super) fn complete_call(
        &mut self,
        key: &Key<'_>,
        whole: Option<Fragment<'_>>,
        output: &mut Output<'_>,
    ) {
        let Some(known) = self.call(key) else {
            return;
        };
        let ordinal = known.ordinal();
        if let ItemKind::Call(call) = &mut known.kind
            && let Some(whole) = whole
            && call.complete(CHOICE, &whole.text, output)
        {
            self.note_ahead(ordinal, None);
        }
    }

    pub(super) fn arguments_delta<'a>(&mut self, event: &Node<'a>, output: &mut Output<'a>) {
        let key = Key::of_event(event);
        if let Some(ItemKind::Call(call)) = self.call(&key).map(|item| &mut item.kind) {
            call.append(CHOICE, arguments_of(event.get("delta")), output);
        }
    }

    /// The end of a call's arguments, which may bring the call itself (P25).
    pub(super) fn arguments_done<'a>(
        &mut self,
        event: &Node<'a>,
        name: &str,
        output: &mut Output<'a>,
    ) {
        let key = Key::of_event(event);
        if text(event, "call_id").is_some() || text(event, "name").is_some() {
            self.call_header(&key, event, name == "input", output);
        }
        self.complete_call(&key, arguments_of(event.get(name)), output);
    }
}
