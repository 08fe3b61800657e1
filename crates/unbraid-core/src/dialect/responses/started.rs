//! Items that have started and not ended: what has arrived of them is kept where the whole item would be (P18).

use super::{CHOICE, Responses, is_image, whole::has_details};
use crate::{
    chunk::CONTENT_PARTS,
    dialect::{object::Object, reader::Output},
    limits::{MAX_ENTRIES, MAX_EVENT_BYTES},
    node::Node,
};

/// The entries that the starts of items would make, in the order in which they arrived.
#[derive(Default)]
pub(super) struct StartedEntries {
    entries: Vec<Started>,
    /// The length of their objects.
    bytes: usize,
}

struct Started {
    list: &'static str,
    /// The ordinal of the item.
    item: u64,
    object: Object,
}

impl StartedEntries {
    /// Notes the start of an item; a later one replaces it. What waits is bounded.
    fn note(&mut self, started: Started, output: &mut Output<'_>) {
        self.forget(started.item);
        let bytes = self.bytes + started.object.bytes();
        if bytes > MAX_EVENT_BYTES || self.entries.len() >= MAX_ENTRIES {
            return output.warn("D16", "the start of an item was not kept until its end");
        }
        self.bytes = bytes;
        self.entries.push(started);
    }

    /// The item has ended.
    pub(super) fn forget(&mut self, item: u64) {
        if let Some(at) = self.entries.iter().position(|known| known.item == item) {
            let started = self.entries.remove(at);
            self.bytes -= started.object.bytes();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Nothing follows: reports all entries.
    pub(super) fn flush(&mut self, output: &mut Output<'_>) {
        self.bytes = 0;
        for started in std::mem::take(&mut self.entries) {
            output.entry(CHOICE, started.list, &started.object.to_json());
        }
    }
}

impl Responses {
    /// Notes the start of an item that is only kept.
    pub(super) fn note_other_start(
        &mut self,
        ordinal: u64,
        item: &Node<'_>,
        output: &mut Output<'_>,
    ) {
        self.note_entry(list_of(item), ordinal, item, output);
    }

    /// Notes the start of a reasoning item that has more than the text of its lane.
    pub(super) fn note_reasoning_start(
        &mut self,
        ordinal: u64,
        item: &Node<'_>,
        output: &mut Output<'_>,
    ) {
        if has_details(item) {
            self.note_entry("reasoning_details", ordinal, item, output);
        }
    }

    fn note_entry(
        &mut self,
        list: &'static str,
        item: u64,
        start: &Node<'_>,
        output: &mut Output<'_>,
    ) {
        let object = Object::new(start);
        self.started.note(Started { list, item, object }, output);
    }
}

/// The list in which an item that is only kept stands.
pub(super) fn list_of(item: &Node<'_>) -> &'static str {
    if is_image(item) {
        "images"
    } else {
        CONTENT_PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::{Started, StartedEntries};
    use crate::{
        ChoiceEnd, ChoiceIndex, Config, Demux, StreamError,
        dialect::{object::Object, reader::Output},
        limits::{MAX_ENTRIES, MAX_EVENT_BYTES},
        node,
    };

    /// The parts of the answer after an event of an item and the end of the stream.
    fn read_parts(events: &[&str], end: impl FnOnce(&mut Demux)) -> String {
        let mut demux = Demux::new(Config::default());
        for event in events {
            demux.feed(format!("data: {event}\n\n").as_bytes());
        }
        end(&mut demux);
        let choice = demux.choice(ChoiceIndex(0)).unwrap();
        let message = match choice.result().unwrap() {
            Ok(outcome) => outcome.message,
            Err(error) => error.partial().message.clone(),
        };
        let mut parts = message
            .extra
            .iter()
            .filter(|(key, _)| &**key == "content_parts");
        parts
            .next()
            .map(|(_, raw)| raw.to_string())
            .unwrap_or_default()
    }

    const START: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"w","type":"web_search_call","status":"in_progress"}}"#;
    const END: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"w","type":"web_search_call","status":"completed"}}"#;
    const FAILED: &str = r#"{"type":"response.failed","response":{"status":"failed","output":[],"error":{"message":"x"}}}"#;
    const ERROR: &str = r#"{"type":"error","message":"x"}"#;
    const COMPLETED: &str =
        r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    const WITH_OUTPUT: &str = r#"{"type":"response.completed","response":{"status":"completed","output":[{"id":"v","type":"web_search_call","status":"completed"}]}}"#;

    #[test]
    fn p18_an_item_that_did_not_end_is_kept_as_it_started_however_the_stream_ends() {
        let started = r#"[{"id":"w","type":"web_search_call","status":"in_progress"}]"#;
        assert_eq!(read_parts(&[START], Demux::finish), started);
        let abort = |demux: &mut Demux| demux.abort(StreamError::Cancelled);
        assert_eq!(read_parts(&[START], abort), started);
        let cancel = |demux: &mut Demux| {
            demux.cancel(ChoiceIndex(0));
            let choice = demux.choice(ChoiceIndex(0)).unwrap();
            assert_eq!(choice.end(), Some(&ChoiceEnd::Cancelled));
        };
        assert_eq!(read_parts(&[START], cancel), started);
        for last in [FAILED, ERROR, COMPLETED] {
            assert_eq!(read_parts(&[START, last], Demux::finish), started, "{last}");
        }
    }

    #[test]
    fn p18_an_item_that_ended_is_not_kept_as_it_started() {
        let ended = r#"[{"id":"w","type":"web_search_call","status":"completed"}]"#;
        for events in [
            &[START, END][..],
            &[START, END, START],
            &[END, START],
            &[START, END, FAILED],
            &[START, END, COMPLETED],
        ] {
            assert_eq!(read_parts(events, Demux::finish), ended, "{events:?}");
        }
        let of_output = r#"[{"id":"v","type":"web_search_call","status":"completed"}]"#;
        assert_eq!(read_parts(&[START, WITH_OUTPUT], Demux::finish), of_output);
    }

    #[test]
    fn p18_the_starts_that_wait_are_bounded() {
        let start = |item: u64, length: usize| {
            let content = format!(r#"{{"code":"{}"}}"#, "E".repeat(length));
            let node = node::read(&content, 8).unwrap();
            let object = Object::new(&node);
            let list = "content_parts";
            Started { list, item, object }
        };
        let (mut entries, mut output) = (StartedEntries::default(), Output::default());
        for item in 0..=MAX_ENTRIES as u64 {
            entries.note(start(item, 1), &mut output);
        }
        assert_eq!(
            (entries.entries.len(), output.warnings.len()),
            (MAX_ENTRIES, 1)
        );
        entries.note(start(7, MAX_EVENT_BYTES / 2), &mut output);
        entries.note(start(7, MAX_EVENT_BYTES / 2 + 1), &mut output);
        assert_eq!(
            (entries.entries.len(), output.warnings.len()),
            (MAX_ENTRIES, 1)
        );
        entries.note(start(8, MAX_EVENT_BYTES / 2), &mut output);
        assert_eq!(
            (entries.entries.len(), output.warnings.len()),
            (MAX_ENTRIES - 1, 2)
        );
        entries.flush(&mut output);
        assert_eq!(entries.bytes, 0);
    }
}
