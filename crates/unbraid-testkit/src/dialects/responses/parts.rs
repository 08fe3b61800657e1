//! Parts whose number is used again (D13).

use serde_json::Value;

use super::Reader;
use crate::dialects::text;

impl Reader {
    /// A part that is added once more after it was complete is the next one.
    pub(super) fn part_added(&mut self, value: &Value, id: &str, part: i64) {
        let (lane, kind) = match text(&value["part"], "type") {
            "output_text" => ("content", None),
            "refusal" => ("refusal", None),
            "reasoning_text" => ("reasoning", Some("text")),
            "summary_text" => ("reasoning", Some("summary")),
            _ => return,
        };
        let of_item = if kind.is_some() {
            "reasoning"
        } else {
            "message"
        };
        let at = self.item(value, id, of_item);
        let first = self.items[at].reasoning;
        if kind.is_some() && first.is_some() && first != kind {
            return; // P13
        }
        let number = self.number_of(at, lane, part);
        let of_lane = |key: &&(usize, &'static str, i64)| (key.0, key.1) == (at, lane);
        let mut added = self.added.iter().filter(|(key, _)| of_lane(key));
        let is_known = added.any(|(_, known)| *known == number);
        let is_again = is_known && self.whole.contains(&(at, lane, number));
        let texts = self.pieces.iter().map(|(key, _)| key);
        let own = texts.chain(&self.whole).filter(of_lane);
        let next = own.map(|key| key.2.saturating_add(1)).max();
        let number = next.filter(|_| is_again).unwrap_or(number);
        self.added.insert((at, lane, part), number);
    }

    /// The number that the latest part with this one has here.
    pub(super) fn number_of(&self, at: usize, lane: &'static str, part: i64) -> i64 {
        self.added.get(&(at, lane, part)).copied().unwrap_or(part)
    }
}
