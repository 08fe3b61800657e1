//! Warnings derived from the order of the choices' indices in the whole stream.

use std::collections::BTreeSet;

use serde_json::Value;

use super::choice::finish_reason;
use super::text;

/// Every element of the stream, in order.
#[derive(Debug, Default)]
pub(super) struct Indices {
    elements: Vec<Element>,
}

#[derive(Debug)]
struct Element {
    index: u32,
    /// Whether it has text, a call or log probabilities.
    delta: bool,
    role: bool,
    reason: bool,
}

/// The limit on choices; more are rejected.
const MAX_CHOICES: usize = 128;

impl Indices {
    pub(super) fn note(&mut self, index: u32, element: &Value) {
        let delta = element.get("delta").unwrap_or(&Value::Null);
        let fields = delta.as_object().into_iter().flatten();
        let in_delta = fields
            .filter(|(key, _)| *key != "role")
            .any(|(_, value)| is_present(value));
        let beside = ["text", "logprobs", "message"];
        let delta_or_beside = in_delta
            || beside
                .iter()
                .any(|key| element.get(key).is_some_and(is_present));
        self.elements.push(Element {
            index,
            delta: delta_or_beside,
            role: text(delta, "role").is_some(),
            reason: finish_reason(element).is_some(),
        });
    }

    /// The elements, split where the index changes.
    fn runs(&self) -> Vec<&[Element]> {
        self.elements
            .chunk_by(|one, next| one.index == next.index)
            .collect()
    }

    /// E12: each index is higher than the previous one and has one delta, and only the last one may have a reason.
    pub(super) fn count_tokens(&self, expected: Option<u32>, ended_normally: bool) -> bool {
        let runs = self.runs();
        let enough = runs.len() >= 5 && runs.len() > expected.unwrap_or(0) as usize;
        // A stream that was cut may have ended after the first token of each answer.
        let credible = ended_normally || runs.len() > MAX_CHOICES;
        let rises = runs
            .windows(2)
            .all(|pair| pair[0][0].index < pair[1][0].index);
        let last = runs.len().saturating_sub(1);
        let one_token = |(position, run): (usize, &&[Element])| {
            let deltas = run.iter().filter(|element| element.delta).count();
            let outer = position == 0 || position == last;
            let fits = if outer {
                deltas <= 1
            } else {
                deltas == 1 && run.len() == 1
            };
            fits && (position == last || !run.iter().any(|element| element.reason))
        };
        enough && credible && rises && runs.iter().enumerate().all(one_token)
    }

    /// E13: an index reappears after another one, and the answers have separate roles or finish reasons.
    pub(super) fn interleave(&self) -> bool {
        let runs = self.runs();
        let reappearing: Vec<&&[Element]> = runs
            .iter()
            .enumerate()
            .filter(|(position, run)| {
                runs[..*position]
                    .iter()
                    .any(|before| before[0].index == run[0].index)
            })
            .map(|(_, run)| run)
            .collect();
        let own = |element: &&Element| element.role || element.reason;
        let owners: BTreeSet<u32> = self.elements.iter().filter(own).map(|e| e.index).collect();
        reappearing.iter().any(|run| own(&&run[0])) || (!reappearing.is_empty() && owners.len() > 1)
    }
}

fn is_present(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}
