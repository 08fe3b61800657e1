//! Entries of the message's lists that a later value may complete: encrypted content, of which the last counts (P14).

use std::collections::HashSet;

use super::{CHOICE, Responses, is_image, origins::ItemOrigin};
use crate::{
    dialect::{
        object::Object,
        reader::{Output, raw},
    },
    limits::{MAX_ENTRIES, MAX_EVENT_BYTES},
    node::Node,
};

/// The entries that wait for the end of the response, in the order in which they arrived.
#[derive(Default)]
pub(super) struct HeldEntries {
    entries: Vec<Held>,
    /// The length of their objects.
    bytes: usize,
    /// Whether the whole response has arrived, so that no entry waits any more.
    is_closed: bool,
}

struct Held {
    list: &'static str,
    /// The ordinal of the item.
    item: u64,
    object: Object,
}

impl HeldEntries {
    /// Whether an entry waits in a list, so that those after it have to wait as well.
    fn holds(&self, list: &str) -> bool {
        self.entries.iter().any(|held| held.list == list)
    }

    /// Holds one more entry. What waits is bounded.
    fn push(&mut self, held: Held, output: &mut Output<'_>) {
        self.bytes += held.object.bytes();
        self.entries.push(held);
        self.flush_if_full(output);
    }

    fn flush_if_full(&mut self, output: &mut Output<'_>) {
        if self.bytes > MAX_EVENT_BYTES || self.entries.len() >= MAX_ENTRIES {
            self.flush(output);
        }
    }

    /// Takes from a later value of an item what is set there.
    pub(super) fn replace(&mut self, item: u64, later: &Node<'_>, output: &mut Output<'_>) {
        let mut entries = self.entries.iter_mut().rev();
        if let Some(held) = entries.find(|held| held.item == item) {
            self.bytes -= held.object.bytes();
            held.replace(later);
            self.bytes += held.object.bytes();
            self.flush_if_full(output);
        }
    }

    /// Reports all entries.
    pub(super) fn flush(&mut self, output: &mut Output<'_>) {
        self.bytes = 0;
        for held in std::mem::take(&mut self.entries) {
            output.entry(CHOICE, held.list, &held.object.to_json());
        }
    }

    /// Reports the entries of items other than these, which the final output does not have: no later value completes them, and they
    /// arrived before it. From now on no entry waits.
    pub(super) fn flush_all_but(&mut self, origins: &[ItemOrigin], output: &mut Output<'_>) {
        self.is_closed = true;
        let streamed: HashSet<u64> = origins.iter().filter_map(|o| o.streamed()).collect();
        let (of_these, others) = self.split(|held| streamed.contains(&held.item));
        self.entries = others;
        self.flush(output);
        self.hold_only(of_these);
    }

    /// Reports the entries of an item that wait, with what is set in its last value.
    pub(super) fn release(
        &mut self,
        origin: ItemOrigin,
        later: Option<&Node<'_>>,
        output: &mut Output<'_>,
    ) {
        let Some(item) = origin.streamed() else {
            return;
        };
        let (of_item, others) = self.split(|held| held.item == item);
        self.hold_only(others);
        for mut held in of_item {
            if let Some(later) = later {
                held.replace(later);
            }
            output.entry(CHOICE, held.list, &held.object.to_json());
        }
    }

    fn hold_only(&mut self, entries: Vec<Held>) {
        self.bytes = entries.iter().map(|held| held.object.bytes()).sum();
        self.entries = entries;
    }

    fn split(&mut self, is_first: impl FnMut(&Held) -> bool) -> (Vec<Held>, Vec<Held>) {
        std::mem::take(&mut self.entries)
            .into_iter()
            .partition(is_first)
    }
}

impl Held {
    fn replace(&mut self, later: &Node<'_>) {
        for (key, value) in later.as_object().unwrap_or_default() {
            if value.is_set() {
                self.object.set(key, raw(value));
            }
        }
    }
}

impl Responses {
    /// Adds an item to one of the message's lists: now, or at the end if a later value may complete it, or one before it. What
    /// waits is bounded.
    pub(super) fn keep(
        &mut self,
        list: &'static str,
        item: u64,
        object: Object,
        may_change: bool,
        output: &mut Output<'_>,
    ) {
        if self.held.is_closed || (!may_change && !self.held.holds(list)) {
            return output.entry(CHOICE, list, &object.to_json());
        }
        self.held.push(Held { list, item, object }, output);
    }

    /// Adds a whole item to a list.
    pub(super) fn keep_item(
        &mut self,
        list: &'static str,
        ordinal: u64,
        item: &Node<'_>,
        output: &mut Output<'_>,
    ) {
        self.keep(list, ordinal, Object::new(item), may_change(item), output);
    }
}

/// Whether the response may contain another value of an item than its end: encrypted content, and an image that is not ready.
fn may_change(item: &Node<'_>) -> bool {
    let is_set = |key: &str| item.get(key).is_some_and(Node::is_set);
    is_set("encrypted_content") || is_set("fingerprint") || (is_image(item) && !is_set("result"))
}

#[cfg(test)]
mod tests {
    use super::{Held, HeldEntries};
    use crate::{
        ChoiceEnd, ChoiceIndex, Config, Demux, Limits, StreamError,
        dialect::{object::Object, reader::Output},
        limits::MAX_EVENT_BYTES,
        node,
    };

    const STREAM: &[u8] = b"data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"id\":\"rs\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"RTA=\"}}\n\n";

    fn ended(config: Config, end: impl FnOnce(&mut Demux)) -> Demux {
        let mut demux = Demux::new(config);
        demux.feed(STREAM);
        let details = |demux: &Demux| {
            let choice = demux.choice(ChoiceIndex(0)).unwrap();
            let message = choice.outcome().map(|outcome| outcome.message);
            message.map(|message| {
                message
                    .extra
                    .iter()
                    .any(|(key, _)| &**key == "reasoning_details")
            })
        };
        assert_eq!(details(&demux), None);
        end(&mut demux);
        assert_eq!(details(&demux), Some(true));
        demux
    }

    #[test]
    fn p14_what_waits_for_the_end_is_there_after_a_cancel_and_after_any_error() {
        let demux = ended(Config::default(), |demux| demux.cancel(ChoiceIndex(0)));
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        assert_eq!(choice.end(), Some(&ChoiceEnd::Cancelled));
        ended(Config::default(), |demux| {
            demux.abort(StreamError::Cancelled)
        });
        let limits = Limits::default().with_line_bytes(STREAM.len());
        let config = Config::default().with_limits(limits);
        ended(config, |demux| demux.feed(&[b'x'; 1000]));
        ended(Config::default(), Demux::finish);
    }

    /// A later value may be longer than the one that it replaces.
    #[test]
    fn p14_what_waits_is_bounded_also_if_it_is_replaced() {
        let item = node::read(r#"{"encrypted_content":"E"}"#, 8).unwrap();
        let (mut held, mut output) = (HeldEntries::default(), Output::default());
        for item_number in 0..3 {
            let held_item = Held {
                list: "reasoning_details",
                item: item_number,
                object: Object::new(&item),
            };
            held.push(held_item, &mut output);
        }
        let content = "E".repeat(MAX_EVENT_BYTES / 2 + 1);
        let later = format!(r#"{{"encrypted_content":"{content}"}}"#);
        let later = node::read(&later, 8).unwrap();
        held.replace(0, &later, &mut output);
        held.replace(0, &later, &mut output);
        assert_eq!(held.entries.len(), 3);
        held.replace(1, &later, &mut output);
        assert_eq!((held.entries.len(), held.bytes), (0, 0));
    }
}
