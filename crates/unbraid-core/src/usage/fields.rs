//! Usage objects as they come: merged field by field, with numbers as servers write them.

use serde_json::{Map, Value};

use crate::{limits::MAX_FIELDS, node::to_value};

pub(super) type Fields = Map<String, Value>;

/// The fields of a usage object; `None` for an empty text and for anything but an object.
pub(super) fn parse(raw: &str) -> Option<Fields> {
    if raw.is_empty() {
        return None;
    }
    match to_value(raw) {
        Some(Value::Object(fields)) => Some(fields),
        _ => None,
    }
}

/// The last value per field; null never overwrites, nested details likewise (U2, U4, U5).
pub(super) fn merge(into: &mut Fields, fields: &Fields) {
    for (key, value) in fields {
        if into.len() >= MAX_FIELDS && !into.contains_key(key) {
            continue;
        }
        match value {
            Value::Null => {}
            _ if key.ends_with("_tokens") => {
                if let Some(count) = count(value) {
                    into.insert(key.clone(), count.into());
                }
            }
            Value::Object(details) => match into.entry(key).or_insert_with(|| Map::new().into()) {
                Value::Object(known) => merge(known, details),
                known => *known = value.clone(),
            },
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A number of tokens, also as a float or a string; a negative one is none (U9).
fn count(value: &Value) -> Option<u64> {
    let whole = |n: f64| (n >= 0.0 && n.fract() == 0.0 && n < 9e15).then_some(n as u64);
    match value {
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().and_then(whole)),
        Value::String(text) => {
            let text = text.trim();
            text.parse()
                .ok()
                .or_else(|| text.parse().ok().and_then(whole))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

pub(super) fn number(fields: &Fields, key: &str) -> Option<u64> {
    count(fields.get(key)?)
}

/// The most tokens that a report admits for its completion. Some servers leave the reasoning out of
/// `completion_tokens` and count it in the details or in the total only (U11).
pub(super) fn most_completion(fields: &Fields) -> Option<u64> {
    let completion = number(fields, "completion_tokens")?;
    let reasoning = fields
        .get("completion_tokens_details")
        .and_then(|details| number(details.as_object()?, "reasoning_tokens"));
    let total = Option::zip(
        number(fields, "total_tokens"),
        number(fields, "prompt_tokens"),
    );
    let beside_prompt = total.map(|(total, prompt)| total.saturating_sub(prompt));
    let all = [
        Some(completion),
        reasoning.map(|tokens| completion.saturating_add(tokens)),
        beside_prompt,
    ];
    all.into_iter().flatten().max()
}

/// Whether two JSON texts differ at most in whole numbers that are values: then the later one says all that the
/// earlier one says, and anew.
pub(super) fn differ_in_numbers_only(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    let (mut key_ended, mut value) = (false, false);
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if value && a.is_ascii_digit() && b.is_ascii_digit() {
            let Some(rest) = behind_digits(one).zip(behind_digits(other)) else {
                return false;
            };
            (one, other) = rest;
            continue;
        }
        // Without escapes, a quote before a colon ends a key.
        if a != b || *a == b'\\' {
            return false;
        }
        value = (key_ended && *a == b':') || (value && *a == b' ');
        key_ended = *a == b'"';
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

/// `None` behind so many digits that the number may be too large for a count: it would not take the earlier one's place.
fn behind_digits(text: &[u8]) -> Option<&[u8]> {
    const SAFE: usize = 15;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (digits <= SAFE).then(|| text.get(digits..).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(one: &str, other: &str, expected: bool) {
        assert_eq!(
            differ_in_numbers_only(one, other),
            expected,
            "{one} {other}"
        );
        assert_eq!(
            differ_in_numbers_only(other, one),
            expected,
            "{other} {one}"
        );
    }

    #[test]
    fn u04_only_whole_numbers_may_differ() {
        check(
            "{\"a\":1,\"b\":{\"c\": 22}}",
            "{\"a\":999,\"b\":{\"c\": 3}}",
            true,
        );
        check("{\"a1\":1}", "{\"a2\":1}", false);
        check("{\"a\":\"1\"}", "{\"a\":\"2\"}", false);
        check("{\"a\":1}", "{\"a\":-1}", false);
        check("{\"a\":1}", "{\"a\":1.5}", false);
        check("{\"a\":1.5}", "{\"a\":2.5}", true);
        check("{\"a\":1.5}", "{\"a\":1.7}", false);
        check("{\"a\":1}", "{\"a\":null}", false);
        check("{\"a\":1}", "{\"a\":1,\"b\":2}", false);
        check("{\"a\":[1,2]}", "{\"a\":[1,3]}", false);
        check("", "{}", false);
        check("{\"a:1\":1}", "{\"a:2\":1}", false);
        check("{\"\\\":1\":1}", "{\"\\\":2\":1}", false);
        check("{\"a\":1}", "{\"a\":99999999999999999999}", false);
    }

    #[test]
    fn what_is_no_count_takes_no_place() {
        let fields = |raw: &str| parse(raw).unwrap();
        let mut merged = fields("{\"completion_tokens\":7}");
        for odd in ["{}", "[]", "\"many\"", "-1", "99999999999999999999", "null"] {
            merge(
                &mut merged,
                &fields(&format!("{{\"completion_tokens\":{odd}}}")),
            );
            assert_eq!(number(&merged, "completion_tokens"), Some(7), "{odd}");
        }
    }

    #[test]
    fn u11_what_a_report_admits_counts_reasoning_and_total() {
        let most = |raw: &str| most_completion(&parse(raw).unwrap());
        assert_eq!(most("{\"total_tokens\":9}"), None);
        assert_eq!(most("{\"completion_tokens\":3}"), Some(3));
        let xai =
            "{\"completion_tokens\":3,\"completion_tokens_details\":{\"reasoning_tokens\":4}}";
        assert_eq!(most(xai), Some(7));
        let gemini = "{\"prompt_tokens\":5,\"completion_tokens\":3,\"total_tokens\":53}";
        assert_eq!(most(gemini), Some(48));
    }
}
