//! Chunks that the gateway adds to a stream.

use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, CompletionKind, Metadata, ServerError};
use unbraid_log::End;

use crate::view::terminal;

/// Builds the last chunks of choices that the gateway ends.
#[derive(Debug, Clone)]
pub(crate) struct SyntheticChunks<'a> {
    metadata: &'a Metadata,
    kind: CompletionKind,
    id: &'a str,
    created: u64,
    model: Option<&'a str>,
}

/// The kind of the answers of an endpoint.
pub(in crate::view) fn kind_of(endpoint: &str) -> CompletionKind {
    if endpoint.ends_with("/chat/completions") {
        CompletionKind::Chat
    } else {
        CompletionKind::Text
    }
}

/// The name of the objects of a stream.
pub(in crate::view) fn object_of(kind: CompletionKind) -> &'static str {
    if kind == CompletionKind::Text {
        "text_completion"
    } else {
        "chat.completion.chunk"
    }
}

/// An entry of `choices` without a message.
pub(in crate::view) fn empty_entry(kind: CompletionKind, choice: ChoiceIndex) -> Value {
    if kind == CompletionKind::Text {
        json!({ "index": choice.0, "text": "" })
    } else {
        json!({ "index": choice.0, "delta": {} })
    }
}

impl<'a> SyntheticChunks<'a> {
    /// Chunks with the id, the model and the time of a stream. While it is empty, the endpoint decides their kind.
    pub(crate) fn new(metadata: &'a Metadata, endpoint: &str) -> Self {
        let kind = metadata.kind.unwrap_or_else(|| kind_of(endpoint));
        Self {
            metadata,
            kind,
            id: metadata.id.as_deref().unwrap_or_default(),
            created: 0,
            model: None,
        }
    }

    /// The id of the chunks.
    pub(crate) fn with_id(mut self, id: &'a str) -> Self {
        self.id = id;
        self
    }

    /// What the chunks have while the stream is empty: when it was created, and the model that was requested.
    pub(crate) fn with_request(mut self, created: u64, model: Option<&'a str>) -> Self {
        self.created = created;
        self.model = model;
        self
    }

    /// The last chunk of a cancelled choice.
    pub(crate) fn cancelled(&self, choice: ChoiceIndex) -> String {
        self.chunk(choice, "cancelled", None)
    }

    /// The last chunk of one choice of a fan-out whose request has failed, while the others continue.
    pub(crate) fn failed(
        &self,
        choice: ChoiceIndex,
        end: End,
        error: Option<&ServerError>,
    ) -> String {
        self.chunk(choice, "error", Some(terminal::error_object(end, error)))
    }

    fn chunk(&self, choice: ChoiceIndex, reason: &str, error: Option<Value>) -> String {
        let mut entry = empty_entry(self.kind, choice);
        if let Some(entry) = entry.as_object_mut() {
            entry.insert("finish_reason".to_owned(), reason.into());
            entry.extend(error.map(|error| ("error".to_owned(), error)));
        }
        json!({
            "id": self.id,
            "object": object_of(self.kind),
            "created": self.metadata.created.unwrap_or(self.created),
            "model": self.metadata.model.as_deref().or(self.model).unwrap_or_default(),
            "choices": [entry],
        })
        .to_string()
    }
}
