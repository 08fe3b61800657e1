//! The flat vocabulary: one chunk's news of one choice, as every dialect speaks it.
//!
//! The fields are those of `StreamingChatCompletionsUpdate` (the decision record's Option 2), and what has come since:
//! reasoning, refusal, tool calls, log probabilities. An `Update` borrows from the read it was decoded from.

use std::{borrow::Cow, fmt};

use crate::{BodyFormat, Warning};

/// Which of the answers: the wire's `index`, not a position.
///
/// # Examples
///
/// ```
/// assert_eq!(unbraid_core::ChoiceIndex(7).to_string(), "7");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChoiceIndex(pub u32);

impl ChoiceIndex {
    /// Prompt and choice of a text completion with several prompts, where the wire counts `prompt * n + choice` (E15).
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::ChoiceIndex(5).split_by_prompt(2), (2, 1));
    /// ```
    #[must_use]
    pub fn split_by_prompt(self, n: u32) -> (u32, u32) {
        let n = n.max(1);
        (self.0 / n, self.0 % n)
    }
}

impl From<u32> for ChoiceIndex {
    fn from(index: u32) -> Self {
        Self(index)
    }
}

impl fmt::Display for ChoiceIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A piece of text that may begin or end inside a surrogate pair (C14).
///
/// Servers that cut UTF-16 send one half of an emoji at the end of a delta and the other at the start of the next. The
/// updates of `unbraid::Updates` have no halves: they are joined there.
///
/// # Examples
///
/// ```
/// use unbraid_core::Fragment;
///
/// let piece = Fragment::from("Hi");
/// assert_eq!((piece.low, piece.high), (None, None));
/// assert!(Fragment::default().is_empty());
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Fragment<'a> {
    /// The text between the halves.
    pub text: Cow<'a, str>,
    /// A low surrogate that stands before the text.
    pub low: Option<u16>,
    /// A high surrogate that stands after the text.
    pub high: Option<u16>,
}

impl<'a> Fragment<'a> {
    /// Whether it brings nothing at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.low.is_none() && self.high.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.text.len() + 4 * usize::from(self.low.is_some() || self.high.is_some())
    }

    fn into_owned(self) -> Fragment<'static> {
        Fragment {
            text: Cow::Owned(self.text.into_owned()),
            low: self.low,
            high: self.high,
        }
    }
}

impl<'a, T: Into<Cow<'a, str>>> From<T> for Fragment<'a> {
    fn from(text: T) -> Self {
        Fragment {
            text: text.into(),
            low: None,
            high: None,
        }
    }
}

/// One entry of a delta's `tool_calls`.
///
/// # Examples
///
/// ```
/// use unbraid_core::ToolCallUpdate;
///
/// let header = ToolCallUpdate { wire_index: Some(0), id: Some("c1".into()), name: Some("add".into()), ..ToolCallUpdate::default() };
/// let fragment = ToolCallUpdate { wire_index: Some(0), arguments: Some("{}".into()), ..ToolCallUpdate::default() };
/// # assert_ne!(header, fragment);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ToolCallUpdate<'a> {
    /// The wire's index of the call; a key, not a position (T4, T5).
    pub wire_index: Option<i64>,
    /// Position among several entries of one chunk that came without index (T3).
    pub position: Option<u32>,
    /// The call's id, if it came with this entry.
    pub id: Option<Cow<'a, str>>,
    /// The wire's `type`, if it came with this entry.
    pub kind: Option<Cow<'a, str>>,
    /// The tool's name, or a piece of it (T16).
    pub name: Option<Fragment<'a>>,
    /// The next piece of the arguments, or of a custom tool's input.
    pub arguments: Option<Fragment<'a>>,
    /// Fields that we do not know, as raw JSON (T40).
    pub extra: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// What a chunk's choices carry their text in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CompletionKind {
    /// Chat completions: `delta`.
    #[default]
    Chat,
    /// Text completions: `text` (M1).
    Text,
}

/// One chunk's news of one choice, or of the stream itself where `choice` is `None`.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Update};
///
/// let update = Update { choice: Some(ChoiceIndex(1)), content: Some("Hi".into()), ..Update::default() };
/// let kept: Update<'static> = update.into_owned();
/// assert_eq!(kept.content.unwrap().text, "Hi");
/// ```
#[derive(Clone, Default, PartialEq)]
pub struct Update<'a> {
    /// Ordinal of the server-sent event, from 0.
    pub event_index: u64,
    /// Whether this is the last update of its event; an event without any news still gives one update.
    pub last_of_event: bool,
    /// The choice, or `None` for news of the stream.
    pub choice: Option<ChoiceIndex>,
    /// Chat or text completion.
    pub kind: CompletionKind,
    /// The chunk's completion id.
    pub id: Option<Cow<'a, str>>,
    /// The chunk's time of creation, in seconds since 1970.
    pub created: Option<u64>,
    /// The chunk's model.
    pub model: Option<Cow<'a, str>>,
    /// The message's role.
    pub role: Option<Cow<'a, str>>,
    /// The next piece of the message's text.
    pub content: Option<Fragment<'a>>,
    /// The next piece of the reasoning.
    pub reasoning: Option<Fragment<'a>>,
    /// The next piece of the refusal.
    pub refusal: Option<Fragment<'a>>,
    /// The legacy function call's name, or a piece of it (T36).
    pub function_name: Option<Fragment<'a>>,
    /// The next piece of the legacy function call's arguments.
    pub function_arguments: Option<Fragment<'a>>,
    /// Entries of `tool_calls`, in their order.
    pub tool_calls: Vec<ToolCallUpdate<'a>>,
    /// Log probabilities of this piece, as raw JSON.
    pub logprobs: Option<Cow<'a, str>>,
    /// The raw finish reason; never empty.
    pub finish_reason: Option<Cow<'a, str>>,
    /// Whether the text is a whole message in place of a delta: it counts only if nothing has come before (E21).
    pub is_full_message: bool,
    /// Reported usage, as raw JSON; of the choice if there is a choice (U7).
    pub usage: Option<Cow<'a, str>>,
    /// An error that the server reported, as raw JSON; of the choice if there is a choice (F12).
    pub error: Option<Cow<'a, str>>,
    /// Other fields of the envelope or of the choice, as raw JSON (E24); those of the delta come first.
    pub metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// How many of `metadata`, from its start, stood inside the delta: they belong into the message (C20). A field
    /// `audio` among them is a piece of audio (M11).
    pub delta_field_count: usize,
    /// What was tolerated while decoding.
    pub warnings: Vec<Warning>,
    /// What the event's JSON appears to be, where it brings no choice.
    pub format: Option<BodyFormat>,
    /// Whether the event was a completion chunk, an error or an end mark, and no foreign JSON.
    pub is_chunk: bool,
    /// Whether this is the stream's end mark, `[DONE]`.
    pub done: bool,
}

impl Update<'_> {
    /// The same update, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Update<'static> {
        let fragment = |f: Option<Fragment<'_>>| f.map(Fragment::into_owned);
        Update {
            event_index: self.event_index,
            last_of_event: self.last_of_event,
            choice: self.choice,
            kind: self.kind,
            id: owned(self.id),
            created: self.created,
            model: owned(self.model),
            role: owned(self.role),
            content: fragment(self.content),
            reasoning: fragment(self.reasoning),
            refusal: fragment(self.refusal),
            function_name: fragment(self.function_name),
            function_arguments: fragment(self.function_arguments),
            tool_calls: self
                .tool_calls
                .into_iter()
                .map(ToolCallUpdate::into_owned)
                .collect(),
            logprobs: owned(self.logprobs),
            finish_reason: owned(self.finish_reason),
            is_full_message: self.is_full_message,
            usage: owned(self.usage),
            error: owned(self.error),
            metadata: own_pairs(self.metadata),
            delta_field_count: self.delta_field_count,
            warnings: self.warnings,
            format: self.format,
            is_chunk: self.is_chunk,
            done: self.done,
        }
    }

    /// The piece of audio that the delta brings, as raw JSON (M11).
    pub(crate) fn audio(&self) -> Option<&str> {
        let mut fields = self.metadata.iter().take(self.delta_field_count);
        let (_, raw) = fields.find(|(key, raw)| is_audio(key, raw))?;
        Some(raw)
    }

    /// Whether it brings text, audio, arguments or log probabilities: what keeps a finished choice from ending.
    #[must_use]
    pub fn has_delta(&self) -> bool {
        self.has_payload() || self.logprobs.is_some()
    }

    /// Whether it brings text, audio or a call: what a whole message would only repeat (E21).
    pub(crate) fn has_payload(&self) -> bool {
        let some = |f: &Option<Fragment<'_>>| f.as_ref().is_some_and(|f| !f.is_empty());
        some(&self.content)
            || some(&self.reasoning)
            || some(&self.refusal)
            || some(&self.function_name)
            || some(&self.function_arguments)
            || self.audio().is_some()
            || self.tool_calls.iter().any(|call| !call.says_nothing())
    }

    /// Whether it brings text, which costs at least a token. The header of a call need not: where a request names the
    /// tool, servers charge the arguments alone.
    pub(crate) fn has_text(&self) -> bool {
        let some = |f: &Option<Fragment<'_>>| f.as_ref().is_some_and(|f| !f.is_empty());
        some(&self.content)
            || some(&self.reasoning)
            || some(&self.refusal)
            || some(&self.function_arguments)
            || self.tool_calls.iter().any(|c| some(&c.arguments))
    }

    /// What keeping it costs, in the unit of the byte limits: the same for every reader of the stream.
    ///
    /// A choice's update that brings nothing counts as an entry, too: a batch holds it until it is applied.
    pub(crate) fn cost(&self) -> u64 {
        match (self.payload_cost(), self.choice) {
            (0, Some(_)) => crate::limits::DELTA_COST,
            (cost, _) => cost,
        }
    }

    fn payload_cost(&self) -> u64 {
        let text = |f: &Option<Fragment<'_>>| {
            f.as_ref().map_or(0, |f| {
                if f.is_empty() {
                    0
                } else {
                    f.len() as u64 + crate::limits::DELTA_COST
                }
            })
        };
        let pairs = |pairs: &[(Cow<'_, str>, Cow<'_, str>)]| {
            pairs
                .iter()
                .map(|(k, v)| (k.len() + v.len()) as u64 + crate::limits::DELTA_COST)
                .sum::<u64>()
        };
        // Other fields are kept twice: as what happened, and as the last value. Of audio there are pieces only.
        let lasting = |(key, raw): &(Cow<'_, str>, Cow<'_, str>)| {
            let twice = !is_audio(key, raw);
            if twice { raw.len() as u64 } else { 0 }
        };
        let lasting = self.metadata.iter().map(lasting).sum::<u64>();
        let calls = self.tool_calls.iter().map(|c| {
            let id = c.id.as_ref().map_or(0, |id| id.len() as u64);
            id + text(&c.name) + text(&c.arguments) + pairs(&c.extra) + crate::limits::DELTA_COST
        });
        text(&self.content)
            + text(&self.reasoning)
            + text(&self.refusal)
            + text(&self.function_name)
            + text(&self.function_arguments)
            + self
                .logprobs
                .as_ref()
                .map_or(0, |l| l.len() as u64 + crate::limits::DELTA_COST)
            + self
                .finish_reason
                .as_ref()
                .map_or(0, |f| f.len() as u64 + crate::limits::DELTA_COST)
            + self.usage.as_ref().map_or(0, |usage| usage.len() as u64)
            + pairs(&self.metadata)
            + lasting
            + calls.sum::<u64>()
    }
}

impl ToolCallUpdate<'_> {
    /// T33: some servers end a call with an entry that holds no id, name or arguments.
    pub(crate) fn says_nothing(&self) -> bool {
        let empty = |f: &Option<Fragment<'_>>| f.as_ref().is_none_or(Fragment::is_empty);
        self.id.as_deref().is_none_or(str::is_empty) && empty(&self.name) && empty(&self.arguments)
    }

    fn into_owned(self) -> ToolCallUpdate<'static> {
        ToolCallUpdate {
            wire_index: self.wire_index,
            position: self.position,
            id: owned(self.id),
            kind: owned(self.kind),
            name: self.name.map(Fragment::into_owned),
            arguments: self.arguments.map(Fragment::into_owned),
            extra: own_pairs(self.extra),
        }
    }
}

/// M11: an object; whatever else has the name is a field like any other.
pub(crate) fn is_audio(key: &str, raw: &str) -> bool {
    key == "audio" && raw.starts_with('{')
}

fn owned(text: Option<Cow<'_, str>>) -> Option<Cow<'static, str>> {
    text.map(|text| Cow::Owned(text.into_owned()))
}

fn own_pairs(
    pairs: Vec<(Cow<'_, str>, Cow<'_, str>)>,
) -> Vec<(Cow<'static, str>, Cow<'static, str>)> {
    pairs
        .into_iter()
        .map(|(k, v)| (Cow::Owned(k.into_owned()), Cow::Owned(v.into_owned())))
        .collect()
}
