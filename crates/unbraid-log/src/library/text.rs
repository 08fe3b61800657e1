//! The chunks that a recording writes in place of the upstream's.

mod cut;

use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, CompletionKind, Metadata, ServerError};

use crate::{
    End,
    tracker::{ChunkText, Identity},
};

/// Chunks that are read and written again. That happens only while a choice is cancelled.
pub(super) struct ParsedChunks;

impl ChunkText for ParsedChunks {
    fn cancelled(identity: &Identity, choice: ChoiceIndex) -> String {
        last_chunk(identity, choice, "cancelled")
    }

    fn failed(
        identity: &Identity,
        choice: ChoiceIndex,
        _end: End,
        _error: Option<&ServerError>,
    ) -> String {
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

    fn before_failure(payload: &[u8]) -> Option<Vec<u8>> {
        let mut chunk: Value = serde_json::from_slice(payload).ok()?;
        chunk.as_object_mut()?.remove("error")?;
        let has_entry = !chunk.get("choices")?.as_array()?.is_empty();
        has_entry.then(|| chunk.to_string().into_bytes())
    }

    fn without_choices(payload: &[u8], dropped: &[ChoiceIndex]) -> Option<Vec<u8>> {
        cut::without_choices(payload, dropped)
    }
}

fn last_chunk(identity: &Identity, choice: ChoiceIndex, reason: &str) -> String {
    let metadata = &identity.metadata;
    let is_text = match metadata.kind {
        Some(kind) => kind == CompletionKind::Text,
        None => identity.endpoint == "/v1/completions",
    };
    let (object, entry) = if is_text {
        let entry = json!({ "index": choice.0, "text": "", "finish_reason": reason });
        ("text_completion", entry)
    } else {
        let entry = json!({ "index": choice.0, "delta": {}, "finish_reason": reason });
        ("chat.completion.chunk", entry)
    };
    json!({
        "id": identity.id(),
        "object": object,
        "created": identity.created(),
        "model": identity.model(),
        "choices": [entry],
    })
    .to_string()
}
