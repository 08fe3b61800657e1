//! The state machine of one choice: it applies updates and writes events to the transcript.
//!
//! ```text
//!   Open --finish reason--> Finished --an event without a delta for it--> Ended
//!     '------------------ done, EOF, error, cancel, limit ---------------^
//! ```
//!
//! The router decides when a finished choice ends, because that depends on the events of other choices. The machine decides
//! what an end writes to the transcript.

mod end;
mod extra_fields;
mod further_message;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod think;
mod tool_calls;

use std::sync::Arc;

use crate::{
    Audio, ChoiceEnd, Config, LimitExceeded, Update, Warning,
    audio::join_transcript,
    event::Position,
    text_delta::{Delta, DeltaKind, Extras, TextDelta},
    transcript::{Kind, Transcript},
};
pub(crate) use end::{DIFFERENT_REASON, SHARED_INDEX};
use further_message::SoFar;
use text::{join_halves, push_text, warn_lone_half};
use think::{ThinkSplitter, push_split_text};

/// The state of one choice beside its transcript. The machine is the transcript's only writer.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, ChoiceEnd, Config, Position, CompletionKind, Transcript, Update, internal::{ChoiceMachine, Delta}};
///
/// let mut log = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
/// let mut machine = ChoiceMachine::new(Config::default());
/// let update = Update::default().with_content("Hi").with_finish_reason("stop");
/// machine.apply(Delta::Update(&update), Position::default(), &mut log);
/// machine.finish(ChoiceEnd::Interrupted, Position::default(), &mut log);
/// assert!(matches!(log.end(), Some(ChoiceEnd::Finished(_))), "a finish reason is the better end");
/// ```
#[derive(Debug)]
pub struct ChoiceMachine {
    /// A high surrogate that waits for its other half, for each of `TEXTS`.
    high: [Option<u16>; 3],
    /// The same for the transcript of the audio.
    audio_high: Option<u16>,
    /// Whether a delta has brought text or a call: then a full message only repeats it (E21).
    has_delta: bool,
    /// Whether a full message was read.
    has_message: bool,
    /// What the full messages have brought, once another one has to be compared with it.
    so_far: Option<Box<SoFar>>,
    /// Deltas that named a role, and whether one did not. Together with a second finish reason they show that two answers
    /// share the index (E13).
    roles: u32,
    role_less: bool,
    ended: bool,
    /// Separates reasoning from content, if the configuration asks for it.
    think: Option<ThinkSplitter>,
    config: Arc<Config>,
}

const TEXTS: [Kind; 3] = [Kind::Reasoning, Kind::Content, Kind::Refusal];

impl ChoiceMachine {
    /// The machine of a choice before its first update.
    #[must_use]
    pub fn new(config: impl Into<Arc<Config>>) -> Self {
        let config = config.into();
        Self {
            high: [None; 3],
            audio_high: None,
            has_delta: false,
            has_message: false,
            so_far: None,
            roles: 0,
            role_less: false,
            ended: false,
            think: ThinkSplitter::new(config.think_tags),
            config,
        }
    }

    /// The halves of characters at the end of the reasoning, the content, the refusal and the transcript of the audio.
    pub(crate) fn waiting_halves(&self) -> [Option<u16>; 4] {
        let [reasoning, content, refusal] = self.high;
        [reasoning, content, refusal, self.audio_high]
    }

    /// Whether the choice has ended.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Applies a delta. If it exceeds a limit of the choice, the choice ends.
    #[inline]
    pub fn apply(&mut self, delta: Delta<'_>, position: Position, transcript: &mut Transcript) {
        match delta {
            Delta::Text(text) => self.apply_text(text, position, transcript),
            Delta::Update(update) => self.apply_update(update, position, transcript),
        }
    }

    fn apply_update(
        &mut self,
        update: &Update<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        if self.ended {
            return;
        }
        self.role(update, position, transcript);
        if transcript.finish_reason().is_some() && update.has_delta() {
            self.warn(
                "F6",
                "text or calls after the finish reason",
                position,
                transcript,
            );
        }
        let repeats = match self.read_payload(update, position, transcript) {
            Ok(repeats) => repeats,
            Err(limit) => {
                return self.finish(ChoiceEnd::LimitExceeded(limit), position, transcript);
            }
        };
        if let Some(source) = &update.reasoning_source {
            transcript.set_reasoning_source(source);
        }
        self.extra_fields(&Extras::of_update(update), repeats, position, transcript);
        self.apply_finish(update, position, transcript);
    }

    /// Applies a text delta: equivalent to applying its update, but without work if it only continues a text.
    #[inline]
    fn apply_text(
        &mut self,
        delta: &TextDelta<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let Some((kind, number)) = self.record_of(delta.text_kind, delta.role, transcript) else {
            return self.apply_update(&delta.to_update(), position, transcript);
        };
        self.has_delta = true;
        self.roles = self.roles.saturating_add(u32::from(delta.role.is_some()));
        self.role_less |= delta.role.is_none();
        if delta.extras.is_empty() {
            return transcript.push(kind, position, number, delta.text);
        }
        self.apply_extras(kind, number, delta, position, transcript);
    }

    /// Whether a text delta with this role would only continue its text. Such a delta leaves the answer for the next one
    /// unchanged.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Config, Position, CompletionKind, Transcript, Update};
    /// use unbraid_core::internal::{ChoiceMachine, Delta, DeltaKind};
    ///
    /// let mut log = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
    /// let mut machine = ChoiceMachine::new(Config::default());
    /// assert!(!machine.only_continues(DeltaKind::Content, None, &log), "the first delta also starts the choice");
    /// let update = Update::default().with_content("Hi");
    /// machine.apply(Delta::Update(&update), Position::default(), &mut log);
    /// assert!(machine.only_continues(DeltaKind::Content, None, &log));
    /// ```
    #[must_use]
    #[inline(never)] // called once per batch; `apply_text` has its own inlined copy
    pub fn only_continues(
        &self,
        text_kind: DeltaKind,
        role: Option<&str>,
        transcript: &Transcript,
    ) -> bool {
        self.record_of(text_kind, role, transcript).is_some()
    }

    /// The record that a text delta becomes, if it does nothing else.
    #[inline(always)]
    fn record_of(
        &self,
        text_kind: DeltaKind,
        role: Option<&str>,
        transcript: &Transcript,
    ) -> Option<(Kind, u32)> {
        let [reasoning, content, refusal] = self.high;
        let (kind, high) = match text_kind {
            DeltaKind::Content => (Kind::Content, content),
            DeltaKind::Reasoning => (Kind::Reasoning, reasoning),
            DeltaKind::Refusal => (Kind::Refusal, refusal),
            DeltaKind::Arguments(_) => (Kind::CallArguments, None),
        };
        let is_open = !self.ended
            && high.is_none()
            && transcript.has_started()
            && transcript.finish_reason().is_none();
        let known_role =
            role.is_none_or(|role| transcript.role().is_some_and(|known| **known == *role));
        let splits = text_kind == DeltaKind::Content && self.think.is_some();
        if !is_open || !known_role || splits || tool_calls::any_unannounced(transcript) {
            return None;
        }
        match text_kind {
            DeltaKind::Arguments(index) => {
                Some((kind, tool_calls::announced_call(transcript, index)?))
            }
            DeltaKind::Content | DeltaKind::Reasoning | DeltaKind::Refusal => Some((kind, 0)),
        }
    }

    fn role(&mut self, update: &Update<'_>, position: Position, transcript: &mut Transcript) {
        let role = update.role.as_deref().unwrap_or("");
        if !transcript.has_started() {
            transcript.reserve();
        }
        self.roles = self.roles.saturating_add(u32::from(!role.is_empty()));
        self.role_less |= role.is_empty() && update.has_payload();
        if transcript.role().is_none() && !role.is_empty() {
            transcript.set_role(role);
            let kind = if transcript.has_started() {
                Kind::Role
            } else {
                Kind::Start
            };
            return transcript.push(kind, position, 0, role);
        }
        if !transcript.has_started() {
            transcript.push(Kind::Start, position, 0, "");
        }
        if !role.is_empty() && transcript.role().is_some_and(|known| **known != *role) {
            self.warn(
                "C7",
                "the role changed; the first one counts",
                position,
                transcript,
            );
        }
    }

    fn deltas(
        &mut self,
        update: &Update<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) -> Result<(), LimitExceeded> {
        if tool_calls::any_unannounced(transcript) {
            tool_calls::announce_left(update, position, transcript, &self.config.tools);
        }
        let texts = [&update.reasoning, &update.content, &update.refusal];
        for ((fragment, kind), high) in texts.into_iter().zip(TEXTS).zip(&mut self.high) {
            let Some(fragment) = fragment else { continue };
            let (text, is_lone) = join_halves(high, fragment);
            match self.think.as_mut().filter(|_| kind == Kind::Content) {
                Some(think) => think.split(&text, &mut |kind, text| {
                    push_split_text(transcript, kind, position, text)
                }),
                None => push_text(transcript, kind, position, 0, &text),
            }
            if is_lone {
                warn_lone_half(position, transcript, self.config.limits.warnings);
            }
        }
        if self.think.as_mut().is_some_and(ThinkSplitter::take_orphan) {
            self.warn(
                "C18",
                "`</think>` arrived without `<think>`, and stays text",
                position,
                transcript,
            );
        }
        if let Some(raw) = update.audio() {
            let (raw, is_lone) = join_transcript(raw, &mut self.audio_high);
            transcript.push(Kind::Audio, position, 0, &raw);
            if is_lone {
                warn_lone_half(position, transcript, self.config.limits.warnings);
            }
            if !Audio::default().absorb(&raw) {
                self.warn(
                    "M11",
                    "a piece of audio is not base64",
                    position,
                    transcript,
                );
            }
        }
        if let Some(raw) = &update.logprobs {
            transcript.push(Kind::Logprobs, position, 0, raw);
        }
        let Config { limits, tools, .. } = &*self.config;
        tool_calls::apply(update, position, transcript, limits, tools)
    }

    fn warn(
        &self,
        code: &'static str,
        message: &'static str,
        position: Position,
        transcript: &mut Transcript,
    ) {
        transcript.warn(
            Warning::new(code, position.event, message),
            position,
            self.config.limits.warnings,
        );
    }
}
