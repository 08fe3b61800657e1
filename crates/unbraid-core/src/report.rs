//! Events and errors as JSON, in the format of the command and of the fixture traces.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Value, json};

use crate::{
    ChoiceEnd, Event, Sequenced, StreamError, Warning,
    json_text::{Fields, Json},
};

impl StreamError {
    fn json(&self) -> Json<'_> {
        let head = json!({ "type": self.as_str(), "message": self.to_string() });
        let mut fields = Json::fields(head);
        fields.append(&mut Json::fields(self.details()));
        if let Self::Server(error) = self {
            fields.push(("body".into(), error.body_part()));
        }
        Json::Object(fields)
    }

    /// The fields of each kind of error, except the server's JSON.
    fn details(&self) -> Value {
        match self {
            Self::Empty { events } => json!({ "events": events }),
            Self::NotAStream { bytes, events } => json!({ "bytes": bytes, "events": events }),
            Self::UnsupportedFormat { format, events } => {
                json!({ "format": format.as_str(), "events": events })
            }
            Self::Malformed {
                event_index,
                offset,
                ..
            }
            | Self::Interrupted {
                event_index,
                offset,
            } => json!({ "event": event_index, "offset": offset }),
            Self::Transport(error) => {
                json!({ "bytes": error.bytes, "source": error.causes() })
            }
            Self::Server(error) => json!({ "event": error.event_index() }),
            Self::TimedOut(error) => {
                json!({ "timeout": error.timeout.to_string(), "after_ms": millis(error.after) })
            }
            Self::Limit(error) => json!({ "limit": error.limit.to_string(), "max": error.max }),
            Self::NoRuntime | Self::NoTimeDriver | Self::Cancelled | Self::Lost => Value::Null,
        }
    }
}

/// One object: the error's `type`, its `message`, where it happened, and for a server's error its `body`.
///
/// The numbers of the body keep every digit if `serde_json` writes text.
///
/// # Examples
///
/// ```
/// let error = serde_json::to_value(unbraid_core::StreamError::Empty { events: 2 })?;
/// assert_eq!(error["type"], "empty");
/// assert_eq!(error["events"], 2);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for StreamError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.json().serialize(serializer)
    }
}

impl ChoiceEnd {
    /// The stream error of the same name, if something went wrong.
    ///
    /// `Interrupted` has none: the stream merely ended before the choice did.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ChoiceEnd, StreamError};
    ///
    /// assert_eq!(ChoiceEnd::Cancelled.cause(), Some(StreamError::Cancelled));
    /// assert_eq!(ChoiceEnd::Interrupted.cause(), None);
    /// ```
    #[must_use]
    pub fn cause(&self) -> Option<StreamError> {
        Some(match self {
            Self::Finished(_) | Self::DoneWithoutFinish | Self::Interrupted => return None,
            Self::ServerError(error) => StreamError::Server(error.clone()),
            Self::Transport(error) => StreamError::Transport(error.clone()),
            Self::Cancelled => StreamError::Cancelled,
            Self::TimedOut(error) => StreamError::TimedOut(*error),
            Self::LimitExceeded(error) => StreamError::Limit(*error),
            Self::Lost => StreamError::Lost,
        })
    }
}

/// One object: `code`, `choice` (`null` for the whole stream), `event`, `message`.
///
/// # Examples
///
/// ```
/// let warning = unbraid_core::Warning::new("X13", 4, "a chunk was skipped");
/// assert_eq!(serde_json::to_value(&warning)?["code"], "X13");
/// # Ok::<(), serde_json::Error>(())
/// ```
impl Serialize for Warning {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Warning", 4)?;
        object.serialize_field("code", self.code)?;
        object.serialize_field("choice", &self.choice)?;
        object.serialize_field("event", &self.event_index)?;
        object.serialize_field("message", &self.message)?;
        object.end()
    }
}

/// One object: the event's `type`, then its payload, as the command prints them.
///
/// The numbers of usage, log probabilities, unknown fields and server errors keep every digit if `serde_json` writes text.
/// `serde_json::to_value` reduces them to what a `Value` can represent, and returns an error for a number beyond the range
/// of `f64`.
///
/// # Examples
///
/// ```
/// use unbraid_core::Event;
///
/// let json = serde_json::to_string(&Event::Content("Hi"))?;
/// assert_eq!(json, r#"{"type":"content.delta","delta":"Hi"}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<T: AsRef<str>> Serialize for Event<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Json::fields(json!({ "type": self.as_str() }));
        fields.append(&mut payload(self));
        Json::Object(fields).serialize(serializer)
    }
}

/// One object: `seq`, `choice` (`null` for the stream itself), then the event.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":3,\"delta\":{},\"seed\":1.50}]}\n\n");
/// demux.next_event();
/// let json = serde_json::to_string(&demux.next_event().unwrap())?;
/// assert_eq!(json, r#"{"seq":1,"choice":3,"type":"metadata","metadata":{"seed":1.50}}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
impl<T: AsRef<str>> Serialize for Sequenced<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = Json::fields(
            json!({ "seq": self.seq, "choice": self.choice, "type": self.event.as_str() }),
        );
        fields.append(&mut payload(&self.event));
        Json::Object(fields).serialize(serializer)
    }
}

impl<T: AsRef<str>> fmt::Display for Sequenced<T> {
    /// Formats one line: `event seq c<choice> <type> <payload as JSON>`, the format of the fixture traces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.position.event, self.seq)?;
        match self.choice {
            Some(choice) => write!(f, "c{choice}")?,
            None => f.write_str("-")?,
        }
        write!(f, " {}", self.event.as_str())?;
        let payload = payload(&self.event);
        if payload.is_empty() {
            Ok(())
        } else {
            write!(f, " {}", Json::Object(payload).into_text())
        }
    }
}

/// The fields of an event's payload.
fn payload<T: AsRef<str>>(event: &Event<T>) -> Fields<'_> {
    let raw = |name: &'static str, raw| vec![(Cow::Borrowed(name), raw)];
    match event {
        Event::Audio(text) => raw("audio", Json::Raw(text.as_ref().into())),
        Event::Logprobs(text) => raw("logprobs", Json::Raw(text.as_ref().into())),
        Event::ExtraFields(text) => raw("metadata", Json::Raw(text.as_ref().into())),
        Event::Usage(usage) => raw("usage", usage.raw_part()),
        Event::End(end) => {
            let mut fields = Json::fields(json!({ "end": end.as_str() }));
            let error = end
                .cause()
                .map_or_else(|| "null".to_owned(), |error| error.json().into_text());
            fields.push(("error".into(), Json::Raw(error.into())));
            fields
        }
        Event::Error(error) => raw("error", error.json()),
        _ => Json::fields(value_payload(event)),
    }
}

/// The payload of an event without raw JSON, as an object; `null` if it has none.
fn value_payload<T: AsRef<str>>(event: &Event<T>) -> Value {
    match event {
        Event::Start { role } => json!({ "role": role.as_ref().map(AsRef::as_ref) }),
        Event::Role(role) => json!({ "role": role.as_ref() }),
        Event::Content(text) | Event::Reasoning(text) | Event::Refusal(text) => {
            json!({ "delta": text.as_ref() })
        }
        Event::ReasoningDone | Event::ContentDone | Event::RefusalDone => Value::Null,
        Event::ToolCallStart {
            call_index,
            wire_index,
            id,
            name,
            kind,
        } => {
            json!({ "call": call_index, "index": wire_index, "id": id.as_ref().map(AsRef::as_ref), "name": name.as_ref(), "kind": kind.as_str() })
        }
        Event::ToolCallArguments { call_index, text } => {
            json!({ "call": call_index, "delta": text.as_ref() })
        }
        Event::ToolCallDone { call_index, status } => {
            json!({ "call": call_index, "status": status.as_str() })
        }
        Event::Audio(_)
        | Event::Logprobs(_)
        | Event::ExtraFields(_)
        | Event::Usage(_)
        | Event::End(_)
        | Event::Error(_) => Value::Null,
        Event::Finish(reason) => json!({ "finish_reason": reason.as_ref() }),
        Event::Warning(warning) => {
            json!({ "code": warning.code, "event": warning.event_index, "message": warning.message })
        }
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
