//! `ChunkEncoder`: the events of one choice as a stream again.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Value, json};

use crate::{
    CallIndex, CallKind, ChoiceIndex, CompletionKind, Event, Metadata, StreamError, Transcript,
    Usage,
    json_text::{Fields, Json},
    transcript::raw_pairs,
};

/// Turns the events of one choice into `chat.completion.chunk` events, as a proxy sends them on.
///
/// Each method returns complete server-sent events (`data: {..}` and a blank line) or nothing, so that their results can be
/// written one after the other, and mixed with those of the encoders of other choices. The stream is well-formed, however
/// the source was written: every call has its ordinal as `index`, and reasoning has one name. Equal events give equal
/// bytes.
///
/// A stream is complete with [`DONE`](Self::DONE). Leave it out if the source was interrupted: then the reader sees that.
///
/// # Examples
///
/// ```
/// use unbraid_core::{ChoiceIndex, ChunkEncoder, Config, Demux};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":4,\"text\":\"Hi\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
///
/// let mut encoder = ChunkEncoder::new(ChoiceIndex(0)).with_id("chatcmpl-1").with_model("m").with_created(1);
/// let mut body = String::new();
/// while let Some(event) = demux.next_event() {
///     body += &encoder.encode(&event.event);
/// }
/// body += ChunkEncoder::DONE;
/// assert!(body.contains(
///     r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#
/// ));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChunkEncoder {
    /// The index that the choice has in the new stream.
    pub choice: ChoiceIndex,
    /// The completion's id, which a reader expects in each chunk.
    pub id: Option<Cow<'static, str>>,
    /// The time of creation, in seconds since 1970.
    pub created: Option<u64>,
    /// The model.
    pub model: Option<Cow<'static, str>>,
    /// Chat completions (the default), or text completions, whose chunks have a `text` in place of a `delta`.
    pub kind: CompletionKind,
    /// The name of the field of reasoning, by default `reasoning_content`; some readers know it as `reasoning`.
    pub reasoning_key: Cow<'static, str>,
    /// The calls so far that are no functions: their kinds decide where their arguments go. A call whose name is late starts after
    /// one with a higher ordinal.
    kinds: BTreeMap<CallIndex, CallKind>,
    /// Events of the transcript that were encoded.
    seq: usize,
}

impl ChunkEncoder {
    /// The end mark of a stream, after the chunks of all its choices.
    pub const DONE: &str = "data: [DONE]\n\n";

    with_methods! {
        with_id(impl Into<Cow<'static, str>>): id = |id| Some(id.into());
        with_created(impl Into<Option<u64>>): created = |created| created.into();
        with_model(impl Into<Cow<'static, str>>): model = |model| Some(model.into());
        with_kind(CompletionKind): kind = |kind| kind;
        with_reasoning_key(impl Into<Cow<'static, str>>): reasoning_key = |key| key.into();
    }

    /// An encoder for the choice that has this index in the new stream.
    #[must_use]
    pub fn new(choice: ChoiceIndex) -> Self {
        Self {
            choice,
            id: None,
            created: None,
            model: None,
            kind: CompletionKind::Chat,
            reasoning_key: "reasoning_content".into(),
            kinds: BTreeMap::new(),
            seq: 0,
        }
    }

    /// Sets the id, the model, the time of creation and the kind to those of a stream.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, ChunkEncoder, Config, Demux};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n");
    /// let encoder = ChunkEncoder::new(ChoiceIndex(0)).with_metadata(demux.metadata());
    /// assert_eq!(encoder.id.as_deref(), Some("c1"));
    /// ```
    #[must_use]
    pub fn with_metadata(mut self, metadata: &Metadata) -> Self {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        self.id = metadata.id.as_deref().map(owned);
        self.model = metadata.model.as_deref().map(owned);
        self.created = metadata.created;
        self.kind = metadata.kind.unwrap_or_default();
        self
    }

    /// Encodes the next event of the choice; empty for an event that has no chunk, such as a warning.
    ///
    /// An end with an error becomes a chunk with an `error`. The fields of [`Event::ExtraFields`] go into the delta, since
    /// the event does not say whether they were beside it; [`encode_transcript`](Self::encode_transcript) knows that.
    pub fn encode<T: AsRef<str>>(&mut self, event: &Event<T>) -> String {
        let text = |text: &T| Json::Value(text.as_ref().into());
        match event {
            Event::Start { role: Some(role) } | Event::Role(role) => self.delta("role", text(role)),
            Event::Start { role: None } => self.beside_delta(Vec::new()),
            Event::Content(delta) if self.kind == CompletionKind::Text => {
                self.chunk(vec![("text", text(delta))], None)
            }
            Event::Content(delta) => self.delta("content", text(delta)),
            Event::Reasoning(delta) => self.delta(&self.reasoning_key, text(delta)),
            Event::Refusal(delta) => self.delta("refusal", text(delta)),
            Event::ToolCallStart {
                call_index,
                id,
                name,
                kind,
                ..
            } => {
                let id = id.as_ref().map(AsRef::as_ref);
                self.call_start(*call_index, id, name.as_ref(), *kind)
            }
            Event::ToolCallArguments { call_index, text } => {
                self.call_arguments(*call_index, text.as_ref())
            }
            Event::Audio(raw) => self.delta("audio", raw_json(raw.as_ref())),
            Event::Logprobs(raw) => self.beside_delta(vec![("logprobs", raw_json(raw.as_ref()))]),
            Event::ExtraFields(raw) => self.extra(raw.as_ref(), usize::MAX),
            Event::Finish(reason) => self.chunk(self.empty_delta(), Some(reason.as_ref())),
            Event::End(end) => match end.cause() {
                Some(error) => self.beside_delta(vec![("error", error_json(&error))]),
                None => String::new(),
            },
            Event::Usage(usage) => self.encode_usage(usage),
            Event::Error(error) => sse(&json!({ "error": error_value(error) })),
            Event::ContentDone
            | Event::ReasoningDone
            | Event::RefusalDone
            | Event::ToolCallDone { .. }
            | Event::Warning(_) => String::new(),
        }
    }

    /// Encodes the events that were added to a transcript since the last call.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, ChunkEncoder, Config, Demux};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// let mut encoder = ChunkEncoder::new(ChoiceIndex(0));
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// let chunks = encoder.encode_transcript(demux.choice(ChoiceIndex(0)).unwrap());
    /// assert!(chunks.ends_with("{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n"));
    /// assert_eq!(encoder.encode_transcript(demux.choice(ChoiceIndex(0)).unwrap()), "");
    /// ```
    pub fn encode_transcript(&mut self, transcript: &Transcript) -> String {
        let mut chunks = String::new();
        while let Some(event) = transcript.event(self.seq) {
            chunks += &match event.event {
                Event::ExtraFields(raw) => self.extra(raw, transcript.delta_field_count(self.seq)),
                // The event has the id that was known then.
                Event::ToolCallStart {
                    call_index,
                    name,
                    kind,
                    ..
                } => {
                    let id = transcript.call_id(call_index).map(|id| &**id);
                    self.call_start(call_index, id, name, kind)
                }
                event => self.encode(&event),
            };
            self.seq += 1;
        }
        chunks
    }

    /// Encodes the usage of a stream as the chunk without choices that ends it.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceIndex, ChunkEncoder, Usage};
    ///
    /// let mut usage = Usage::default();
    /// usage.completion_tokens = Some(2);
    /// let chunk = ChunkEncoder::new(ChoiceIndex(0)).encode_usage(&usage);
    /// assert!(chunk.ends_with("\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n"));
    /// ```
    #[must_use]
    pub fn encode_usage(&self, usage: &Usage) -> String {
        let mut chunk = self.envelope();
        chunk.push(("choices".into(), Json::List(Vec::new())));
        let usage = serde_json::to_string(usage).unwrap_or_else(|_| "null".to_owned());
        chunk.push(("usage".into(), raw_json(&usage)));
        sse_text(&Json::Object(chunk).into_text())
    }

    fn call_start(
        &mut self,
        call_index: CallIndex,
        id: Option<&str>,
        name: &str,
        kind: CallKind,
    ) -> String {
        if kind != CallKind::Function {
            self.kinds.insert(call_index, kind);
        }
        if name.is_empty() && id.is_none() {
            // A header without a name says nothing, and after the finish reason it would end the choice.
            return String::new();
        }
        let mut entry = Json::fields(json!({ "index": call_index }));
        entry.extend(id.map(|id| ("id".into(), Json::Value(id.into()))));
        match kind {
            CallKind::LegacyFunction => {
                let call = json!({ "name": name, "arguments": "" });
                return self.delta("function_call", Json::Value(call));
            }
            CallKind::Custom => entry.extend(Json::fields(
                json!({ "type": "custom", "custom": { "name": name, "input": "" } }),
            )),
            CallKind::Function => entry.extend(Json::fields(
                json!({ "type": "function", "function": { "name": name, "arguments": "" } }),
            )),
        }
        self.delta("tool_calls", Json::List(vec![Json::Object(entry)]))
    }

    fn call_arguments(&self, call_index: CallIndex, text: &str) -> String {
        let entry = match self.kinds.get(&call_index).copied().unwrap_or_default() {
            CallKind::LegacyFunction => {
                let call = json!({ "arguments": text });
                return self.delta("function_call", Json::Value(call));
            }
            CallKind::Custom => json!({ "index": call_index, "custom": { "input": text } }),
            CallKind::Function => {
                json!({ "index": call_index, "function": { "arguments": text } })
            }
        };
        self.delta("tool_calls", Json::List(vec![Json::Value(entry)]))
    }

    /// Unknown fields, of which the first ones were in the delta.
    fn extra(&self, raw: &str, in_delta: usize) -> String {
        let mut fields = raw_pairs(raw).into_iter();
        let field =
            |(key, raw): (Cow<'_, str>, &str)| (Cow::Owned(key.into_owned()), raw_json(raw));
        let delta: Fields<'_> = fields.by_ref().take(in_delta).map(field).collect();
        let beside: Fields<'_> = fields.map(field).collect();
        let mut choice = if self.kind == CompletionKind::Text {
            let mut choice = self.empty_delta();
            choice.extend(delta);
            choice
        } else {
            vec![("delta".into(), Json::Object(delta))]
        };
        choice.extend(beside);
        self.chunk_of(choice, None)
    }

    fn delta(&self, name: &str, field: Json<'_>) -> String {
        let field = (Cow::Borrowed(name), field);
        let choice = match self.kind {
            CompletionKind::Chat => vec![("delta".into(), Json::Object(vec![field]))],
            // Text completions know no role.
            CompletionKind::Text if name == "role" => self.empty_delta(),
            CompletionKind::Text => {
                let mut choice = self.empty_delta();
                choice.push(field);
                choice
            }
        };
        self.chunk_of(choice, None)
    }

    fn beside_delta(&self, fields: Vec<(&'static str, Json<'_>)>) -> String {
        let mut choice = self.empty_delta();
        choice.extend(fields);
        self.chunk(choice, None)
    }

    fn empty_delta<'a, K: From<&'static str>>(&self) -> Vec<(K, Json<'a>)> {
        vec![match self.kind {
            CompletionKind::Text => ("text".into(), Json::Value("".into())),
            CompletionKind::Chat => ("delta".into(), Json::Object(Vec::new())),
        }]
    }

    fn chunk(&self, choice: Vec<(&'static str, Json<'_>)>, finish_reason: Option<&str>) -> String {
        let fields = choice.into_iter().map(|(key, field)| (key.into(), field));
        self.chunk_of(fields.collect(), finish_reason)
    }

    fn chunk_of(&self, choice: Fields<'_>, finish_reason: Option<&str>) -> String {
        let mut fields = Json::fields(json!({ "index": self.choice }));
        fields.extend(choice);
        fields.push(("finish_reason".into(), Json::Value(finish_reason.into())));
        let mut chunk = self.envelope();
        chunk.push(("choices".into(), Json::List(vec![Json::Object(fields)])));
        sse_text(&Json::Object(chunk).into_text())
    }

    fn envelope(&self) -> Fields<'_> {
        let object = match self.kind {
            CompletionKind::Chat => "chat.completion.chunk",
            CompletionKind::Text => "text_completion",
        };
        let mut fields = Json::fields(json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
        }));
        fields.retain(|(_, field)| !matches!(field, Json::Value(Value::Null)));
        fields
    }
}

/// The error as a server reports one: a server's own error is sent on unchanged.
fn error_value(error: &StreamError) -> Value {
    match error {
        StreamError::Server(error) => error.body().clone(),
        other => json!({ "type": other.as_str(), "message": other.to_string() }),
    }
}

fn error_json(error: &StreamError) -> Json<'static> {
    Json::Value(error_value(error))
}

fn raw_json(raw: &str) -> Json<'static> {
    Json::Raw(Cow::Owned(raw.to_owned()))
}

fn sse(value: &Value) -> String {
    sse_text(&value.to_string())
}

/// JSON text in one line as an event.
fn sse_text(json: &str) -> String {
    format!("data: {json}\n\n")
}
