//! `Update`: what one chunk says about one choice, in one vocabulary for every dialect.
//!
//! The decoder makes updates, the router and the choices take them. An update borrows from the read that it was decoded
//! from.

mod cost;
mod fragment;
mod tool_call;

use std::borrow::Cow;

pub use fragment::Fragment;
pub use tool_call::ToolCallUpdate;

use crate::{BodyFormat, ChoiceIndex, Dialect, EventIndex, ReasoningSource, Warning};

/// Whether the chunks are those of chat completions or of text completions.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, CompletionKind, Config, Demux};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"text\":\"Hi\"}]}\n\n");
/// assert_eq!(demux.choice(ChoiceIndex(0)).unwrap().kind(), CompletionKind::Text);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CompletionKind {
    /// Chat completions: `delta`.
    #[default]
    Chat,
    /// Text completions: `text`.
    Text,
}

/// What one chunk says about one choice, or about the stream itself if `choice` is `None`.
///
/// Updates come from `unbraid::Updates`. To make one, start from `Update::default()` and set its fields.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, Update};
///
/// let update = Update::default().with_choice(ChoiceIndex(1)).with_content("Hi");
/// let kept: Update<'static> = update.into_owned();
/// assert_eq!(kept.content.unwrap().text, "Hi");
/// ```
#[derive(Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Update<'a> {
    /// Ordinal of the server-sent event, from 0.
    pub event_index: EventIndex,
    /// Whether this is the last update of its event. Every event gives at least one update.
    pub last_of_event: bool,
    /// Whether it begins a chunk after another one of the same event (S28).
    pub(crate) begins_chunk: bool,
    /// The choice, or `None` for the stream itself.
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
    /// Where the reasoning is from. Of a choice's updates, the first with reasoning has it; later ones may omit it.
    pub reasoning_source: Option<ReasoningSource>,
    /// The next piece of the refusal.
    pub refusal: Option<Fragment<'a>>,
    /// The legacy function call's name, or a piece of it (T36).
    pub function_name: Option<Fragment<'a>>,
    /// The next piece of the legacy function call's arguments.
    pub function_arguments: Option<Fragment<'a>>,
    /// Entries of `tool_calls`, in their order.
    pub tool_calls: Vec<ToolCallUpdate<'a>>,
    /// Log probabilities of this delta, as raw JSON.
    pub logprobs: Option<Cow<'a, str>>,
    /// The raw finish reason; never empty.
    pub finish_reason: Option<Cow<'a, str>>,
    /// Whether the text is a full message in place of a delta: it counts only if no delta came before it. After another
    /// message it may repeat that one (E21).
    pub is_full_message: bool,
    /// Reported usage, as raw JSON; of the choice if there is a choice (U7).
    pub usage: Option<Cow<'a, str>>,
    /// An error that the server reported, as raw JSON; of the choice if there is a choice (F12).
    pub error: Option<Cow<'a, str>>,
    /// Other fields of the envelope or of the choice, as raw JSON (E24); those of the delta come first.
    pub metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// How many of `metadata`, from its start, were inside the delta: they belong to the message (C20). A field
    /// `audio` among them is a piece of audio (M11).
    pub delta_field_count: usize,
    /// Deviations that were tolerated while decoding.
    pub warnings: Vec<Warning>,
    /// What the event's JSON appears to be, if it contains no choice.
    pub format: Option<BodyFormat>,
    /// The dialect of the stream, in the first update after it was recognized. `None` for chat and text completions.
    pub dialect: Option<Dialect>,
    /// Whether the event was a completion chunk, an error or an end mark, and not some other JSON.
    pub is_chunk: bool,
    /// Whether this is the stream's end mark, `[DONE]`.
    pub done: bool,
}

impl<'a> Update<'a> {
    with_methods! {
        with_event_index(impl Into<EventIndex>): event_index = |index| index.into();
        with_last_of_event(bool): last_of_event = |last| last;
        with_choice(impl Into<Option<ChoiceIndex>>): choice = |choice| choice.into();
        with_kind(CompletionKind): kind = |kind| kind;
        with_id(impl Into<Cow<'a, str>>): id = |id| Some(id.into());
        with_created(impl Into<Option<u64>>): created = |created| created.into();
        with_model(impl Into<Cow<'a, str>>): model = |model| Some(model.into());
        with_role(impl Into<Cow<'a, str>>): role = |role| Some(role.into());
        with_content(impl Into<Fragment<'a>>): content = |content| Some(content.into());
        with_reasoning(impl Into<Fragment<'a>>): reasoning = |reasoning| Some(reasoning.into());
        with_reasoning_source(ReasoningSource): reasoning_source = |source| Some(source);
        with_refusal(impl Into<Fragment<'a>>): refusal = |refusal| Some(refusal.into());
        with_function_name(impl Into<Fragment<'a>>): function_name = |name| Some(name.into());
        with_function_arguments(impl Into<Fragment<'a>>): function_arguments = |text| Some(text.into());
        with_tool_calls(Vec<ToolCallUpdate<'a>>): tool_calls = |calls| calls;
        with_logprobs(impl Into<Cow<'a, str>>): logprobs = |raw| Some(raw.into());
        with_finish_reason(impl Into<Cow<'a, str>>): finish_reason = |reason| Some(reason.into());
        with_is_full_message(bool): is_full_message = |full| full;
        with_usage(impl Into<Cow<'a, str>>): usage = |raw| Some(raw.into());
        with_error(impl Into<Cow<'a, str>>): error = |raw| Some(raw.into());
        with_metadata(Vec<(Cow<'a, str>, Cow<'a, str>)>): metadata = |fields| fields;
        with_delta_field_count(usize): delta_field_count = |count| count;
        with_warnings(Vec<Warning>): warnings = |warnings| warnings;
        with_format(impl Into<Option<BodyFormat>>): format = |format| format.into();
        with_dialect(impl Into<Option<Dialect>>): dialect = |dialect| dialect.into();
        with_is_chunk(bool): is_chunk = |is_chunk| is_chunk;
        with_done(bool): done = |done| done;
    }

    /// The same update without borrows.
    #[must_use]
    pub fn into_owned(self) -> Update<'static> {
        let fragment = |f: Option<Fragment<'_>>| f.map(Fragment::into_owned);
        Update {
            event_index: self.event_index,
            last_of_event: self.last_of_event,
            begins_chunk: self.begins_chunk,
            choice: self.choice,
            kind: self.kind,
            id: owned(self.id),
            created: self.created,
            model: owned(self.model),
            role: owned(self.role),
            content: fragment(self.content),
            reasoning: fragment(self.reasoning),
            reasoning_source: self.reasoning_source,
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
            dialect: self.dialect,
            is_chunk: self.is_chunk,
            done: self.done,
        }
    }
}

/// M11: audio is an object; any other value of that name is an ordinary field.
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
