//! Events and errors as JSON: what the command line prints and the fixture traces hold.

use serde_json::{Map, Value, json};

use crate::{End, Event, Stamped, StreamError, Warning, decode::node::to_value};

impl StreamError {
    /// The error as one JSON object: its `type`, its `message`, where it happened, and for a server's error its `body`.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = unbraid_core::StreamError::Empty { events: 2 };
    /// assert_eq!(error.to_json()["type"], "empty");
    /// assert_eq!(error.to_json()["events"], 2);
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = json!({ "type": self.name(), "message": self.to_string() });
        let details = match self {
            Self::Empty { events } => json!({ "events": events }),
            Self::NotAStream { bytes, events } => json!({ "bytes": bytes, "events": events }),
            Self::Malformed { event, offset, .. } => json!({ "event": event, "offset": offset }),
            Self::Transport(error) => {
                json!({ "bytes": error.bytes, "source": error.causes() })
            }
            Self::Server(error) => json!({ "event": error.event(), "body": error.body() }),
            Self::TimedOut(error) => {
                json!({ "timeout": error.timeout.to_string(), "after_ms": millis(error.after) })
            }
            Self::Limit(error) => json!({ "limit": error.limit.to_string(), "max": error.max }),
            Self::NoRuntime | Self::NoTimeDriver | Self::Cancelled | Self::Lost => Value::Null,
        };
        extend(&mut object, details);
        object
    }
}

impl End {
    /// What went wrong as one JSON object, or `null` where nothing did (a choice that merely did not finish is no error).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::End;
    ///
    /// assert!(End::Interrupted.error_json().is_null());
    /// assert_eq!(End::Cancelled.error_json()["type"], "cancelled");
    /// ```
    #[must_use]
    pub fn error_json(&self) -> Value {
        match self {
            Self::Finished(_) | Self::DoneWithoutFinish | Self::Interrupted => Value::Null,
            Self::ServerError(error) => StreamError::Server(error.clone()).to_json(),
            Self::Transport(error) => StreamError::Transport(error.clone()).to_json(),
            Self::Cancelled => StreamError::Cancelled.to_json(),
            Self::TimedOut(error) => StreamError::TimedOut(*error).to_json(),
            Self::LimitExceeded(error) => StreamError::Limit(*error).to_json(),
            Self::Lost => StreamError::Lost.to_json(),
        }
    }
}

impl Warning {
    /// The warning as one JSON object: `code`, `choice`, `event`, `message`.
    ///
    /// # Examples
    ///
    /// ```
    /// let warning = unbraid_core::Warning::new("X13", 4, "a chunk of 7 bytes that is no JSON was skipped");
    /// assert_eq!(warning.to_json()["code"], "X13");
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "code": self.code, "choice": self.choice.map(|choice| choice.0), "event": self.event, "message": self.message })
    }
}

impl<T: AsRef<str>> Stamped<T> {
    /// The event as one JSON object: `seq`, `choice`, `type`, then its payload.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Options};
    ///
    /// let mut demux = Demux::new(Options::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// demux.next_event();
    /// let event = demux.next_event().unwrap().to_json();
    /// assert_eq!(event.to_string(), r#"{"seq":1,"choice":3,"type":"content.delta","delta":"Hi"}"#);
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut object = json!({ "seq": self.seq, "choice": self.choice.map(|choice| choice.0), "type": self.event.name() });
        extend(&mut object, payload(&self.event));
        object
    }
}

/// An event's payload as an object; `null` where it has none.
pub(crate) fn payload<T: AsRef<str>>(event: &Event<T>) -> Value {
    match event {
        Event::Start { role } => json!({ "role": role.as_ref().map(AsRef::as_ref) }),
        Event::Role(role) => json!({ "role": role.as_ref() }),
        Event::Content(text) | Event::Reasoning(text) | Event::Refusal(text) => {
            json!({ "delta": text.as_ref() })
        }
        Event::ContentDone => Value::Null,
        Event::ToolCallStart {
            call,
            index,
            id,
            name,
            kind,
        } => {
            json!({ "call": call, "index": index, "id": id.as_ref().map(AsRef::as_ref), "name": name.as_ref(), "kind": kind.as_str() })
        }
        Event::ToolCallArguments { call, text } => json!({ "call": call, "delta": text.as_ref() }),
        Event::ToolCallDone { call, status } => json!({ "call": call, "status": status.as_str() }),
        Event::Audio(raw) => json!({ "audio": parsed(raw.as_ref()) }),
        Event::Logprobs(raw) => json!({ "logprobs": parsed(raw.as_ref()) }),
        Event::Metadata(raw) => json!({ "metadata": parsed(raw.as_ref()) }),
        Event::Finish(reason) => json!({ "finish_reason": reason.as_ref() }),
        Event::Warning(warning) => {
            json!({ "code": warning.code, "event": warning.event, "message": warning.message })
        }
        Event::End(end) => json!({ "end": end.name(), "error": end.error_json() }),
        Event::Usage(usage) => json!({ "usage": usage.raw }),
        Event::Error(error) => json!({ "error": error.to_json() }),
    }
}

/// Raw JSON as a value; a field of more than [`MAX_VALUES`](crate::limits::MAX_VALUES) values stays text.
pub(crate) fn parsed(raw: &str) -> Value {
    to_value(raw).unwrap_or_else(|| Value::from(raw))
}

fn extend(object: &mut Value, details: Value) {
    if let (Value::Object(object), Value::Object(details)) = (object, details) {
        let details: Map<_, _> = details;
        object.extend(details);
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
