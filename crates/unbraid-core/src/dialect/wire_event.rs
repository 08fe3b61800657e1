//! One value of a stream with the name of its event.

use std::borrow::Cow;

use crate::node::Node;

/// One value of a stream.
pub(crate) struct WireEvent<'n, 'a> {
    /// The name of the event, if it has one. Proxies drop it (D09).
    pub(crate) name: Option<&'n str>,
    pub(crate) node: &'n Node<'a>,
}

impl<'n, 'a> WireEvent<'n, 'a> {
    /// The value of an event with this name. The name says what an object is, and nothing of any other value (D09).
    pub(crate) fn new(name: Option<&'n [u8]>, node: &'n Node<'a>) -> Self {
        let name = name.filter(|_| node.as_object().is_some());
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        Self { name, node }
    }

    /// The type of the value: its field `type`, unless that is empty, or else the event's name (D09).
    pub(crate) fn kind(&self) -> Option<Cow<'n, str>> {
        let own = self.node.get("type").and_then(Node::as_str);
        let own = own.filter(|kind| !kind.is_empty());
        own.map(|kind| Cow::Borrowed(&*kind.text))
            .or_else(|| self.name.map(Cow::Borrowed))
    }
}
