//! A message in place of a delta that comes again: the whole text so far, or the next piece of it (E21).

use super::{ChoiceMachine, text::join_halves, tool_calls};
use crate::{
    CallKind, Fragment, LimitExceeded, Update,
    event::Position,
    transcript::{CallEntry, Transcript},
};

/// What a choice has received so far, if all of it came as messages.
///
/// It is kept beside the transcript, which a comparison would have to search from its start for each message, and which does
/// not contain the tags that were separated.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    /// In the order of `TEXTS`.
    texts: [String; 3],
    /// The arguments of each call; those of a call that was opened since are missing.
    arguments: Vec<String>,
    /// How many records the transcript had when they were read.
    records: usize,
}

impl SoFar {
    /// Adds what a message has brought. `high` has the half that each text waited with.
    fn push(&mut self, update: &Update<'_>, high: [Option<u16>; 3]) {
        let texts = [&update.reasoning, &update.content, &update.refusal];
        for ((known, fragment), mut high) in self.texts.iter_mut().zip(texts).zip(high) {
            if let Some(fragment) = fragment {
                known.push_str(&join_halves(&mut high, fragment).0);
            }
        }
    }
}

impl ChoiceMachine {
    /// Reads the text and the calls of an update; true if it repeats what has arrived, so that its lists repeat, too.
    pub(super) fn read_payload(
        &mut self,
        update: &Update<'_>,
        position: Position,
        transcript: &mut Transcript,
    ) -> Result<bool, LimitExceeded> {
        if !update.is_full_message {
            self.has_delta |= update.has_payload();
            return self.deltas(update, position, transcript).map(|()| false);
        }
        let is_first = !std::mem::replace(&mut self.has_message, true);
        if self.has_delta {
            if transcript.calls().is_empty() && has_calls(update) {
                let message = "no delta had the calls of a message, which were read";
                self.warn("E21", message, position, transcript);
                let calls = calls_alone(update);
                return self.deltas(&calls, position, transcript).map(|()| true);
            }
            if !is_first {
                let message = "a message in place of a delta came again, and its text was not read";
                self.warn("E21", message, position, transcript);
            }
            return Ok(true);
        }
        if is_first {
            if self.think.is_some() {
                self.so_far.get_or_insert_default().push(update, self.high);
            }
            return self.deltas(update, position, transcript).map(|()| false);
        }
        let message = "a message in place of a delta came again, and what it adds was appended";
        self.warn("E21", message, position, transcript);
        let (new, repeats) = self.further_message(update, transcript);
        self.deltas(&new, position, transcript)?;
        Ok(repeats)
    }

    /// Compares a message with those before it. A text that begins with what has arrived repeats it, and the rest is new. Any
    /// other text is the next piece. Returns what is new, and whether anything was repeated.
    fn further_message<'a>(
        &mut self,
        update: &Update<'a>,
        transcript: &mut Transcript,
    ) -> (Update<'a>, bool) {
        let mut so_far = self
            .so_far
            .take()
            .unwrap_or_else(|| of_transcript(transcript));
        let mut new = update.clone();
        let mut repeats = false;
        let texts = [&mut new.reasoning, &mut new.content, &mut new.refusal];
        for ((known, fragment), high) in so_far.texts.iter().zip(texts).zip(&mut self.high) {
            if let Some(fragment) = fragment
                && strip(known, fragment)
            {
                *high = None; // the message contains the whole character
                repeats = true;
            }
        }
        so_far.push(&new, self.high);
        repeats |= self.strip_arguments(&mut new, &mut so_far, transcript);
        if repeats {
            new.logprobs = None;
        }
        self.so_far = Some(so_far);
        (new, repeats)
    }

    /// The same for the arguments of calls; true if some were repeated.
    fn strip_arguments(
        &self,
        new: &mut Update<'_>,
        so_far: &mut SoFar,
        transcript: &mut Transcript,
    ) -> bool {
        if !has_calls(new) {
            return false;
        }
        let calls = transcript.calls();
        if so_far.arguments.len() < calls.len() {
            so_far.records = transcript.add_arguments(so_far.records, &mut so_far.arguments);
        }
        let arguments = &mut so_far.arguments;
        let mut repeated = Vec::new();
        let mut read = |slot: Option<usize>, fragment: &mut Option<Fragment<'_>>| {
            let slot = slot.unwrap_or(usize::MAX);
            let known = arguments.get_mut(slot).zip(calls.get(slot));
            if let (Some((known, call)), Some(fragment)) = (known, fragment) {
                let repeats = strip(known, fragment);
                repeated.extend(repeats.then_some(slot));
                let mut high = call.high.filter(|_| !repeats);
                known.push_str(&join_halves(&mut high, fragment).0);
            }
        };
        for entry in &mut new.tool_calls {
            let slot = tool_calls::find(calls, entry, &self.config.tools);
            read(slot, &mut entry.arguments);
        }
        if new.function_name.is_some() || new.function_arguments.is_some() {
            let is_legacy = |call: &CallEntry| call.kind == CallKind::LegacyFunction;
            read(
                calls.iter().position(is_legacy),
                &mut new.function_arguments,
            );
        }
        for call in &repeated {
            if let Some(call) = transcript.call_mut(*call) {
                call.high = None; // the message contains the whole character
            }
        }
        !repeated.is_empty()
    }
}

fn has_calls(update: &Update<'_>) -> bool {
    !update.tool_calls.is_empty()
        || update.function_name.is_some()
        || update.function_arguments.is_some()
}

/// The calls of a message whose texts have arrived in deltas.
fn calls_alone<'a>(message: &Update<'a>) -> Update<'a> {
    let mut calls = message.clone();
    (calls.reasoning, calls.content, calls.refusal) = (None, None, None);
    calls.logprobs = None;
    calls
}

fn of_transcript(transcript: &Transcript) -> Box<SoFar> {
    let message = transcript.message();
    Box::new(SoFar {
        texts: [message.reasoning, message.content, message.refusal],
        arguments: Vec::new(),
        records: 0,
    })
}

/// Removes what is known from the start of a text; false if the text is another piece.
fn strip(known: &str, fragment: &mut Fragment<'_>) -> bool {
    let is_repetition = !known.is_empty() && fragment.low.is_none();
    let rest = fragment.text.strip_prefix(known).filter(|_| is_repetition);
    let Some(rest) = rest else { return false };
    fragment.text = rest.to_owned().into();
    true
}
