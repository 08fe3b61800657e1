//! Events and errors as JSON, in the format of the command and of the fixture traces.

use std::{borrow::Cow, fmt};

use serde_json::{Value, json};

use crate::{
    ChoiceEnd, Event, Sequenced, StreamError, Warning,
    json_text::{Fields, Json},
};

impl StreamError {
    /// Returns the error as a JSON object: its `type`, its `message`, its position, and the `body` of a server's error.
    ///
    /// # Examples
    ///
    /// ```
    /// let error = unbraid_core::StreamError::Empty { events: 2 };
    /// assert_eq!(error.to_json()["type"], "empty");
    /// assert_eq!(error.to_json()["events"], 2);
    /// ```
    ///
    /// A number of the body that a [`Value`] has no room for is the nearest `f64`, or null beyond the largest of them;
    /// [`to_json_text`](Self::to_json_text) prints each number as it came.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.json().into_value()
    }

    /// The same object as JSON text, in one line, in which the body of a server's error stands digit by digit as it came.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{ServerError, StreamError};
    ///
    /// let error = StreamError::Server(ServerError::new(r#"{"limit":1.50}"#, 7).into());
    /// assert!(error.to_json_text().ends_with(r#","event":7,"body":{"limit":1.50}}"#));
    /// ```
    #[must_use]
    pub fn to_json_text(&self) -> String {
        self.json().into_text()
    }

    fn json(&self) -> Json<'_> {
        let head = json!({ "type": self.as_str(), "message": self.to_string() });
        let mut fields = Json::fields(head);
        fields.append(&mut Json::fields(self.details()));
        if let Self::Server(error) = self {
            fields.push(("body".into(), error.body_part()));
        }
        Json::Object(fields)
    }

    /// Where it happened, and the like: all that is not a server's JSON.
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

impl ChoiceEnd {
    /// Returns the error as a JSON object, or `null` if there is none. A choice that merely did not finish has no error.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::ChoiceEnd;
    ///
    /// assert!(ChoiceEnd::Interrupted.error_json().is_null());
    /// assert_eq!(ChoiceEnd::Cancelled.error_json()["type"], "cancelled");
    /// ```
    #[must_use]
    pub fn error_json(&self) -> Value {
        self.error().map_or(Value::Null, |error| error.to_json())
    }

    /// The same as JSON text; see [`StreamError::to_json_text`].
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::ChoiceEnd::Interrupted.error_json_text(), "null");
    /// ```
    #[must_use]
    pub fn error_json_text(&self) -> String {
        self.error()
            .map_or_else(|| "null".to_owned(), |error| error.to_json_text())
    }

    /// The stream's error of the same name.
    fn error(&self) -> Option<StreamError> {
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

impl Warning {
    /// Returns the warning as a JSON object: `code`, `choice`, `event`, `message`.
    ///
    /// # Examples
    ///
    /// ```
    /// let warning = unbraid_core::Warning::new("X13", 4, "a chunk of 7 bytes that is not JSON was skipped");
    /// assert_eq!(warning.to_json()["code"], "X13");
    /// ```
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({ "code": self.code, "choice": self.choice.map(|choice| choice.0), "event": self.event_index, "message": self.message })
    }
}

impl<T: AsRef<str>> Sequenced<T> {
    /// Returns the event as a JSON object: `seq`, `choice`, `type`, then its payload.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":3,\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    /// demux.next_event();
    /// let event = demux.next_event().unwrap().to_json();
    /// assert_eq!(event.to_string(), r#"{"seq":1,"choice":3,"type":"content.delta","delta":"Hi"}"#);
    /// ```
    ///
    /// A number that a [`Value`] has no room for becomes the nearest `f64`, or null beyond the range of `f64`.
    /// [`to_json_text`](Self::to_json_text) keeps each number as the server wrote it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        self.json().into_value()
    }

    /// Returns the same object as one line of JSON text. Numbers that the server sent (in usage, log probabilities, unknown
    /// fields and errors) keep their exact digits.
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::{Demux, Config};
    ///
    /// let mut demux = Demux::new(Config::default());
    /// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{},\"seed\":1.50}]}\n\n");
    /// demux.next_event();
    /// let event = demux.next_event().unwrap().to_json_text();
    /// assert_eq!(event, r#"{"seq":1,"choice":0,"type":"metadata","metadata":{"seed":1.50}}"#);
    /// ```
    #[must_use]
    pub fn to_json_text(&self) -> String {
        self.json().into_text()
    }

    fn json(&self) -> Json<'_> {
        let mut fields = Json::fields(
            json!({ "seq": self.seq, "choice": self.choice.map(|choice| choice.0), "type": self.event.as_str() }),
        );
        fields.append(&mut payload(&self.event));
        Json::Object(fields)
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

/// The payload of an event.
fn payload<T: AsRef<str>>(event: &Event<T>) -> Fields<'_> {
    let raw = |name: &'static str, raw| vec![(Cow::Borrowed(name), raw)];
    match event {
        Event::Audio(text) => raw("audio", Json::Raw(text.as_ref().into())),
        Event::Logprobs(text) => raw("logprobs", Json::Raw(text.as_ref().into())),
        Event::ExtraFields(text) => raw("metadata", Json::Raw(text.as_ref().into())),
        Event::Usage(usage) => raw("usage", usage.raw_part()),
        Event::End(end) => {
            let mut fields = Json::fields(json!({ "end": end.as_str() }));
            let error = end.error_json_text();
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
