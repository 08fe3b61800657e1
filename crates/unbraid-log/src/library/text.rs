//! The chunks that a recording writes in place of the upstream's.

use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, CompletionKind, Metadata};

use crate::{
    End,
    tracker::{ChunkText, Identity},
};

/// Chunks that are parsed and written again. That happens only while a choice is cancelled.
pub(super) struct ParsedChunks;

impl ChunkText for ParsedChunks {
    fn cancelled(identity: &Identity, choice: ChoiceIndex) -> String {
        last_chunk(identity, choice, "cancelled")
    }

    fn failed(identity: &Identity, choice: ChoiceIndex, _end: End) -> String {
        last_chunk(identity, choice, "error")
    }

    fn merged(payload: &[u8], choice: ChoiceIndex, _first: &Metadata) -> Option<String> {
        let mut chunk: Value = serde_json::from_slice(payload).ok()?;
        for entry in chunk.get_mut("choices")?.as_array_mut()? {
            entry
                .as_object_mut()?
                .insert("index".into(), choice.0.into());
        }
        Some(chunk.to_string())
    }

    fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>> {
        let mut chunk: Value = serde_json::from_slice(payload).ok()?;
        let entries = chunk.get_mut("choices")?.as_array_mut()?;
        entries.retain(|entry| {
            let index = entry.get("index").and_then(Value::as_u64);
            !dropped
                .iter()
                .any(|choice| Some(u64::from(choice.0)) == index)
        });
        (!entries.is_empty()).then(|| chunk.to_string().into_bytes())
    }
}

fn last_chunk(identity: &Identity, choice: ChoiceIndex, reason: &str) -> String {
    let Identity { metadata, endpoint } = identity;
    let is_text = match metadata.kind {
        Some(kind) => kind == CompletionKind::Text,
        None => *endpoint == "/v1/completions",
    };
    let (object, entry) = if is_text {
        let entry = json!({ "index": choice.0, "text": "", "finish_reason": reason });
        ("text_completion", entry)
    } else {
        let entry = json!({ "index": choice.0, "delta": {}, "finish_reason": reason });
        ("chat.completion.chunk", entry)
    };
    json!({
        "id": metadata.id.as_deref().unwrap_or_default(),
        "object": object,
        "created": metadata.created.unwrap_or_default(),
        "model": metadata.model.as_deref().unwrap_or_default(),
        "choices": [entry],
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_dropped_choices_are_removed_and_the_rest_keeps_its_order() {
        let payload = br#"{"z":1,"choices":[{"index":1,"x":1.10},{"index":0}],"a":2}"#;
        let kept = ParsedChunks::without_choices(payload, &[ChoiceIndex(0)]).unwrap();
        let expected = r#"{"z":1,"choices":[{"index":1,"x":1.1}],"a":2}"#;
        assert_eq!(String::from_utf8(kept).unwrap(), expected);
        let all = [ChoiceIndex(0), ChoiceIndex(1)];
        assert_eq!(ParsedChunks::without_choices(payload, &all), None);
        assert_eq!(ParsedChunks::without_choices(b"{", &all), None);
    }
}
