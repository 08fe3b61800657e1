//! The events of a completion's stream itself, of which the usage is read when someone asks for it.

use std::sync::OnceLock;

use unbraid_core::{Event, Position, Sequenced, internal::UnreadUsage};

#[derive(Debug)]
pub(crate) struct StreamEvent {
    position: Position,
    body: Body,
}

#[derive(Debug)]
enum Body {
    Event(Event),
    Usage(Box<UnreadUsage>, OnceLock<Event>),
}

impl StreamEvent {
    pub(crate) fn new(position: Position, event: Event) -> Self {
        Self {
            position,
            body: Body::Event(event),
        }
    }

    pub(crate) fn usage(position: Position, usage: UnreadUsage) -> Self {
        Self {
            position,
            body: Body::Usage(Box::new(usage), OnceLock::new()),
        }
    }

    pub(crate) fn event(&self) -> &Event {
        match &self.body {
            Body::Event(event) => event,
            Body::Usage(unread, event) => {
                event.get_or_init(|| Event::Usage(Box::new(unread.read())))
            }
        }
    }

    /// The event with its number.
    pub(crate) fn numbered(&self, seq: u64) -> Sequenced {
        Sequenced::new(None, seq, self.position, self.event().clone())
    }

    pub(crate) fn is_usage(&self) -> bool {
        matches!(self.body, Body::Usage(..) | Body::Event(Event::Usage(_)))
    }
}
