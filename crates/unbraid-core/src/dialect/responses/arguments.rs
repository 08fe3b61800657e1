//! The calls of a response: what is known of them, and their arguments, in fragments and complete (P08, P25).

use super::{CHOICE, Responses, item::ItemKind, key::Key};
use crate::{
    Fragment,
    dialect::reader::{Output, arguments_of, text},
    node::Node,
};

impl Responses {
    /// Reports the arguments of starts that no fragment has replaced, except those of one item.
    pub(super) fn flush_calls(&mut self, except: Option<u64>, output: &mut Output<'_>) {
        for item in &mut self.items {
            let is_it = Some(item.ordinal()) == except;
            if let ItemKind::Call(call) = &mut item.kind
                && !is_it
            {
                call.flush(CHOICE, output);
            }
        }
    }

    /// The same for the oldest item, in whose place the event may open another one.
    pub(super) fn flush_oldest(&mut self, output: &mut Output<'_>) {
        let oldest = self.items.first_mut().map(|item| &mut item.kind);
        if let Some(ItemKind::Call(call)) = oldest {
            call.flush(CHOICE, output);
        }
    }

    pub(super) fn call_header<'a>(
        &mut self,
        key: &Key<'_>,
        item: &Node<'a>,
        is_custom: bool,
        output: &mut Output<'a>,
    ) {
        let ordinal = self.call(key).map(|known| known.ordinal());
        // Arguments that come after the start of the next call would seem to be late.
        self.flush_calls(ordinal, output);
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
