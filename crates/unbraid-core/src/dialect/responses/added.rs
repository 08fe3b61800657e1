//! The parts of an item whose starts have come, by the numbers in their events.

use crate::{
    dialect::{reader::Lane, seen::Seen},
    limits::MAX_ENTRIES,
};

/// What has arrived of a text, by its lane and the number of its part.
pub(super) type PartText = (Lane, i64, Seen);

/// The parts of an item whose starts have come.
#[derive(Default)]
pub(super) struct AddedParts(Vec<AddedPart>);

struct AddedPart {
    lane: Lane,
    /// The number in its events.
    wire_number: i64,
    /// The number of its text here.
    number: i64,
}

impl AddedParts {
    /// Notes the start of a part. If a part with its number had started and is complete, the server uses the number again
    /// (D13): then the part has the next number here, as if the server had counted.
    pub(super) fn add(&mut self, lane: Lane, wire_number: i64, texts: &[PartText]) {
        let mut number = self.number_of(lane, wire_number);
        let has_number = |part: &AddedPart| (part.lane, part.number) == (lane, number);
        let own = texts.iter().filter(|(known, ..)| *known == lane);
        let mut known = own.clone().filter(|(_, known, _)| *known == number);
        let is_complete = known.any(|(.., seen)| seen.is_complete());
        if is_complete && self.0.iter().any(has_number) {
            let last = own.map(|(_, number, _)| *number).max();
            number = last.unwrap_or_default().saturating_add(1);
        }
        self.0
            .retain(|part| (part.lane, part.wire_number) != (lane, wire_number));
        if self.0.len() >= MAX_ENTRIES {
            self.0.remove(0);
        }
        self.0.push(AddedPart {
            lane,
            wire_number,
            number,
        });
    }

    /// The number of the part that has this one in its events.
    pub(super) fn number_of(&self, lane: Lane, wire_number: i64) -> i64 {
        let mut parts = self.0.iter();
        let part = parts.find(|part| (part.lane, part.wire_number) == (lane, wire_number));
        part.map_or(wire_number, |part| part.number)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, Demux};

    /// The text of parts that start with these numbers, each of which comes as a whole.
    fn read_whole_parts(parts: &[(i64, &str)]) -> String {
        let mut demux = Demux::new(Config::default());
        let mut feed = |event: &str| demux.feed(format!("data: {event}\n\n").as_bytes());
        feed(
            "{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\"}}",
        );
        for (number, text) in parts {
            let key = format!("\"output_index\":0,\"content_index\":{number}");
            feed(&format!(
                "{{\"type\":\"response.content_part.added\",{key},\"part\":{{\"type\":\"output_text\"}}}}"
            ));
            // Gateways repeat the whole.
            for _ in 0..2 {
                feed(&format!(
                    "{{\"type\":\"response.output_text.done\",{key},\"text\":\"{text}\"}}"
                ));
            }
        }
        demux.finish();
        let choice = demux.choices().next().unwrap();
        choice.outcome().unwrap().message.content
    }

    #[test]
    fn d13_a_number_that_is_used_again_is_another_part() {
        let rows: [&[(i64, &str)]; 3] = [
            &[(0, "a"), (0, "b"), (0, "b")],
            &[(0, "a"), (0, "b"), (1, "b")],
            &[(0, "a"), (1, "b"), (0, "b"), (1, "c"), (2, "d")],
        ];
        let expected = ["abb", "abb", "abbcd"];
        assert_eq!(rows.map(read_whole_parts), expected);
    }
}
