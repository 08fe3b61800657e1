//! The texts, as fragments and as complete values (D13).

use serde_json::Value;

use super::{Reader, TextKey, lane_of};
use crate::{
    dialects::{entries, text},
    reference::lenient::split_halves,
};

impl Reader {
    pub(super) fn delta(&mut self, value: &Value, id: &str, lane: &'static str, part: i64) {
        let at = self.item(value, id, "message");
        let part = self.number_of(at, lane, part);
        self.piece((at, lane, part), text(value, "delta"));
    }

    /// Adds what a fragment has beyond that which complete values before it have brought (D13).
    pub(super) fn piece(&mut self, key: TextKey, piece: &str) {
        let piece = unrepeated(self.ahead.entry(key).or_default(), piece);
        self.pieces.push((key, piece));
    }

    /// D13: a complete value adds what its fragments lack.
    pub(super) fn whole(
        &mut self,
        value: &Value,
        id: &str,
        lane: &'static str,
        part: i64,
        whole: &str,
    ) {
        let at = self.item(value, id, "message");
        let part = self.number_of(at, lane, part);
        self.complete((at, lane, part), whole);
    }

    pub(super) fn complete(&mut self, key: TextKey, whole: &str) {
        if !whole.is_empty() {
            self.whole.insert(key);
        }
        let own = self.pieces.iter().filter(|(known, _)| *known == key);
        let so_far: String = own.map(|(_, piece)| piece.as_str()).collect();
        // P24: what a resumed stream lacks has no place any more.
        let later = self.pieces.iter().any(|((item, lane, part), piece)| {
            (*item, *lane) == (key.0, key.1)
                && (key.2 + 1..i64::MAX).contains(part)
                && !piece.is_empty()
        });
        let was_resumed = !(self.has_begun && self.items[key.0].was_added);
        if was_resumed && later && so_far.is_empty() {
            return;
        }
        if let Some(rest) = missing(whole, &so_far) {
            self.ahead.entry(key).or_default().push_str(&rest);
            self.pieces.push((key, rest));
        }
    }

    /// P06, P28: the numbers of the parts do not count if all of a whole message begins with all of its fragments.
    pub(super) fn joined(&mut self, at: usize, lane: &'static str, item: &Value) -> bool {
        let parts = entries(&item["content"]);
        let own = parts.iter().map(|part| (lane_of(part), part));
        let own = own.filter(|((known, _), _)| *known == lane);
        let whole: String = own.map(|((_, key), part)| text(part, key)).collect();
        let own = self
            .pieces
            .iter()
            .filter(|((item, known, _), _)| (*item, *known) == (at, lane));
        let so_far: String = own.map(|(_, piece)| piece.as_str()).collect();
        let rest = whole.strip_prefix(&so_far).map(str::to_owned);
        if let Some(rest) = &rest {
            self.pieces.push(((at, lane, i64::MAX), rest.clone()));
        }
        rest.is_some()
    }
}

/// What a fragment has beyond that which complete values before it have brought, in halves of characters (C14).
pub(in crate::dialects) fn unrepeated(ahead: &mut String, piece: &str) -> String {
    let piece = split_halves(piece);
    if let Some(rest) = ahead.strip_prefix(&piece) {
        *ahead = rest.to_owned();
        return String::new();
    }
    let rest = piece.strip_prefix(&std::mem::take(ahead));
    rest.map(str::to_owned).unwrap_or(piece)
}

/// What a complete value has beyond its fragments, in halves of characters; `None` if it differs from them.
pub(super) fn missing(whole: &str, fragments: &str) -> Option<String> {
    let whole = split_halves(whole);
    whole
        .strip_prefix(&split_halves(fragments))
        .map(str::to_owned)
}
