//! Citations: a complete list adds those that have not arrived (D13).

use serde_json::Value;

use super::Reader;
use crate::dialects::{entries, without_nulls};

/// The citations of all parts of a message.
pub(super) fn of(message: &Value) -> Vec<(i64, &Value)> {
    let parts = (0..).zip(entries(&message["content"]));
    let mut all = Vec::new();
    for (number, part) in parts {
        all.extend(
            entries(&part["annotations"])
                .into_iter()
                .map(|citation| (number, citation)),
        );
    }
    all
}

impl Reader {
    pub(super) fn cite(&mut self, at: usize, part: i64, citation: &Value) {
        self.items[at].citations.push((part, citation.clone()));
        self.choice.list("annotations", citation.clone());
    }

    /// Adds the citations of a whole list that its part, or its message, lacks. A list that lacks one of theirs is another one.
    pub(super) fn complete_citations(
        &mut self,
        at: usize,
        part: Option<i64>,
        whole: &[(i64, &Value)],
    ) {
        let known = self.items[at].citations.iter();
        let known = known.filter(|(number, _)| part.is_none_or(|part| part == *number));
        let mut known: Vec<Value> = known.map(|(_, citation)| without_nulls(citation)).collect();
        let mut missing = Vec::new();
        for (number, citation) in whole {
            let is_it = |known: &Value| *known == without_nulls(citation);
            match known.iter().position(is_it) {
                Some(at) => drop(known.remove(at)),
                None => missing.push((*number, *citation)),
            }
        }
        if known.is_empty() {
            for (number, citation) in missing {
                self.cite(at, number, citation);
            }
        }
    }
}
