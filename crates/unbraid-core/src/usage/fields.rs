//! Merges usage objects field by field.

mod parse;

use std::sync::Arc;

use serde_json::{Map, Value};

pub(super) use self::parse::parse;
use crate::limits::MAX_FIELDS;

pub(super) type Fields = Map<String, Value>;

/// Merges fields: the last value of each counts, null replaces nothing, and nested details are merged in the same way
/// (U2, U4, U5).
pub(super) fn merge(target: &mut Fields, fields: &Fields) {
    for (key, value) in fields {
        if target.len() >= MAX_FIELDS && !target.contains_key(key) {
            continue;
        }
        match value {
            Value::Null => {}
            _ if key.ends_with("_tokens") => match count(value) {
                Some(count) => drop(target.insert(key.clone(), count.into())),
                // It replaces no count.
                None if is_odd_count(value) && number(target, key).is_none() => {
                    target.insert(key.clone(), value.clone());
                }
                None => {}
            },
            Value::Object(details) => match target.get_mut(key) {
                Some(Value::Object(known)) => merge(known, details),
                Some(known) => *known = value.clone(),
                None => {
                    target.insert(key.clone(), merged(details).into());
                }
            },
            // E24: as among the fields of the envelope, it stands for an absent one.
            _ if is_empty(value) && target.contains_key(key) => {}
            _ => {
                target.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Whether a value is a text or a list without content.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// The fields alone, as [`merge`] leaves them.
pub(super) fn merged(fields: &Fields) -> Fields {
    if is_merged(fields) {
        return fields.clone(); // without hashing each name again
    }
    let mut target = Fields::with_capacity(fields.len().min(MAX_FIELDS));
    merge(&mut target, fields);
    target
}

/// The same for fields that nobody else needs. They are changed in place.
pub(super) fn into_merged(mut fields: Fields) -> Fields {
    if fields.len() > MAX_FIELDS {
        return merged(&fields);
    }
    fields.retain(|key, value| match value {
        Value::Null => false,
        _ if key.ends_with("_tokens") => match count(value) {
            Some(count) => {
                *value = count.into();
                true
            }
            None => is_odd_count(value),
        },
        Value::Object(details) => {
            *details = into_merged(std::mem::take(details));
            true
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    });
    fields
}

/// The same for fields that are kept elsewhere, too.
pub(super) fn shared_merged(fields: &Arc<Fields>) -> Arc<Fields> {
    if is_merged(fields) {
        return Arc::clone(fields);
    }
    Arc::new(merged(fields))
}

/// Whether [`merge`] would add all fields as they are, as nearly always.
fn is_merged(fields: &Fields) -> bool {
    let is_kept = |(key, value): (&String, &Value)| match value {
        Value::Null => false,
        _ if key.ends_with("_tokens") => {
            value.is_u64() || (count(value).is_none() && is_odd_count(value))
        }
        Value::Object(details) => is_merged(details),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    };
    fields.len() <= MAX_FIELDS && fields.iter().all(is_kept)
}

/// A number of tokens, which may also be a float or a string. A negative number counts as absent (U9).
fn count(value: &Value) -> Option<u64> {
    let integer = |number: f64| {
        (number >= 0.0 && number.fract() == 0.0 && number < 9e15).then_some(number as u64)
    };
    match value {
        Value::Number(number) => number
            .as_u64()
            .or_else(|| number.as_f64().and_then(integer)),
        Value::String(text) => {
            let text = text.trim();
            text.parse()
                .ok()
                .or_else(|| text.parse().ok().and_then(integer))
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a value in place of a [`count`] is kept as the server wrote it (U9): a fraction, a number beyond `u64`, or anything else
/// that says something. A negative number is dropped.
fn is_odd_count(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Bool(true) => true,
        Value::Number(number) => number.as_f64().is_none_or(|number| number >= 0.0),
        Value::String(text) => {
            let text = text.trim();
            !text.is_empty() && text.parse().map_or(true, |number: f64| number >= 0.0)
        }
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
    }
}

/// Whether usage has a value in place of a count that is none (U9).
pub(super) fn has_odd_counts(fields: &Fields) -> bool {
    fields.iter().any(|(key, value)| match value {
        _ if is_count_name(key) => count(value).is_none() && is_odd_count(value),
        Value::Object(details) => has_odd_counts(details),
        _ => false,
    })
}

/// Whether a field has a number of tokens, whichever provider sent it.
fn is_count_name(key: &str) -> bool {
    [
        "_tokens",
        "Tokens",
        "okenCount",
        "token_count",
        "eval_count",
    ]
    .iter()
    .any(|ending| key.ends_with(ending))
}

pub(super) fn number(fields: &Fields, key: &str) -> Option<u64> {
    count(get(fields, key)?)
}

/// The field of a name. Comparing it with a few names costs less than its hash.
pub(super) fn get<'f>(fields: &'f Fields, key: &str) -> Option<&'f Value> {
    const FEW: usize = 16;
    if fields.len() > FEW {
        return fields.get(key);
    }
    let found = fields.iter().find(|(known, _)| *known == key);
    found.map(|(_, value)| value)
}

/// The largest number of completion tokens that a report allows. Some servers do not include the reasoning in
/// `completion_tokens`, but only in the details or in the total (U11).
pub(super) fn max_completion(fields: &Fields) -> Option<u64> {
    let completion = number(fields, "completion_tokens")?;
    let reasoning = get(fields, "completion_tokens_details")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_counts_replace_nothing() {
        let fields = |raw: &str| parse(raw).unwrap();
        let mut merged = fields("{\"completion_tokens\":7}");
        for invalid in ["{}", "[]", "\"many\"", "-1", "99999999999999999999", "null"] {
            merge(
                &mut merged,
                &fields(&format!("{{\"completion_tokens\":{invalid}}}")),
            );
            assert_eq!(number(&merged, "completion_tokens"), Some(7), "{invalid}");
        }
    }

    #[test]
    fn fields_that_are_copied_are_those_that_merging_gives() {
        for raw in [
            "{}",
            "{\"a_tokens\":7,\"cost\":0.10,\"d\":{\"b_tokens\":0,\"list\":[null]},\"s\":\"x\",\"t\":true}",
            "{\"a_tokens\":7.0,\"b\":1}",
            "{\"a_tokens\":\"7\",\"b_tokens\":{},\"c_tokens\":-1}",
            "{\"a\":null,\"d\":{\"e\":{\"f\":null,\"g_tokens\":[]}}}",
            &format!(
                "{{\"d\":{{{}\"z\":1}}}}",
                (0..MAX_FIELDS)
                    .map(|n| format!("\"{n}\":1,"))
                    .collect::<String>()
            ),
        ] {
            let fields = parse(raw).unwrap();
            let mut target = Fields::new();
            merge(&mut target, &fields);
            let text = |fields: &Fields| serde_json::to_string(fields).unwrap();
            assert_eq!(text(&merged(&fields)), text(&target), "{raw}");
            assert_eq!(text(&into_merged(fields)), text(&target), "{raw}");
        }
    }

    #[test]
    fn u11_the_largest_completion_includes_reasoning_and_total() {
        let max = |raw: &str| max_completion(&parse(raw).unwrap());
        assert_eq!(max("{\"total_tokens\":9}"), None);
        assert_eq!(max("{\"completion_tokens\":3}"), Some(3));
        let xai =
            "{\"completion_tokens\":3,\"completion_tokens_details\":{\"reasoning_tokens\":4}}";
        assert_eq!(max(xai), Some(7));
        let gemini = "{\"prompt_tokens\":5,\"completion_tokens\":3,\"total_tokens\":53}";
        assert_eq!(max(gemini), Some(48));
    }
}
