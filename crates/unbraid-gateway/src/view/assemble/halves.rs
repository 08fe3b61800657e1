//! Halves of characters at the end of a snapshot's texts.
//!
//! A provider may send a character beyond 16 bits as two escapes in two events. What follows the first of them completes
//! it, so a snapshot between the two has the first one, in an escape.

use std::borrow::Cow;

use unbraid_core::{
    CallIndex, CallKind, Demux, Message, Transcript,
    internal::{waiting_half_of_call, waiting_halves},
};

/// The halves that wait at the end of one choice's texts.
#[derive(Debug)]
pub(super) struct Halves {
    reasoning: Option<u16>,
    content: Option<u16>,
    refusal: Option<u16>,
    audio: Option<u16>,
    calls: Vec<(CallIndex, u16)>,
}

impl Halves {
    pub(super) fn of(demux: &Demux, transcript: &Transcript, message: &Message) -> Self {
        let [reasoning, content, refusal, audio] = waiting_halves(demux, transcript.index());
        let calls = message.tool_calls.iter().map(|call| call.call_index);
        let half = |call| Some((call, waiting_half_of_call(transcript, call)?));
        Self {
            reasoning,
            content,
            refusal,
            audio,
            calls: calls.filter_map(half).collect(),
        }
    }

    /// A field of a message, or of the entry of a text completion, with its half.
    pub(super) fn complete<'r>(&self, name: &str, raw: &'r str) -> Cow<'r, str> {
        if name == "audio" {
            return with_half_of_transcript(raw, self.audio);
        }
        let half = match name {
            "content" | "text" => self.content,
            "reasoning" => self.reasoning,
            "refusal" => self.refusal,
            _ => None,
        };
        with_half(raw, half)
    }

    /// The fields beside the text of a text completion that have nothing but a half.
    pub(super) fn alone(&self, message: &Message) -> impl Iterator<Item = (&'static str, String)> {
        let reasoning = self.reasoning.filter(|_| message.reasoning.is_empty());
        let refusal = self.refusal.filter(|_| message.refusal.is_empty());
        let fields = [("reasoning", reasoning), ("refusal", refusal)];
        let field = |(name, half)| Some((name, with_half("null", Some(half?)).into_owned()));
        fields.into_iter().filter_map(field)
    }

    /// A field of what is called, with the half of its arguments.
    pub(super) fn complete_call<'r>(
        &self,
        call: CallIndex,
        name: &str,
        raw: &'r str,
    ) -> Cow<'r, str> {
        let is_text = matches!(name, "arguments" | "input");
        let known = self.calls.iter().find(|(known, _)| *known == call);
        with_half(raw, known.map(|(_, half)| *half).filter(|_| is_text))
    }
}

/// The legacy call of a message.
pub(super) fn legacy_call(message: &Message) -> Option<CallIndex> {
    let mut calls = message.tool_calls.iter();
    let legacy = calls.find(|call| call.kind == CallKind::LegacyFunction);
    legacy.map(|call| call.call_index)
}

/// The audio of a message, whose transcript is its last field.
fn with_half_of_transcript(raw: &str, half: Option<u16>) -> Cow<'_, str> {
    match (raw.strip_suffix("\"}"), half) {
        (Some(text), Some(half)) => Cow::Owned(format!("{text}\\u{half:04x}\"}}")),
        _ => Cow::Borrowed(raw),
    }
}

/// A JSON string, or null in its place, with half a character at its end.
fn with_half(raw: &str, half: Option<u16>) -> Cow<'_, str> {
    let Some(half) = half else {
        return Cow::Borrowed(raw);
    };
    let text = raw.strip_suffix('"').unwrap_or("\"");
    Cow::Owned(format!("{text}\\u{half:04x}\""))
}
