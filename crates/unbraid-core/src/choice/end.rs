//! How a choice ends: its finish reason, its end, and what is written when nothing more can arrive.

use super::{ChoiceMachine, TEXTS, text::warn_lone_half, think::ThinkSplitter, tool_calls};
use crate::{
    ChoiceEnd, FinishReason, Update,
    audio::LONE_HALF,
    event::Position,
    text_delta::Extras,
    transcript::{Kind, Transcript},
};

/// The event that completes each text, in the order of `TEXTS`.
const DONES: [(Kind, Kind); 3] = [
    (Kind::Reasoning, Kind::ReasoningDone),
    (Kind::Content, Kind::ContentDone),
    (Kind::Refusal, Kind::RefusalDone),
];

/// The code and the message of a second finish reason, before or after the end.
pub(crate) const DIFFERENT_REASON: (&str, &str) = ("F5", "a second, different finish reason");
/// The code and the message of a second answer under the index of the first one.
pub(crate) const SHARED_INDEX: (&str, &str) = ("E13", "two answers seem to share this index");

impl ChoiceMachine {
    /// Applies an update that arrived after the end: it changes the message, but emits no visible event (F6).
    pub fn apply_late(
        &mut self,
        update: &Update<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let calls = transcript.calls().len();
        let mut is_known = update.is_full_message && self.has_delta;
        // The choice has ended, so a call beyond the limit is only dropped.
        let repeats = self.read_payload(update, position, transcript);
        is_known &= transcript.calls().len() == calls;
        if !is_known {
            transcript.set_late_halves(self.waiting_halves().map(|high| high.is_some()));
            transcript.mark_calls_late();
            self.flush_think(position, transcript); // after the end nothing else delivers held-back text
        }
        let repeats = repeats.unwrap_or_default();
        if let Some(source) = &update.reasoning_source {
            transcript.set_reasoning_source(source);
        }
        self.extra_fields(&Extras::of_update(update), repeats, position, transcript);
        if let Some(raw) = update.finish_reason.as_deref() {
            transcript.set_finish(raw);
        }
    }

    /// Ends the choice. A finish reason that has arrived takes precedence, unless the choice exceeded a limit of its own.
    pub fn finish(&mut self, end: ChoiceEnd, position: Position, transcript: &mut Transcript) {
        let end = match (end, transcript.finish_reason()) {
            (end @ ChoiceEnd::LimitExceeded(limit), _) if limit.limit.is_of_choice() => end,
            (_, Some(reason)) => ChoiceEnd::Finished(reason.clone()),
            (end, None) => end,
        };
        self.close(end, position, transcript);
    }

    /// Ends the choice with its finish reason, which has arrived.
    pub fn finish_with_reason(&mut self, position: Position, transcript: &mut Transcript) {
        // Without a reason the router and this machine disagree, which is a bug: even then the choice must end.
        let reason = transcript.finish_reason().cloned();
        let end = reason.map_or(ChoiceEnd::Lost, ChoiceEnd::Finished);
        self.close(end, position, transcript);
    }

    /// Ends the choice with an error of its own, which takes precedence over a finish reason (F12, X4).
    pub fn finish_with_error(
        &mut self,
        end: ChoiceEnd,
        position: Position,
        transcript: &mut Transcript,
    ) {
        self.close(end, position, transcript);
    }

    /// Writes the closing events. The end is known before the calls are checked, because their status depends on it.
    fn close(&mut self, end: ChoiceEnd, position: Position, transcript: &mut Transcript) {
        if self.ended {
            return;
        }
        self.ended = true;
        if !transcript.has_started() {
            transcript.push(Kind::Start, position, 0, "");
        }
        let first_cut = transcript.first_cut_by(&end);
        self.flush(position, transcript);
        for (text, done) in DONES {
            if transcript.has(text) {
                transcript.push(done, position, 0, "");
            }
        }
        tool_calls::finish_all(transcript, position, first_cut, self.config.limits.warnings);
        if transcript.finish_reason() == Some(&FinishReason::ToolCalls)
            && transcript.calls().is_empty()
        {
            self.warn(
                "F9",
                "the reason is tool_calls, but no call arrived",
                position,
                transcript,
            );
        }
        transcript.set_end(end, first_cut, position);
    }

    pub(super) fn apply_finish(
        &mut self,
        update: &Update<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let Some(raw) = update
            .finish_reason
            .as_deref()
            .filter(|raw| !raw.is_empty())
        else {
            return;
        };
        if transcript.set_finish(raw) {
            self.flush_think(position, transcript);
            tool_calls::announce_all(transcript, position);
            return transcript.push(Kind::Finish, position, 0, raw);
        }
        // The finish of a second answer names no role. Some servers name it in each chunk but those of calls, and repeat the
        // finish (F4).
        if self.roles > 1 && self.role_less && !update.names_role() {
            let (code, message) = SHARED_INDEX;
            self.warn(code, message, position, transcript);
        }
        if transcript
            .finish_reason()
            .is_some_and(|first| first.as_str() != raw)
        {
            let (code, message) = DIFFERENT_REASON;
            self.warn(code, message, position, transcript);
        }
    }

    /// Writes what was held back: a lone surrogate half becomes U+FFFD, and text that might have begun a tag is text.
    fn flush(&mut self, position: Position, transcript: &mut Transcript) {
        for (kind, high) in TEXTS.into_iter().zip(&mut self.high) {
            if high.take().is_some() {
                match self.think.as_mut().filter(|_| kind == Kind::Content) {
                    Some(think) => think.split("\u{FFFD}", &mut |kind, text| {
                        transcript.push(kind, position, 0, text)
                    }),
                    None => transcript.push(kind, position, 0, "\u{FFFD}"),
                }
                warn_lone_half(position, transcript, self.config.limits.warnings);
            }
        }
        if self.audio_high.take().is_some() {
            transcript.push(Kind::Audio, position, 0, LONE_HALF);
            warn_lone_half(position, transcript, self.config.limits.warnings);
        }
        self.flush_think(position, transcript);
        if self
            .think
            .as_ref()
            .is_some_and(ThinkSplitter::is_unconfirmed)
        {
            self.warn(
                "C18",
                "no `</think>` arrived, so all text is reasoning",
                position,
                transcript,
            );
        }
        tool_calls::flush_all(transcript, position, self.config.limits.warnings);
    }
}
