//! The chunks of a fan-out: the upstreams' own, as one stream.

use serde_json::{Map, Value, json};
use unbraid_core::{ChoiceIndex, CompletionKind, Metadata};

use crate::{fields::Fields, view::set_index};

/// The last chunk of a fan-out, with the sum of all usage.
pub(super) fn usage_chunk(first: &Metadata, usage: &Value) -> String {
    let mut chunk = envelope(first);
    chunk.insert("choices".into(), json!([]));
    chunk.insert("usage".into(), usage.clone());
    Value::Object(chunk).to_string()
}

fn envelope(metadata: &Metadata) -> Map<String, Value> {
    let object = match metadata.kind.unwrap_or_default() {
        CompletionKind::Chat => "chat.completion.chunk",
        _ => "text_completion",
    };
    let mut chunk = Map::new();
    chunk.insert(
        "id".into(),
        metadata.id.as_deref().unwrap_or_default().into(),
    );
    chunk.insert("object".into(), object.into());
    chunk.insert("created".into(), metadata.created.unwrap_or(0).into());
    chunk.insert(
        "model".into(),
        metadata.model.as_deref().unwrap_or_default().into(),
    );
    chunk
}

/// A chunk of one body of a fan-out, with the index of its choice and the identity of the first body. Usage is removed, and
/// everything else keeps its text. `None` if it is not a JSON object.
pub(super) fn merged_chunk(payload: &[u8], index: ChoiceIndex, first: &Metadata) -> Option<String> {
    let indexed = set_index(payload, index);
    let fields: Fields = serde_json::from_slice(indexed.as_deref().unwrap_or(payload)).ok()?;
    let mut changed = Vec::new();
    if let (Some(id), Some(_)) = (&first.id, fields.get("id")) {
        changed.push(("id", Value::from(&**id).to_string().into()));
    }
    if let (Some(created), Some(_)) = (first.created, fields.get("created")) {
        changed.push(("created", created.to_string().into()));
    }
    // `null` announces that usage follows, and it does.
    let has_usage = fields.get("usage").is_some_and(|usage| usage != "null");
    Some(fields.encode(&changed, if has_usage { &["usage"] } else { &[] }))
}

/// Adds up usage: numbers are summed, objects field by field.
pub(super) fn sum_usage(sum: &mut Value, usage: &Value) {
    match (&mut *sum, usage) {
        (Value::Object(sum), Value::Object(usage)) => {
            for (name, value) in usage {
                sum_usage(sum.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            *sum = match (a.as_u64(), b.as_u64()) {
                (Some(a), Some(b)) => a.saturating_add(b).into(),
                _ => json!(a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0)),
            };
        }
        (Value::Null, value) => *sum = value.clone(),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first() -> Metadata {
        let mut first = Metadata::default();
        first.id = Some("first".into());
        first.created = Some(7);
        first
    }

    #[test]
    fn a_chunk_of_a_fan_out_keeps_everything_but_index_and_identity() {
        let payload = br#"{"id":"b","object":"o","created":9,"x":1.10,"choices":[{"index":0,"delta":{"content":"Hi"},"y":[]}],"usage":{"total_tokens":3}}"#;
        assert_eq!(
            merged_chunk(payload, ChoiceIndex(2), &first()).unwrap(),
            r#"{"id":"first","object":"o","created":7,"x":1.10,"choices":[{"index":2,"delta":{"content":"Hi"},"y":[]}]}"#
        );
        assert_eq!(merged_chunk(b"nonsense", ChoiceIndex(2), &first()), None);
    }

    #[test]
    fn usage_is_summed_field_by_field() {
        let mut sum = Value::Null;
        for _ in 0..2 {
            let usage =
                json!({"total_tokens": 3, "details": {"cached": 1}, "service": "x", "none": null});
            sum_usage(&mut sum, &usage);
        }
        assert_eq!(
            sum,
            json!({"total_tokens": 6, "details": {"cached": 2}, "service": "x", "none": null})
        );
    }
}
