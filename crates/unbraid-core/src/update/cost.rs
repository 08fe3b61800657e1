//! What an update contains, and what it costs to keep.

use std::borrow::Cow;

use super::{Fragment, ToolCallUpdate, Update, is_audio};
use crate::{
    limits::DELTA_COST,
    text_delta::{DeltaKind, Extras},
};

impl Extras<'_> {
    /// What they add to the cost of their delta.
    #[inline]
    pub(crate) fn cost(&self) -> u64 {
        if self.is_empty() {
            return 0;
        }
        fields_cost(self.fields) + raw_cost(self.logprobs)
    }
}

impl<'a> Update<'a> {
    /// The only text of the update; `None` if there are several.
    // Asked several times for a chunk that is learned. Inlined, it would be loaded into the cache as often.
    #[inline(never)]
    pub(crate) fn only_text(&self) -> Option<(DeltaKind, &Fragment<'a>)> {
        let (index, arguments) = match self.tool_calls.as_slice() {
            [] => (0, None),
            [call] if call.extra.is_empty() && call.position.is_none() => {
                (call.wire_index.unwrap_or(0), Some(call.arguments.as_ref()?))
            }
            _ => return None,
        };
        match (&self.content, &self.reasoning, &self.refusal, arguments) {
            (Some(text), None, None, None) => Some((DeltaKind::Content, text)),
            (None, Some(text), None, None) => Some((DeltaKind::Reasoning, text)),
            (None, None, Some(text), None) => Some((DeltaKind::Refusal, text)),
            (None, None, None, Some(text)) => Some((DeltaKind::Arguments(index), text)),
            _ => None,
        }
    }

    /// Whether the calls bring nothing but arguments.
    pub(crate) fn calls_are_announced(&self) -> bool {
        self.tool_calls.iter().all(ToolCallUpdate::is_announced)
    }
}

impl Update<'_> {
    /// The audio object of the delta, as raw JSON (M11).
    pub(crate) fn audio(&self) -> Option<&str> {
        let mut fields = self.metadata.iter().take(self.delta_field_count);
        let (_, raw) = fields.find(|(key, raw)| is_audio(key, raw))?;
        Some(raw)
    }

    /// Whether the update contains text, audio, arguments or log probabilities: these keep a finished choice open.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::Update;
    ///
    /// assert!(Update::default().with_content("Hi").has_delta());
    /// assert!(!Update::default().with_role("assistant").has_delta());
    /// ```
    #[must_use]
    pub fn has_delta(&self) -> bool {
        self.has_payload() || self.logprobs.is_some()
    }

    /// Whether the update has a role, and not only an empty one.
    pub(crate) fn names_role(&self) -> bool {
        self.role.as_deref().is_some_and(|role| !role.is_empty())
    }

    /// Whether the update contains text, audio or a call: a full message would only repeat these (E21).
    pub(crate) fn has_payload(&self) -> bool {
        has_text(&self.content)
            || has_text(&self.reasoning)
            || has_text(&self.refusal)
            || has_text(&self.function_name)
            || has_text(&self.function_arguments)
            || self.audio().is_some()
            || self.tool_calls.iter().any(|call| !call.is_empty())
    }

    /// Whether the update contains text, which costs at least one token.
    ///
    /// The header of a call need not: if the request names the tool, servers charge for the arguments only.
    pub(crate) fn has_text(&self) -> bool {
        has_text(&self.content)
            || has_text(&self.reasoning)
            || has_text(&self.refusal)
            || has_text(&self.function_arguments)
            || self.tool_calls.iter().any(|call| has_text(&call.arguments))
    }

    /// What it costs to keep the update, in the unit of the byte limits. `Demux` and the actors count the same.
    ///
    /// An empty update of a choice counts as one entry, because a batch keeps it until it is applied.
    pub(crate) fn cost(&self) -> u64 {
        match (self.payload_cost(), self.choice) {
            (0, Some(_)) => DELTA_COST,
            (cost, _) => cost,
        }
    }

    fn payload_cost(&self) -> u64 {
        let texts = text_cost(&self.content)
            + text_cost(&self.reasoning)
            + text_cost(&self.refusal)
            + text_cost(&self.function_name)
            + text_cost(&self.function_arguments);
        let usage = self.usage.as_ref().map_or(0, |usage| usage.len() as u64);
        let calls = self.tool_calls.iter().map(call_cost).sum::<u64>();
        texts
            + raw_cost(self.logprobs.as_deref())
            + raw_cost(self.finish_reason.as_deref())
            + usage
            + fields_cost(&self.metadata)
            + calls
    }
}

fn has_text(fragment: &Option<Fragment<'_>>) -> bool {
    fragment.as_ref().is_some_and(|text| !text.is_empty())
}

fn text_cost(fragment: &Option<Fragment<'_>>) -> u64 {
    fragment.as_ref().map_or(0, |text| {
        if text.is_empty() {
            0
        } else {
            text.len() as u64 + DELTA_COST
        }
    })
}

fn raw_cost(raw: Option<&str>) -> u64 {
    raw.map_or(0, |raw| raw.len() as u64 + DELTA_COST)
}

/// An unknown field is kept twice: in the events, and as the last value. Audio is in the events only.
fn fields_cost(fields: &[(Cow<'_, str>, Cow<'_, str>)]) -> u64 {
    let last_value = |(key, raw): &(Cow<'_, str>, Cow<'_, str>)| {
        let kept_twice = !is_audio(key, raw);
        if kept_twice { raw.len() as u64 } else { 0 }
    };
    pairs_cost(fields) + fields.iter().map(last_value).sum::<u64>()
}

fn call_cost(call: &ToolCallUpdate<'_>) -> u64 {
    let id = call.id.as_ref().map_or(0, |id| id.len() as u64);
    id + text_cost(&call.name) + text_cost(&call.arguments) + pairs_cost(&call.extra) + DELTA_COST
}

fn pairs_cost(pairs: &[(Cow<'_, str>, Cow<'_, str>)]) -> u64 {
    pairs
        .iter()
        .map(|(key, raw)| (key.len() + raw.len()) as u64 + DELTA_COST)
        .sum()
}
