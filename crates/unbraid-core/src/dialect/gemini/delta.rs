//! Chunks that only continue the text of one candidate.

use super::{Gemini, has_content, has_fields};
use crate::{
    dialect::{
        continuation::{Continuation, Entry, Place},
        reader::entries,
    },
    limits::MAX_EVENT_BYTES,
    node::Node,
};

/// The text of a chunk with one part of one candidate.
pub(super) fn continuation<'n, 'a>(body: &'n Node<'a>) -> Option<Continuation<'n, 'a>> {
    let [candidate] = entries(body.get("candidates")) else {
        return None;
    };
    let [part] = entries(candidate.get("content")?.get("parts")) else {
        return None;
    };
    // A reason and metadata are kept until the end, so the candidate has to read them.
    let fields = candidate.as_object()?.iter();
    let mut other = fields.filter(|(key, value)| match &**key {
        "index" | "content" => false,
        "groundingMetadata" | "citationMetadata" => has_fields(value),
        _ => !value.is_null(),
    });
    let has_call = part.get("functionCall").is_some();
    if other.next().is_some() || has_call || has_content(part) {
        return None;
    }
    let usage = body.get("usageMetadata");
    let signature = part.get("thoughtSignature").filter(|node| node.is_set());
    let entry = signature.map(|_| Entry {
        list: "reasoning_details",
        node: part,
    });
    Some(Continuation {
        index: candidate.get("index"),
        usage: usage.filter(|usage| usage.as_object().is_some()),
        entry,
        unread: signature.into_iter().collect(),
        ..Continuation::new(Place::Candidate, part.get("text")?)
    })
}

impl Gemini {
    /// Takes a text of a candidate that has started, as `part` does.
    pub(super) fn continues_candidate(&mut self, choice: u32, _text: &str) -> bool {
        if self.held_bytes() > MAX_EVENT_BYTES {
            return false;
        }
        let mut candidates = self.candidates.iter_mut();
        let Some(candidate) = candidates.find(|known| known.index == choice) else {
            return false;
        };
        candidate.continues |= candidate.reason.is_some();
        true
    }
}
