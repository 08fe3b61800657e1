//! What the events of a call say about it beside its arguments: its id, its name and its kind.

use std::borrow::Cow;

use super::{
    CHOICE,
    item::{Item, ItemKind},
};
use crate::{
    ToolCallUpdate,
    dialect::reader::{Output, fragment, other_fields, raw, text},
    limits::MAX_NAME_BYTES,
    node::Node,
};

impl Item {
    /// Reports the id, name and kind of a call, once.
    pub(super) fn describe_call<'a>(
        &mut self,
        item: &Node<'a>,
        is_custom: bool,
        output: &mut Output<'a>,
    ) {
        let ItemKind::Call(call) = &self.kind else {
            return;
        };
        let wire_index = Some(call.ordinal);
        if std::mem::replace(&mut self.is_described, true) {
            return self.complete_header(item, output);
        }
        const KNOWN: [&str; 11] = [
            "type",
            "id",
            "item_id",
            "call_id",
            "name",
            "arguments",
            "input",
            "status",
            "output_index",
            "sequence_number",
            "obfuscation",
        ];
        let mut extra = other_fields(item, &KNOWN);
        if let Some(id) = item.get("id").or_else(|| item.get("item_id")) {
            extra.insert(0, ("item_id".into(), raw(id)));
        }
        let id = text(item, "call_id");
        self.call_id = id.as_deref().map(str::to_owned);
        self.name = name_of(item);
        self.is_custom = is_custom;
        output.call(
            CHOICE,
            ToolCallUpdate {
                wire_index,
                id,
                kind: is_custom.then_some("custom".into()),
                name: fragment(item, "name"),
                extra,
                ..ToolCallUpdate::default()
            },
        );
    }

    /// Reports the id and the name of a call that the events before have not brought.
    fn complete_header<'a>(&mut self, item: &Node<'a>, output: &mut Output<'a>) {
        let ItemKind::Call(call) = &self.kind else {
            return;
        };
        let mut update = ToolCallUpdate::default().with_wire_index(call.ordinal);
        if self.call_id.is_none() {
            update.id = text(item, "call_id");
            self.call_id = update.id.as_deref().map(str::to_owned);
        }
        if self.name.is_none() {
            self.name = name_of(item);
            update.name = fragment(item, "name").filter(|_| self.name.is_some());
        }
        if update.id.is_some() || update.name.is_some() {
            output.call(CHOICE, update);
        }
    }
}

fn name_of(item: &Node<'_>) -> Option<String> {
    let name = text(item, "name").filter(|name| name.len() <= MAX_NAME_BYTES);
    name.map(Cow::into_owned)
}
