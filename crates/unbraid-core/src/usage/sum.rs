//! Adds up the usage of several requests.

use serde_json::{Map, Value, json};

use super::{Usage, UsageSource, exact::Exact};

impl Usage {
    /// Adds up the usage of several requests for one answer. A number is `None` if one of the requests lacks it.
    ///
    /// A prompt that was sent several times counts several times, as it is billed. Numbers in [`raw`](Self::raw) are
    /// added up over the requests that have them; of other values the last counts. `source` is the same as that of all
    /// requests, otherwise `Mixed`.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Usage;
    ///
    /// let mut one = Usage::default();
    /// (one.prompt_tokens, one.completion_tokens) = (Some(10), Some(3));
    /// let sum = Usage::sum([one.clone(), one]);
    /// assert_eq!((sum.prompt_tokens, sum.completion_tokens), (Some(20), Some(6)));
    /// ```
    #[must_use]
    pub fn sum(requests: impl IntoIterator<Item = Self>) -> Self {
        let add = |sum: Option<u64>, more: Option<u64>| Some(sum?.saturating_add(more?));
        let combined = requests.into_iter().reduce(|mut sum, one| {
            sum.counted = counted_sum(&sum, &one);
            sum.prompt_tokens = add(sum.prompt_tokens, one.prompt_tokens);
            sum.completion_tokens = add(sum.completion_tokens, one.completion_tokens);
            sum.total_tokens = add(sum.total_tokens, one.total_tokens);
            sum.cached_tokens = add(sum.cached_tokens, one.cached_tokens);
            sum.reasoning_tokens = add(sum.reasoning_tokens, one.reasoning_tokens);
            sum.per_choice.extend(one.per_choice);
            sum.prompts.clear(); // they are positions in different lists
            sum.by_choice |= one.by_choice;
            sum.below_received |= one.below_received;
            if sum.source != one.source {
                sum.source = UsageSource::Mixed;
            }
            sum.estimated.prompt |= one.estimated.prompt;
            sum.estimated.completion |= one.estimated.completion;
            sum.estimated.total |= one.estimated.total;
            sum.estimated.choices.extend(one.estimated.choices);
            add_value(&mut sum.raw, one.raw);
            sum.exact = Exact::default(); // no server wrote the sums
            sum
        });
        let mut sum = combined.unwrap_or_default();
        sum.per_choice.sort_by_key(|(index, _)| *index);
        sum.estimated.choices.sort_unstable();
        sum
    }
}

/// Adds up the usage of requests in different dialects. Their raw objects have other names for the same counts, so that of
/// the sum holds the normalized counts. A provider that reports no total counts with its prompt and its completion.
#[doc(hidden)]
#[must_use]
pub fn sum_across_dialects(requests: impl IntoIterator<Item = Usage>) -> Usage {
    let with_total = |mut one: Usage| {
        let parts = Option::zip(one.prompt_tokens, one.completion_tokens);
        let both = || parts.map(|(prompt, completion)| prompt.saturating_add(completion));
        one.total_tokens = one.total_tokens.or_else(both);
        one.raw = Value::Null;
        one
    };
    let mut sum = Usage::sum(requests.into_iter().map(with_total));
    let counts = [
        ("prompt_tokens", sum.prompt_tokens, sum.estimated.prompt),
        (
            "completion_tokens",
            sum.completion_tokens,
            sum.estimated.completion,
        ),
        ("total_tokens", sum.total_tokens, sum.estimated.total),
    ];
    let reported = counts.into_iter().filter(|(.., estimated)| !estimated);
    let fields: Map<String, Value> = reported
        .filter_map(|(name, tokens, _)| Some((name.to_owned(), json!(tokens?))))
        .collect();
    if !fields.is_empty() {
        sum.raw = Value::Object(fields);
    }
    sum
}

/// The estimate for a sum in which a reported number is below what was received. The other reports count as they are.
fn counted_sum(one: &Usage, other: &Usage) -> Option<u64> {
    one.counted.or(other.counted)?;
    let own = |usage: &Usage| usage.counted.or(usage.completion_tokens);
    Some(own(one)?.saturating_add(own(other)?))
}

/// Adds up the numbers of two objects field by field. The depth is bounded by that of `serde_json`.
pub(super) fn add_value(sum: &mut Value, more: Value) {
    match (sum, more) {
        (_, Value::Null) => {}
        (Value::Object(sum), Value::Object(more)) => add_fields(sum, more),
        (sum @ Value::Number(_), Value::Number(more)) => {
            let integers = Option::zip(sum.as_u64(), more.as_u64());
            *sum = match integers {
                Some((a, b)) => a.saturating_add(b).into(),
                None => (sum.as_f64().unwrap_or(0.0) + more.as_f64().unwrap_or(0.0)).into(),
            };
        }
        (sum, more) => *sum = more,
    }
}

fn add_fields(sum: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match sum.get_mut(&key) {
            Some(known) => add_value(known, value),
            None => {
                sum.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ChoiceIndex;

    fn reported(choice: u32, tokens: u64) -> Usage {
        Usage {
            prompt_tokens: Some(5),
            completion_tokens: Some(tokens),
            total_tokens: Some(5 + tokens),
            per_choice: vec![(ChoiceIndex(choice), tokens)],
            source: UsageSource::Reported,
            raw: json!({"completion_tokens": tokens, "cost": 0.5, "details": {"cached": 2}, "tier": "a"}),
            ..Usage::default()
        }
    }

    #[test]
    fn all_numbers_are_added_up() {
        let sum = Usage::sum([reported(1, 7), reported(0, 4)]);
        assert_eq!(sum.prompt_tokens, Some(10));
        assert_eq!(sum.completion_tokens, Some(11));
        assert_eq!(sum.total_tokens, Some(21));
        assert_eq!(sum.per_choice, [(ChoiceIndex(0), 4), (ChoiceIndex(1), 7)]);
        assert_eq!(sum.source, UsageSource::Reported);
        let raw =
            json!({"completion_tokens": 11, "cost": 1.0, "details": {"cached": 4}, "tier": "a"});
        assert_eq!(sum.raw, raw);
    }

    #[test]
    fn raw_objects_of_different_dialects_become_normalized_counts() {
        let anthropic = Usage {
            prompt_tokens: Some(3),
            completion_tokens: Some(2),
            raw: json!({"input_tokens": 3, "output_tokens": 2}),
            source: UsageSource::Reported,
            ..Usage::default()
        };
        let sum = sum_across_dialects([reported(0, 4), anthropic.clone()]);
        let raw = json!({"prompt_tokens": 8, "completion_tokens": 6, "total_tokens": 14});
        assert_eq!(sum.raw, raw);
        assert_eq!(sum.total_tokens, Some(14));
        let sum = sum_across_dialects([anthropic, Usage::default()]);
        assert_eq!(sum.raw, Value::Null, "one source is unknown");
        assert_eq!(sum.source, UsageSource::Mixed);
    }

    #[test]
    fn u15_estimates_are_added_up_with_the_reports() {
        let below = Usage {
            counted: Some(40),
            below_received: true,
            ..reported(0, 4)
        };
        let sum = Usage::sum([reported(1, 7), below.clone()]);
        assert_eq!((sum.completion_tokens, sum.counted), (Some(11), Some(47)));
        assert!(sum.below_received);
        assert_eq!(Usage::sum([below.clone(), below]).counted, Some(80));
        assert_eq!(Usage::sum([reported(0, 4), reported(1, 4)]).counted, None);
    }

    #[test]
    fn a_number_that_one_request_lacks_is_unknown_in_the_sum() {
        let sum = Usage::sum([reported(0, 4), Usage::default()]);
        assert_eq!((sum.prompt_tokens, sum.completion_tokens), (None, None));
        assert_eq!(sum.per_choice, [(ChoiceIndex(0), 4)]);
        assert_eq!(sum.source, UsageSource::Mixed);
        assert_eq!(sum.raw, reported(0, 4).raw);
        assert_eq!(Usage::sum([]), Usage::default());
    }
}
