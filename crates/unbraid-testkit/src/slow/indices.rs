//! What the order of the choices' indices says of the stream as a whole.

use std::collections::BTreeSet;

use serde_json::Value;

use super::choice::finish_reason;
use super::text;

/// Every element of the stream in its order, by what matters here.
#[derive(Debug, Default)]
pub(super) struct Indices {
    elements: Vec<Element>,
}

#[derive(Debug)]
struct Element {
    index: u32,
    /// It brings text, a call or log probabilities.
    delta: bool,
    role: bool,
    reason: bool,
}

/// More choices than this are refused.
const MOST_CHOICES: usize = 128;

impl Indices {
    pub(super) fn note(&mut self, index: u32, element: &Value) {
        let delta = element.get("delta").unwrap_or(&Value::Null);
        let fields = delta.as_object().into_iter().flatten();
        let in_delta = fields
            .filter(|(key, _)| *key != "role")
            .any(|(_, value)| says_something(value));
        let beside = ["text", "logprobs", "message"];
        let delta_or_beside = in_delta
            || beside
                .iter()
                .any(|key| element.get(key).is_some_and(says_something));
        self.elements.push(Element {
            index,
            delta: delta_or_beside,
            role: text(delta, "role").is_some(),
            reason: finish_reason(element).is_some(),
        });
    }

    /// The elements, cut where another index follows.
    fn runs(&self) -> Vec<&[Element]> {
        self.elements
            .chunk_by(|one, next| one.index == next.index)
            .collect()
    }

    /// E12: each index is higher than the last one, one delta came of each, and a reason for the last one at most.
    pub(super) fn count_tokens(&self, expected: Option<u32>, by_itself: bool) -> bool {
        let runs = self.runs();
        let enough = runs.len() >= 5 && runs.len() > expected.unwrap_or(0) as usize;
        // A stream that was cut may have been cut after the first token of each answer.
        let credible = by_itself || runs.len() > MOST_CHOICES;
        let rises = runs
            .windows(2)
            .all(|pair| pair[0][0].index < pair[1][0].index);
        let last = runs.len().saturating_sub(1);
        let one_token = |(at, run): (usize, &&[Element])| {
            let deltas = run.iter().filter(|element| element.delta).count();
            let outer = at == 0 || at == last;
            let fits = if outer {
                deltas <= 1
            } else {
                deltas == 1 && run.len() == 1
            };
            fits && (at == last || !run.iter().any(|element| element.reason))
        };
        enough && credible && rises && runs.iter().enumerate().all(one_token)
    }

    /// E13: an index comes back after another one, and the answers have roles or finish reasons of their own.
    pub(super) fn stand_side_by_side(&self) -> bool {
        let runs = self.runs();
        let back: Vec<&&[Element]> = runs
            .iter()
            .enumerate()
            .filter(|(at, run)| {
                runs[..*at]
                    .iter()
                    .any(|before| before[0].index == run[0].index)
            })
            .map(|(_, run)| run)
            .collect();
        let own = |element: &&Element| element.role || element.reason;
        let owners: BTreeSet<u32> = self.elements.iter().filter(own).map(|e| e.index).collect();
        back.iter().any(|run| own(&&run[0])) || (!back.is_empty() && owners.len() > 1)
    }
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => true,
    }
}
