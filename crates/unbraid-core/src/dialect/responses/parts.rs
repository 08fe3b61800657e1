//! Which fragments belong to which part of a complete item.

use super::item::Item;
use crate::dialect::{
    reader::Lane,
    seen::{Rest, Seen},
};

/// The numbers that the fragments of an item's texts have.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parts {
    /// One for each text.
    InOrder(Vec<i64>),
    /// The fragments of all texts have the same number. With the texts, joined.
    Joined(i64, String),
}

impl Item {
    /// Finds the fragments of these complete texts of a lane, each with its position in the item.
    ///
    /// Usually their number is the position. Some servers count the parts of all items (P28), and some send no number (P06).
    /// Where the texts show that, the order counts.
    pub(super) fn parts(&self, lane: Lane, texts: &[(i64, &str)]) -> Parts {
        let own = |(known, number, seen): &'_ (Lane, i64, Seen)| {
            (*known == lane && !seen.is_empty()).then(|| (*number, seen.clone()))
        };
        let mut known: Vec<(i64, Seen)> = self.texts.iter().filter_map(own).collect();
        known.sort_by_key(|(number, _)| *number);
        if let ([(number, seen)], [_, _, ..]) = (&known[..], texts)
            && !texts.iter().any(|(_, text)| begins(text, seen))
        {
            let joined: String = texts.iter().map(|(_, text)| *text).collect();
            if begins(&joined, seen) {
                return Parts::Joined(*number, joined);
            }
        }
        let after_last = known.last().map_or(0, |(last, _)| last.saturating_add(1));
        let mut is_shifted = false;
        let number = |(ordinal, (position, text)): (usize, &(i64, &str))| {
            let in_place = known.iter().find(|(number, _)| number == position);
            let in_order = known.get(ordinal);
            let fits =
                |part: Option<&(i64, Seen)>| part.is_some_and(|(_, seen)| begins(text, seen));
            is_shifted |= !fits(in_place) && fits(in_order);
            match in_order {
                _ if !is_shifted => *position,
                Some((number, _)) => *number,
                None => after_last.saturating_add(ordinal as i64),
            }
        };
        Parts::InOrder(texts.iter().enumerate().map(number).collect())
    }
}

/// Whether a text begins with its fragments.
fn begins(text: &str, fragments: &Seen) -> bool {
    fragments.rest(text) != Rest::Differs
}

#[cfg(test)]
mod tests {
    use crate::{Config, Demux};

    /// The text of a message whose deltas have these part numbers, and which then comes as a whole.
    fn read(deltas: &[(&str, &str)], parts: &[&str]) -> (String, usize) {
        let mut demux = Demux::new(Config::default());
        let mut feed = |event: &str| demux.feed(format!("data: {event}\n\n").as_bytes());
        feed("{\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}");
        for (part, text) in deltas {
            feed(&format!(
                "{{\"type\":\"response.output_text.delta\",\"output_index\":0{part},\"delta\":\"{text}\"}}"
            ));
        }
        let parts: Vec<String> = parts
            .iter()
            .map(|text| format!("{{\"type\":\"output_text\",\"text\":\"{text}\"}}"))
            .collect();
        let parts = parts.join(",");
        // Gateways repeat the whole.
        for _ in 0..2 {
            feed(&format!(
                "{{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{{\"type\":\"message\",\"content\":[{parts}]}}}}"
            ));
        }
        demux.finish();
        let choice = demux.choices().next().unwrap();
        let content = choice.outcome().unwrap().message.content;
        (content, demux.warnings().len())
    }

    #[test]
    fn p06_p28_parts_of_any_numbering_count_once() {
        const AT: [&str; 4] = [
            ",\"content_index\":0",
            ",\"content_index\":1",
            ",\"content_index\":2",
            "",
        ];
        let [zero, one, two, none] = AT;
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [&'a str], &'a str);
        let rows: [Row<'_>; 9] = [
            (&[(zero, "a"), (one, "b")], &["a", "b"], "ab"),
            (&[(zero, "a")], &["a", "b"], "ab"),
            (&[(one, "a")], &["a"], "a"),
            (&[(one, "a")], &["a!"], "a!"),
            (&[(one, "a"), (two, "b")], &["a", "b"], "ab"),
            (&[(one, "a"), (two, "b")], &["a", "b!", "c"], "ab!c"),
            (&[(none, "a"), (none, "b")], &["a", "b"], "ab"),
            (&[(none, "ab")], &["a", "bc"], "abc"),
            (&[], &["a", "b"], "ab"),
        ];
        for (deltas, parts, expected) in rows {
            assert_eq!(
                read(deltas, parts),
                (expected.into(), 0),
                "{deltas:?} {parts:?}"
            );
        }
        let (text, warnings) = read(&[(zero, "a"), (one, "b")], &["a", "x"]);
        assert_eq!((&*text, warnings), ("ab", 1));
    }
}
