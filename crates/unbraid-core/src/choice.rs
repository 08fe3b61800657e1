//! The state machine of one choice: updates in, events into its transcript.
//!
//! ```text
//!   Open --finish reason--> ChoiceOutcome --the stream goes past it--> Ended
//!     '---------------- done, EOF, error, cancel, limit ----------^
//! ```
//!
//! When a finished choice ends is the router's knowledge (it sees the other choices' events); what an end leaves in
//! the transcript is decided here.

#[cfg(test)]
mod tests;
pub(crate) mod think;
mod tool_calls;

use std::{borrow::Cow, sync::Arc};

use crate::{
    Audio, ChoiceEnd, Config, FinishReason, Fragment, LimitExceeded, Limits, Update, Warning,
    event::Position,
    text_delta::{DeltaKind, TextDelta},
    tool_call::cuts_calls,
    transcript::{Kind, Level, Transcript},
    update::is_audio,
};
use think::ThinkSplitter;

/// One choice's state beside its transcript. It is the transcript's only writer.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, ChoiceEnd, Config, Position, CompletionKind, Transcript, Update, internal::ChoiceMachine};
///
/// let mut log = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
/// let mut machine = ChoiceMachine::new(&Config::default());
/// let update = Update::default().with_content("Hi").with_finish_reason("stop");
/// machine.apply(&update, Position::default(), &mut log);
/// machine.finish(ChoiceEnd::Interrupted, Position::default(), &mut log);
/// assert!(matches!(log.end(), Some(ChoiceEnd::Finished(_))), "a finish reason is the better end");
/// ```
#[derive(Debug, Default)]
pub struct ChoiceMachine {
    /// A high surrogate that waits for its other half, for content, reasoning and refusal.
    high: [Option<u16>; 3],
    /// Whether any text or call has come: a whole message counts only before (E21).
    begun: bool,
    /// Deltas that named a role, and whether one did not: together with a second finish they tell a collision (E13).
    roles: u32,
    role_less: bool,
    ended: bool,
    /// Separates reasoning from content, if the options ask for it.
    think: Option<ThinkSplitter>,
    limits: Limits,
    tools: Vec<Arc<str>>,
}

const TEXTS: [Kind; 3] = [Kind::Reasoning, Kind::Content, Kind::Refusal];

/// What completes each text, in the same order.
const DONES: [(Kind, Kind); 3] = [
    (Kind::Reasoning, Kind::ReasoningDone),
    (Kind::Content, Kind::ContentDone),
    (Kind::Refusal, Kind::RefusalDone),
];

impl ChoiceMachine {
    /// A choice of which nothing has come yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            limits: config.limits.clone(),
            tools: config.tools.clone(),
            think: ThinkSplitter::new(config.think_tags),
            ..Self::default()
        }
    }

    /// Whether nothing more is taken.
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Applies one update; an end that it causes (a limit) is already in the transcript.
    pub fn apply(&mut self, update: &Update<'_>, position: Position, transcript: &mut Transcript) {
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
        let repeats = update.is_full_message && self.begun;
        if !repeats {
            self.begun |= update.has_payload();
            if let Err(limit) = self.deltas(update, position, transcript) {
                return self.finish(ChoiceEnd::LimitExceeded(limit), position, transcript);
            }
        }
        self.metadata(update, repeats, position, transcript);
        self.apply_finish(update, position, transcript);
    }

    /// Applies one piece of text: the same as applying its update, but quicker where nothing else has to be looked at.
    #[inline]
    pub fn apply_text(
        &mut self,
        piece: &TextDelta<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let Some((kind, number)) = self.record_of(piece.text_kind, piece.role, transcript) else {
            return self.apply(&piece.to_update(), position, transcript);
        };
        self.begun = true;
        self.roles = self.roles.saturating_add(u32::from(piece.role.is_some()));
        self.role_less |= piece.role.is_none();
        transcript.push(kind, position, number, piece.text);
    }

    /// Whether a piece that names this role would go on with its text and do nothing else; a piece of which that is so
    /// changes nothing of it for those behind it.
    ///
    /// # Examples
    ///
    /// ```
    /// # use unbraid_core::{ChoiceIndex, Config, Position, CompletionKind, Transcript, Update};
    /// use unbraid_core::internal::{ChoiceMachine, DeltaKind};
    ///
    /// let mut log = Transcript::new(ChoiceIndex(0), CompletionKind::Chat);
    /// let mut machine = ChoiceMachine::new(&Config::default());
    /// assert!(!machine.is_plain(DeltaKind::Content, None, &log), "the first piece is the choice's start, too");
    /// let update = Update::default().with_content("Hi");
    /// machine.apply(&update, Position::default(), &mut log);
    /// assert!(machine.is_plain(DeltaKind::Content, None, &log));
    /// ```
    #[must_use]
    #[inline(never)] // asked once a batch; where pieces are applied the same stands inline
    pub fn is_plain(&self, lane: DeltaKind, role: Option<&str>, transcript: &Transcript) -> bool {
        self.record_of(lane, role, transcript).is_some()
    }

    /// Which record a piece makes, if that is all that it does.
    #[inline(always)]
    fn record_of(
        &self,
        lane: DeltaKind,
        role: Option<&str>,
        transcript: &Transcript,
    ) -> Option<(Kind, u32)> {
        let [reasoning, content, refusal] = self.high;
        let (kind, high) = match lane {
            DeltaKind::Content => (Kind::Content, content),
            DeltaKind::Reasoning => (Kind::Reasoning, reasoning),
            DeltaKind::Refusal => (Kind::Refusal, refusal),
            DeltaKind::Arguments(_) => (Kind::CallArguments, None),
        };
        let plain = !self.ended
            && high.is_none()
            && transcript.begun()
            && transcript.finish_reason().is_none();
        let known_role =
            role.is_none_or(|role| transcript.role().is_some_and(|known| **known == *role));
        let splits = lane == DeltaKind::Content && self.think.is_some();
        if !plain || !known_role || splits || tool_calls::any_waits(transcript) {
            return None;
        }
        match lane {
            DeltaKind::Arguments(index) => Some((kind, tool_calls::told(transcript, index)?)),
            DeltaKind::Content | DeltaKind::Reasoning | DeltaKind::Refusal => Some((kind, 0)),
        }
    }

    /// What comes behind the end: kept for the message, told to nobody (F6).
    pub fn apply_late(
        &mut self,
        update: &Update<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let repeats = update.is_full_message && self.begun;
        if !repeats {
            let _over: Result<(), LimitExceeded> = self.deltas(update, position, transcript); // the choice has ended: a further call is dropped
            tool_calls::mark_late(transcript);
            self.flush_think(position, transcript); // nothing delivers held-back text after the end
        }
        self.metadata(update, repeats, position, transcript);
        if let Some(raw) = update.finish_reason.as_deref() {
            transcript.set_finish(raw);
        }
    }

    /// Ends the choice; a finish reason that has come is the better end, unless the fault is the choice's own.
    pub fn finish(&mut self, end: ChoiceEnd, position: Position, transcript: &mut Transcript) {
        let end = match (end, transcript.finish_reason()) {
            (end @ ChoiceEnd::LimitExceeded(limit), _) if limit.limit.is_of_choice() => end,
            (_, Some(reason)) => ChoiceEnd::Finished(reason.clone()),
            (end, None) => end,
        };
        self.close(end, position, transcript);
    }

    /// Ends the choice by an error of its own, which a finish reason does not soften (F12, X4).
    pub fn finish_with_error(
        &mut self,
        end: ChoiceEnd,
        position: Position,
        transcript: &mut Transcript,
    ) {
        self.close(end, position, transcript);
    }

    /// The end is known before the calls are judged: whether a call is whole depends on it.
    fn close(&mut self, end: ChoiceEnd, position: Position, transcript: &mut Transcript) {
        if self.ended {
            return;
        }
        self.ended = true;
        if !transcript.begun() {
            transcript.push(Kind::Start, position, 0, "");
        }
        self.flush(position, transcript);
        for (text, done) in DONES {
            if transcript.has(text) {
                transcript.push(done, position, 0, "");
            }
        }
        tool_calls::finish_all(transcript, position, cuts_calls(&end), self.limits.warnings);
        if transcript.finish_reason() == Some(&FinishReason::ToolCalls)
            && transcript.calls.is_empty()
        {
            self.warn(
                "F9",
                "the reason is tool_calls, but no call came",
                position,
                transcript,
            );
        }
        transcript.set_end(end, position);
    }

    fn role(&mut self, update: &Update<'_>, position: Position, transcript: &mut Transcript) {
        let role = update.role.as_deref().unwrap_or("");
        self.roles = self.roles.saturating_add(u32::from(!role.is_empty()));
        self.role_less |= role.is_empty() && update.has_payload();
        if transcript.role().is_none() && !role.is_empty() {
            transcript.set_role(role);
            let kind = if transcript.begun() {
                Kind::Role
            } else {
                Kind::Start
            };
            return transcript.push(kind, position, 0, role);
        }
        if !transcript.begun() {
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
        let texts = [&update.reasoning, &update.content, &update.refusal];
        for ((fragment, kind), high) in texts.into_iter().zip(TEXTS).zip(&mut self.high) {
            let Some(fragment) = fragment else { continue };
            let (text, lone) = join_halves(high, fragment);
            match self.think.as_mut().filter(|_| kind == Kind::Content) {
                Some(think) => think.split(&text, &mut |kind, text| {
                    push_text(transcript, kind, position, 0, text)
                }),
                None => push_text(transcript, kind, position, 0, &text),
            }
            if lone {
                lone_half(position, transcript, self.limits.warnings);
            }
        }
        if self.think.as_mut().is_some_and(ThinkSplitter::take_orphan) {
            self.warn(
                "C18",
                "`</think>` came without `<think>`, and stays text",
                position,
                transcript,
            );
        }
        if let Some(raw) = update.audio() {
            transcript.push(Kind::Audio, position, 0, raw);
            if !Audio::default().absorb(raw) {
                self.warn("M11", "a piece of audio is no base64", position, transcript);
            }
        }
        if let Some(raw) = &update.logprobs {
            transcript.push(Kind::Logprobs, position, 0, raw);
        }
        tool_calls::apply(update, position, transcript, &self.limits, &self.tools)
    }

    fn apply_finish(
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
        if self.roles > 1 && self.role_less {
            self.warn(
                "E13",
                "two answers seem to share this index",
                position,
                transcript,
            );
        }
        if transcript
            .finish_reason()
            .is_some_and(|first| first.as_str() != raw)
        {
            self.warn(
                "F5",
                "a second, different finish reason",
                position,
                transcript,
            );
        }
    }

    /// Tells the fields that are news in one object: the delta's, then the choice's.
    fn metadata(
        &self,
        update: &Update<'_>,
        repeats: bool,
        position: Position,
        transcript: &mut Transcript,
    ) {
        let mut news = Vec::new();
        let mut of_delta = 0;
        for (at, (key, raw)) in update.metadata.iter().enumerate() {
            let in_delta = at < update.delta_field_count;
            let level = if in_delta {
                Level::Message
            } else {
                Level::Choice
            };
            if (in_delta && is_audio(key, raw)) || !transcript.set_extra(level, key, raw, repeats) {
                continue;
            }
            if news.iter().any(|(known, _)| *known == key) {
                transcript.push_fields(&news, of_delta, position); // an object holds a name once
                (news, of_delta) = (Vec::new(), 0);
            }
            of_delta += u32::from(in_delta);
            news.push((key, raw));
        }
        transcript.push_fields(&news, of_delta, position);
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
            self.limits.warnings,
        );
    }

    /// A half that waits for ever is a replacement character.
    fn flush(&mut self, position: Position, transcript: &mut Transcript) {
        for (kind, high) in TEXTS.into_iter().zip(&mut self.high) {
            if high.take().is_some() {
                match self.think.as_mut().filter(|_| kind == Kind::Content) {
                    Some(think) => think.split("\u{FFFD}", &mut |kind, text| {
                        transcript.push(kind, position, 0, text)
                    }),
                    None => transcript.push(kind, position, 0, "\u{FFFD}"),
                }
                lone_half(position, transcript, self.limits.warnings);
            }
        }
        self.flush_think(position, transcript);
        if self
            .think
            .as_ref()
            .is_some_and(ThinkSplitter::is_unconfirmed)
        {
            self.warn(
                "C18",
                "no `</think>` came, so all text is reasoning",
                position,
                transcript,
            );
        }
        tool_calls::flush_all(transcript, position, self.limits.warnings);
    }
}

/// C10: white space is text; only an empty piece is none.
fn push_text(transcript: &mut Transcript, kind: Kind, position: Position, number: u32, text: &str) {
    if !text.is_empty() {
        transcript.push(kind, position, number, text);
    }
}

/// C14: a half whose partner never came has become U+FFFD.
fn lone_half(position: Position, transcript: &mut Transcript, max: usize) {
    let warning = Warning::new("C14", position.event, "half a surrogate pair was replaced");
    transcript.warn(warning, position, max);
}

/// Joins a piece to the half that waits before it, and keeps back the half that it ends with (C14); true if a half
/// found no partner.
fn join_halves<'f>(waiting: &mut Option<u16>, fragment: &'f Fragment<'_>) -> (Cow<'f, str>, bool) {
    if waiting.is_none() && fragment.low.is_none() {
        *waiting = fragment.high;
        return (Cow::Borrowed(&fragment.text), false);
    }
    if fragment.is_empty() {
        return (Cow::Borrowed(""), false);
    }
    let units = waiting.take().into_iter().chain(fragment.low);
    let (mut text, mut lone) = (String::new(), false);
    for unit in char::decode_utf16(units) {
        lone |= unit.is_err();
        text.push(unit.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    text.push_str(&fragment.text);
    *waiting = fragment.high;
    (Cow::Owned(text), lone)
}
