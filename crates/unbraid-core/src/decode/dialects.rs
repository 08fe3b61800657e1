//! Hands the values of a stream to its dialect, once one of them has identified it.

use std::borrow::Cow;

use super::{
    DecodePath, Decoder, Emitter, ProviderEvent, Template, event::error_json, templates::TextTarget,
};
use crate::{
    BodyFormat, Dialect, Update, Warning,
    chunk::Chunk,
    dialect::{self, DialectReader, Output, WireEvent},
    frame::{Frame, FrameKind},
    node::{self, Node},
};

/// What is known of the dialect.
#[derive(Default)]
pub(super) enum DialectState {
    /// No value has identified it yet (D03).
    #[default]
    Unknown,
    /// The session of a realtime API has begun, whose events of answers have the names of Responses.
    Realtime,
    /// Chat or text completions, which the decoder reads itself.
    Choices {
        /// Whether a value of another dialect was warned about (D06).
        has_foreign: bool,
    },
    Other {
        reader: Box<dyn DialectReader>,
        /// The dialect, until an update has reported it.
        unreported: Option<Dialect>,
        /// Whether a value of another format was warned about (D06).
        has_foreign: bool,
        /// The first completion id.
        first_id: Option<Box<str>>,
    },
}

impl DialectState {
    pub(super) fn new(dialect: Option<Dialect>) -> Self {
        match dialect {
            None => Self::Unknown,
            Some(dialect) => match dialect::reader(dialect) {
                None => Self::Choices { has_foreign: false },
                Some(reader) => Self::Other {
                    reader,
                    unreported: Some(dialect),
                    has_foreign: false,
                    first_id: None,
                },
            },
        }
    }

    pub(super) fn is_other(&self) -> bool {
        matches!(self, Self::Other { .. })
    }

    /// Whether a value is more than a ping, although its event has that name. Where the dialect is still open, the fields of a
    /// ping decide nothing: it may have the time in `created_at`, which Ollama's values have, too.
    pub(super) fn has_content(&self, node: &Node<'_>) -> bool {
        let event = WireEvent { name: None, node };
        dialect::is_error_in_ping(node)
            || match self {
                Self::Other { .. } => dialect::identify(&event).is_some(),
                Self::Unknown | Self::Realtime | Self::Choices { .. } => {
                    dialect::is_unmistakable(&event)
                }
            }
    }

    /// Takes the text of an event that matched a template; false if the event has to be read.
    pub(super) fn continues(&mut self, target: &TextTarget<'_>, name: Option<&[u8]>) -> bool {
        let (Self::Other { reader, .. }, Some(provided)) = (self, target.provided) else {
            return false;
        };
        provided.name.as_deref() == name
            && reader.continues(provided.place, target.choice, target.text)
    }
}

/// Whether an event says only that the connection is alive: OpenAI sends the second in Responses.
fn is_keep_alive(event: &WireEvent<'_, '_>) -> bool {
    matches!(event.kind().as_deref(), Some("ping" | "keepalive"))
}

impl Decoder {
    /// Whether a value that was read in one pass is a chunk. Until `choices` have shown what the stream is, only they do, and
    /// then the absence of every field that could be one of another dialect.
    pub(super) fn accepts_chunk(&mut self, chunk: &Chunk<'_>, name: Option<&[u8]>) -> bool {
        match self.dialect {
            DialectState::Unknown | DialectState::Realtime if chunk.has_choices => {
                self.dialect = DialectState::new(Some(Dialect::Chat));
                true
            }
            DialectState::Choices { .. } => {
                let has_own_fields_only = name.is_none()
                    && chunk.extra.is_empty()
                    && chunk.object.as_deref() != Some("response");
                chunk.has_choices || has_own_fields_only
            }
            DialectState::Unknown | DialectState::Realtime | DialectState::Other { .. } => false,
        }
    }

    /// Whether a value between the chunks is one of another dialect (D06), of which nothing is kept.
    pub(super) fn skips_foreign(
        &mut self,
        node: &Node<'_>,
        chunk: &Chunk<'_>,
        emitter: &mut Emitter<'_, '_>,
    ) -> bool {
        let event = WireEvent::new(emitter.event_name, node);
        let is_keep_alive = !chunk.has_choices
            && chunk.error.is_none()
            && is_keep_alive(&event)
            && !self.dialect.has_content(node);
        let DialectState::Choices { has_foreign } = &mut self.dialect else {
            return false;
        };
        if is_keep_alive {
            return true;
        }
        let is_foreign = !chunk.has_choices
            && chunk.error.is_none()
            && !dialect::counts_tokens(node)
            && dialect::identify(&event).is_some_and(|dialect| dialect != Dialect::Chat);
        if is_foreign && !std::mem::replace(has_foreign, true) {
            emitter.warn("D6", "a value of another format was skipped");
        }
        is_foreign
    }

    /// Reads a value in the dialect of the stream; false if the stream has `choices`, or may have.
    pub(super) fn read_in_dialect<'a>(
        &mut self,
        node: &Node<'a>,
        emitter: &mut Emitter<'a, '_>,
    ) -> bool {
        let node = node.as_array().and_then(<[_]>::first).unwrap_or(node);
        let event = WireEvent::new(emitter.event_name, node);
        if let DialectState::Unknown | DialectState::Realtime = self.dialect {
            if is_keep_alive(&event) && !self.dialect.has_content(node) {
                emitter.is_chunk = true;
                return true;
            }
            // The first value that identifies a dialect decides for the whole stream. Deciding anew for each value would let
            // one odd value of a chat stream be read as another format.
            if let Some(dialect) = dialect::identify(&event) {
                if let (DialectState::Realtime, Dialect::Responses) = (&self.dialect, dialect) {
                    return true;
                }
                self.dialect = DialectState::new(Some(dialect));
            } else if let Some(format) = dialect::unsupported(&event) {
                if format == BodyFormat::Realtime {
                    self.dialect = DialectState::Realtime;
                }
                emitter.push(Update {
                    format: Some(format),
                    ..Update::default()
                });
                return true;
            }
        }
        let DialectState::Other {
            reader,
            has_foreign,
            ..
        } = &mut self.dialect
        else {
            return false;
        };
        let mut output = Output::default();
        if reader.is_error(&event) {
            self.end_in_dialect(true, emitter);
            // After the dialect has ended, so that what it held back comes before the error.
            output.stream().error = Some(dialect::raw(node));
        } else if is_keep_alive(&WireEvent { name: None, node }) {
            reader.keep_alive(&mut output);
        } else if !reader.read(&event, &mut output)
            && !is_keep_alive(&event)
            && !std::mem::replace(has_foreign, true)
        {
            output.warn("D6", "a value of another format was skipped");
        }
        if output.malformed.is_some() {
            self.end_in_dialect(true, emitter);
        }
        self.learn_event(&event, emitter.event_name, &output);
        self.emit_output(output, emitter);
        true
    }

    /// Makes a template of an event that only continues a text.
    fn learn_event(&mut self, event: &WireEvent<'_, '_>, name: Option<&[u8]>, output: &Output<'_>) {
        let DialectState::Other {
            reader,
            unreported: None,
            first_id,
            ..
        } = &self.dialect
        else {
            return;
        };
        let text = event.node.raw;
        let continuation = (self.path == DecodePath::All)
            .then(|| reader.continuation(event))
            .flatten();
        // In this order: most events of a stream that matches no template are declined before anything is allocated for them.
        let Some(continuation) = continuation.filter(|_| self.templates.should_learn(text)) else {
            return;
        };
        let Some(updates) = output.few_updates() else {
            return;
        };
        let template = Template::of_event(&ProviderEvent {
            text,
            name,
            continuation,
            updates: &updates,
            first_id: first_id.as_deref(),
            depth: self.max_depth,
        });
        if let Some(template) = template {
            self.templates.insert(template);
        }
    }

    /// Reads all values of an array, or one value.
    pub(super) fn read_all_in_dialect<'a>(
        &mut self,
        node: &Node<'a>,
        emitter: &mut Emitter<'a, '_>,
    ) -> bool {
        let Some(items) = node.as_array().filter(|items| items.len() > 1) else {
            return self.read_in_dialect(node, emitter);
        };
        for item in items {
            if emitter.is_full() {
                emitter.warn_skipped();
                break;
            }
            // With `choices` the caller reads the whole array. Before them only values without content can be read here.
            if !self.read_in_dialect(item, emitter) {
                return false;
            }
        }
        true
    }

    /// Reads the JSON of a value in the dialect of the stream. `None` if the stream has `choices`, or may have; false if the
    /// text is not JSON.
    pub(super) fn payload_in_dialect<'a>(
        &mut self,
        text: &'a str,
        emitter: &mut Emitter<'a, '_>,
    ) -> Option<bool> {
        if !self.dialect.is_other() {
            return None;
        }
        let node = node::read(text, self.max_depth);
        Some(node.is_ok_and(|node| self.read_all_in_dialect(&node, emitter)))
    }

    /// An event named `ping`, or data that only keeps the connection open.
    pub(super) fn keep_alive_in_dialect(&mut self, emitter: &mut Emitter<'_, '_>) {
        if let DialectState::Other { reader, .. } = &mut self.dialect {
            let mut output = Output::default();
            reader.keep_alive(&mut output);
            self.emit_output(output, emitter);
        }
    }

    /// Decodes a frame of binary messages (B05, B06); false if it is none, or an ordinary one.
    pub(super) fn message_frame<'a>(
        &mut self,
        frame: &Frame<'_>,
        text: &'a str,
        emitter: &mut Emitter<'a, '_>,
    ) -> bool {
        let is_message = matches!(
            frame.kind,
            FrameKind::Message | FrameKind::Exception | FrameKind::TruncatedMessage
        );
        if is_message && matches!(self.dialect, DialectState::Unknown) {
            self.dialect = DialectState::new(Some(Dialect::Bedrock));
        }
        emitter.is_chunk |= is_message;
        match frame.kind {
            FrameKind::TruncatedMessage => {
                emitter.is_cut = true;
                emitter.count_lost(frame.data.len());
            }
            FrameKind::Exception => {
                self.end_in_dialect(true, emitter);
                let name = String::from_utf8_lossy(frame.event.unwrap_or_default());
                emitter.push(Update {
                    error: Some(exception(&name, text, self.max_depth)),
                    is_chunk: true,
                    ..Update::default()
                });
            }
            FrameKind::Message
            | FrameKind::BareJson
            | FrameKind::Event
            | FrameKind::Line
            | FrameKind::BareDone
            | FrameKind::Json
            | FrameKind::Garbage
            | FrameKind::Truncated => return false,
        }
        true
    }

    /// Whether lines without a field name are an error (G16). Anything else in them is ignored.
    pub(super) fn is_bare_error(&self, data: &[u8]) -> bool {
        let node = std::str::from_utf8(data).ok();
        let node = node.and_then(|text| node::read(text.trim(), self.max_depth).ok());
        node.is_some_and(|node| {
            let value = node.as_array().and_then(<[_]>::first).unwrap_or(&node);
            dialect::reported(value).is_some()
        })
    }

    /// Passes the updates of a dialect on, within the limits of an event.
    pub(super) fn emit_output<'a>(&mut self, output: Output<'a>, emitter: &mut Emitter<'a, '_>) {
        emitter.is_chunk = true;
        for (code, message) in &output.warnings {
            emitter
                .warnings
                .push(Warning::new(code, emitter.event_index, *message));
        }
        if let Some(what) = output.malformed {
            emitter.refusal = Some(what);
            emitter.is_malformed = true;
        }
        for mut update in output.into_updates() {
            super::updates::drop_long_name(&mut update.id);
            super::updates::drop_long_name(&mut update.model);
            if let DialectState::Other {
                unreported,
                first_id,
                ..
            } = &mut self.dialect
            {
                // On the first update only, as the other fields of the envelope are.
                update.dialect = unreported.take();
                if first_id.is_none() {
                    *first_id = update.id.as_deref().map(Box::from);
                }
            }
            let is_admitted = match update.choice {
                Some(_) => {
                    emitter.admit_choice_update(&mut update) || emitter.admit_end(&mut update)
                }
                None => {
                    let envelope = &mut self.envelope;
                    update
                        .metadata
                        .retain(|(key, raw)| envelope.record(key, raw));
                    emitter.admit_stream_update()
                }
            };
            if is_admitted {
                emitter.push(update);
            }
        }
    }
}

/// The JSON of an exception: its payload, with the type from the message's headers (B06).
fn exception<'a>(name: &str, text: &'a str, depth: usize) -> Cow<'a, str> {
    let name = serde_json::Value::from(name);
    let json = error_json(text.trim(), depth);
    let fields = json
        .strip_prefix('{')
        .and_then(|json| json.strip_suffix('}'));
    Cow::Owned(match fields {
        Some(fields) if fields.trim().is_empty() => format!("{{\"type\":{name}}}"),
        Some(fields) => format!("{{\"type\":{name},{fields}}}"),
        None => format!("{{\"type\":{name},\"message\":{json}}}"),
    })
}
