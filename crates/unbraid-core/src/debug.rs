//! `Debug` of the types that contain text of a model or a server. It shows counts and lengths, never the text.
//!
//! Streams contain what users write, and `Debug` output is often logged. To print the text, access the field.

use std::fmt::{self, Debug, Formatter};

use crate::{
    Audio, ChoiceOutcome, Event, FinishReason, Fragment, Message, Metadata, Sequenced, Text,
    ToolCall, ToolCallUpdate, Transcript, Update, Usage,
    decode::Decoder,
    json::Repaired,
    text_delta::{Extras, TextDelta},
    transcript::CallEntry,
    usage::Reported,
};

/// Stands for a text: `5 bytes`.
struct Bytes(usize);

impl Debug for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

fn bytes(text: impl AsRef<str>) -> Bytes {
    Bytes(text.as_ref().len())
}

fn optional_bytes(text: Option<impl AsRef<str>>) -> Option<Bytes> {
    text.map(bytes)
}

impl Debug for Text {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&bytes(self)).finish()
    }
}

impl Debug for FinishReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stop => f.write_str("Stop"),
            Self::Length => f.write_str("Length"),
            Self::ToolCalls => f.write_str("ToolCalls"),
            Self::FunctionCall => f.write_str("FunctionCall"),
            Self::ContentFilter => f.write_str("ContentFilter"),
            Self::Other(raw) => f.debug_tuple("Other").field(&bytes(raw)).finish(),
        }
    }
}

impl Debug for Fragment<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fragment")
            .field("text", &bytes(&self.text))
            .field("low", &self.low.is_some())
            .field("high", &self.high.is_some())
            .finish()
    }
}

impl Debug for ToolCallUpdate<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCallUpdate")
            .field("wire_index", &self.wire_index)
            .field("position", &self.position)
            .field("id", &optional_bytes(self.id.as_ref()))
            .field("kind", &optional_bytes(self.kind.as_ref()))
            .field("name", &self.name)
            .field("arguments", &self.arguments)
            .field("extra", &self.extra.len())
            .finish()
    }
}

impl Debug for Update<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Update")
            .field("event_index", &self.event_index)
            .field("last_of_event", &self.last_of_event)
            .field("choice", &self.choice)
            .field("kind", &self.kind)
            .field("id", &optional_bytes(self.id.as_ref()))
            .field("created", &self.created)
            .field("model", &optional_bytes(self.model.as_ref()))
            .field("role", &optional_bytes(self.role.as_ref()))
            .field("content", &self.content)
            .field("reasoning", &self.reasoning)
            .field("reasoning_source", &self.reasoning_source)
            .field("refusal", &self.refusal)
            .field("function_name", &self.function_name)
            .field("function_arguments", &self.function_arguments)
            .field("tool_calls", &self.tool_calls)
            .field("logprobs", &optional_bytes(self.logprobs.as_ref()))
            .field(
                "finish_reason",
                &optional_bytes(self.finish_reason.as_ref()),
            )
            .field("is_full_message", &self.is_full_message)
            .field("usage", &optional_bytes(self.usage.as_ref()))
            .field("error", &optional_bytes(self.error.as_ref()))
            .field("metadata", &self.metadata.len())
            .field("delta_field_count", &self.delta_field_count)
            .field("warnings", &self.warnings)
            .field("is_chunk", &self.is_chunk)
            .field("done", &self.done)
            .finish()
    }
}

impl Debug for TextDelta<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextDelta")
            .field("event_index", &self.event_index)
            .field("choice", &self.choice)
            .field("kind", &self.kind)
            .field("role", &optional_bytes(self.role))
            .field("text_kind", &self.text_kind)
            .field("text", &bytes(self.text))
            .field("extras", &self.extras)
            .finish()
    }
}

impl Debug for Extras<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extras")
            .field("fields", &self.fields.len())
            .field("delta_field_count", &self.delta_field_count)
            .field("logprobs", &optional_bytes(self.logprobs))
            .finish()
    }
}

impl Debug for ToolCall {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("call_index", &self.call_index)
            .field("wire_index", &self.wire_index)
            .field("id", &optional_bytes(self.id.as_ref()))
            .field("name", &bytes(&self.name))
            .field("kind", &self.kind)
            .field("arguments", &bytes(&self.arguments))
            .field("status", &self.status)
            .field("extra", &self.extra.len())
            .finish()
    }
}

impl Debug for CallEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEntry")
            .field("index", &self.index)
            .field("kind", &self.kind)
            .field("announced", &self.announced)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl Debug for Audio {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audio")
            .field("id", &optional_bytes(self.id.as_ref()))
            .field("data", &Bytes(self.data.len()))
            .field("transcript", &bytes(&self.transcript))
            .field("expires_at", &self.expires_at)
            .field("undecoded", &self.undecoded.len())
            .finish()
    }
}

impl Debug for Message {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message")
            .field("role", &optional_bytes(self.role.as_ref()))
            .field("content", &bytes(&self.content))
            .field("reasoning", &bytes(&self.reasoning))
            .field("reasoning_source", &self.reasoning_source)
            .field("refusal", &bytes(&self.refusal))
            .field("tool_calls", &self.tool_calls)
            .field("audio", &self.audio)
            .field("extra", &self.extra.len())
            .finish()
    }
}

impl Debug for ChoiceOutcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChoiceOutcome")
            .field("choice", &self.choice)
            .field("end", &self.end)
            .field("message", &self.message)
            .field("finish_reason", &self.finish_reason)
            .field("finish_reasons", &self.finish_reasons.len())
            .field("extra", &self.extra.len())
            .field("role_inferred", &self.role_inferred)
            .field("warnings", &self.warnings)
            .finish()
    }
}

impl Debug for Transcript {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("index", &self.index())
            .field("kind", &self.kind())
            .field("event_count", &self.event_count())
            .field("calls", &self.calls().len())
            .field("finish_reason", &self.finish_reason())
            .field("end", &self.end())
            .field("warnings", &self.warnings().len())
            .finish_non_exhaustive()
    }
}

impl Debug for Metadata {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("id", &optional_bytes(self.id.as_ref()))
            .field("model", &optional_bytes(self.model.as_ref()))
            .field("first_model", &optional_bytes(self.first_model.as_ref()))
            .field("created", &self.created)
            .field("kind", &self.kind)
            .field("extra", &self.extra.len())
            .finish()
    }
}

/// Shows the numbers, and only the number of fields of the raw object.
impl Debug for Usage {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usage")
            .field("prompt_tokens", &self.prompt_tokens)
            .field("completion_tokens", &self.completion_tokens)
            .field("total_tokens", &self.total_tokens)
            .field("per_choice", &self.per_choice)
            .field("source", &self.source)
            .field("estimated", &self.estimated)
            .field("raw", &self.raw.as_object().map(serde_json::Map::len))
            .finish()
    }
}

impl Debug for Reported {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reported").finish_non_exhaustive()
    }
}

impl<T: AsRef<str>> Debug for Event<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { role } => f
                .debug_struct("Start")
                .field("role", &optional_bytes(role.as_ref()))
                .finish(),
            Self::Role(text) => f.debug_tuple("Role").field(&bytes(text)).finish(),
            Self::Content(text) => f.debug_tuple("Content").field(&bytes(text)).finish(),
            Self::ContentDone => f.write_str("ContentDone"),
            Self::ReasoningDone => f.write_str("ReasoningDone"),
            Self::RefusalDone => f.write_str("RefusalDone"),
            Self::Reasoning(text) => f.debug_tuple("Reasoning").field(&bytes(text)).finish(),
            Self::Refusal(text) => f.debug_tuple("Refusal").field(&bytes(text)).finish(),
            Self::ToolCallStart {
                call_index,
                wire_index,
                id,
                name,
                kind,
            } => f
                .debug_struct("ToolCallStart")
                .field("call_index", call_index)
                .field("wire_index", wire_index)
                .field("id", &optional_bytes(id.as_ref()))
                .field("name", &bytes(name))
                .field("kind", kind)
                .finish(),
            Self::ToolCallArguments { call_index, text } => f
                .debug_struct("ToolCallArguments")
                .field("call_index", call_index)
                .field("text", &bytes(text))
                .finish(),
            Self::ToolCallDone { call_index, status } => f
                .debug_struct("ToolCallDone")
                .field("call_index", call_index)
                .field("status", status)
                .finish(),
            Self::Audio(raw) => f.debug_tuple("Audio").field(&bytes(raw)).finish(),
            Self::Logprobs(raw) => f.debug_tuple("Logprobs").field(&bytes(raw)).finish(),
            Self::ExtraFields(raw) => f.debug_tuple("ExtraFields").field(&bytes(raw)).finish(),
            Self::Finish(raw) => f.debug_tuple("Finish").field(&bytes(raw)).finish(),
            Self::Warning(warning) => f.debug_tuple("Warning").field(warning).finish(),
            Self::End(end) => f.debug_tuple("End").field(end).finish(),
            Self::Usage(usage) => f.debug_tuple("Usage").field(usage).finish(),
            Self::Error(error) => f.debug_tuple("Error").field(error).finish(),
        }
    }
}

impl<T: AsRef<str>> Debug for Sequenced<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequenced")
            .field("choice", &self.choice)
            .field("seq", &self.seq)
            .field("position", &self.position)
            .field("event", &self.event)
            .finish()
    }
}

impl Debug for Repaired<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repaired")
            .field("text", &bytes(&self.text))
            .field("applied", &self.applied)
            .finish()
    }
}

/// Shows only counters, because templates contain bytes of earlier chunks.
impl Debug for Decoder {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder")
            .field("events", &self.events())
            .field("template_hits", &self.template_hits())
            .finish_non_exhaustive()
    }
}
