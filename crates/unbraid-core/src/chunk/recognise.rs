//! Recognizes the format of a JSON value without choices.

use super::{Chunk, TEXT_COMPLETION};
use crate::BodyFormat;

impl Chunk<'_> {
    /// The format of the value; `None` if it has a choice or an error, which need no format, or is empty.
    pub(crate) fn recognise(&self) -> Option<BodyFormat> {
        if !self.elements.is_empty() || self.error.is_some() {
            return None;
        }
        if self.has_choices || self.is_completion() {
            return Some(BodyFormat::Completion);
        }
        let foreign = self
            .by_object()
            .or_else(|| self.by_type())
            .or_else(|| self.by_fields());
        let own_usage = || {
            let usage = self.usage.as_deref().unwrap_or_default();
            let names = ["\"prompt_tokens\"", "\"completion_tokens\""];
            self.extra("type").is_none() && names.iter().any(|name| usage.contains(name))
        };
        match foreign {
            Some(format) => Some(format),
            None if own_usage() => Some(BodyFormat::Completion),
            None if self.is_blank() => None,
            None => Some(BodyFormat::Json),
        }
    }

    fn is_completion(&self) -> bool {
        matches!(
            self.object.as_deref(),
            Some("chat.completion.chunk" | "chat.completion" | TEXT_COMPLETION)
        )
    }

    /// Whether the value has none of the known or unknown fields.
    fn is_blank(&self) -> bool {
        self.id.is_none()
            && self.created.is_none()
            && self.model.is_none()
            && self.object.is_none()
            && self.usage.is_none()
            && self.extra.is_empty()
    }

    fn by_object(&self) -> Option<BodyFormat> {
        let object = self.object.as_deref()?;
        if object == "response" {
            Some(BodyFormat::Responses)
        } else if object == "thread" || object.starts_with("thread.") {
            Some(BodyFormat::Assistants)
        } else {
            None
        }
    }

    fn by_type(&self) -> Option<BodyFormat> {
        let name = self.string("type").or_else(|| self.string("event_type"))?;
        Some(match name {
            "message_start"
            | "message_delta"
            | "message_stop"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop" => BodyFormat::Anthropic,
            "message" if self.is_list("content") => BodyFormat::Anthropic,
            "completion" if self.extra("completion").is_some() => BodyFormat::Anthropic,
            "message-start" | "message-end" | "content-start" | "content-delta" | "content-end"
            | "tool-plan-delta" | "tool-call-start" | "tool-call-delta" | "tool-call-end"
            | "citation-start" | "citation-end" | "text-generation" | "stream-end" => {
                BodyFormat::Cohere
            }
            name if name.starts_with("response.") => BodyFormat::Responses,
            _ => return None,
        })
    }

    fn by_fields(&self) -> Option<BodyFormat> {
        let has = |name: &str| self.extra(name).is_some();
        let is_object = |name: &str| self.extra(name).is_some_and(|raw| raw.starts_with('{'));
        let is_bool = |name: &str| matches!(self.extra(name), Some("true" | "false"));
        Some(if self.is_list("candidates") || has("usageMetadata") {
            BodyFormat::Gemini
        } else if has("created_at") && is_bool("done") {
            BodyFormat::Ollama
        } else if has("stopReason") && (is_object("output") || is_object("metrics")) {
            BodyFormat::Bedrock
        } else if is_object("message") && has("finish_reason") {
            BodyFormat::Cohere
        } else if is_object("token") && self.extra.iter().any(|(key, _)| key == "index")
            || has("generated_text")
        {
            BodyFormat::TextGenerationInference
        } else if has("content") && is_bool("stop") {
            BodyFormat::LlamaCpp
        } else {
            return None;
        })
    }

    /// The raw value of a field that chunks in the OpenAI format do not have.
    fn extra(&self, name: &str) -> Option<&str> {
        let mut fields = self.extra.iter();
        fields.find_map(|(key, raw)| (key == name).then_some(&**raw))
    }

    /// The text of such a field, if it is a string. It is compared only with names that need no escape.
    fn string(&self, name: &str) -> Option<&str> {
        self.extra(name)?.strip_prefix('"')?.strip_suffix('"')
    }

    fn is_list(&self, name: &str) -> bool {
        self.extra(name).is_some_and(|raw| raw.starts_with('['))
    }
}
