//! The errors of a stream. Their messages carry positions, never payload.

mod timeout;
mod transport;

use std::{error::Error as StdError, fmt, sync::Arc};

use serde_json::Value;

pub use self::{
    timeout::{TimedOut, Timeout},
    transport::TransportError,
};
use crate::{
    BodyFormat, EventIndex, LimitExceeded, json_text::Json, limits::MAX_VALUES, usage::may_differ,
};

/// An error of any source.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// The error that ended a whole stream.
///
/// It is cloneable, so that every waiter receives it. An open choice ends with the [`ChoiceEnd`](crate::ChoiceEnd) of the
/// same name. Errors are equal if they say the same.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config, StreamError};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"Bad gateway: try again");
/// demux.finish();
/// assert!(matches!(demux.closed(), Some(Err(StreamError::NotAStream { bytes: 22, .. }))));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// No async runtime runs on this thread, so nothing can be read.
    #[error("no tokio runtime runs on this thread")]
    NoRuntime,
    /// A timeout was configured, but the runtime has no time driver.
    #[error("a timeout was asked for, but the runtime has no time driver")]
    NoTimeDriver,
    /// The stream ended without an event that contains an answer (L1).
    #[error("the stream held no answer ({events} events)")]
    Empty {
        /// Events that were read.
        events: u64,
    },
    /// The body is not a stream of completion chunks (S29, S30, X13).
    #[error(
        "not a stream of completion chunks ({bytes} bytes, {events} events, none of them a chunk)"
    )]
    NotAStream {
        /// Bytes that were read.
        bytes: u64,
        /// Events that were read; 0 if the body contained no field of an event stream.
        events: u64,
    },
    /// The body ended inside an event, and no event before it contained an answer (S22).
    #[error(
        "the body ends inside an event, before any answer (event {event_index}, byte {offset})"
    )]
    Interrupted {
        /// The event.
        event_index: EventIndex,
        /// Offset of its first byte in the stream.
        offset: u64,
    },
    /// The body is an answer in the format of another API, or a web page, and contains no choice.
    #[error("not a stream of completion chunks: it appears to be {format}")]
    UnsupportedFormat {
        /// The format that it appears to have.
        format: BodyFormat,
        /// Events that were read.
        events: u64,
    },
    /// Only in strict mode: a line, a payload or a delta breaks the format (R04, R07, R11, R14).
    #[error("{what} (event {event_index}, byte {offset})")]
    Malformed {
        /// What is wrong.
        what: &'static str,
        /// The event.
        event_index: EventIndex,
        /// Offset of its first byte in the stream.
        offset: u64,
    },
    /// The source failed (X14).
    #[error(transparent)]
    Transport(Arc<TransportError>),
    /// The server reported an error in the stream (X1 to X10).
    #[error(transparent)]
    Server(Arc<ServerError>),
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
    /// A timeout passed.
    #[error(transparent)]
    TimedOut(TimedOut),
    /// A limit of the whole stream was exceeded.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The reader of the stream was lost: it panicked, or its runtime stopped.
    #[error("the reader of the stream was lost")]
    Lost,
}

impl StreamError {
    /// One lower-case word for the kind of error, as the command prints it.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(unbraid_core::StreamError::Cancelled.as_str(), "cancelled");
    /// ```
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::NoRuntime => "no_runtime",
            Self::NoTimeDriver => "no_time_driver",
            Self::Empty { .. } => "empty",
            Self::NotAStream { .. } | Self::UnsupportedFormat { .. } => "not_a_stream",
            Self::Malformed { .. } => "malformed",
            Self::Interrupted { .. } => "interrupted",
            Self::Transport(_) => "transport",
            Self::Server(_) => "server_error",
            Self::Cancelled => "cancelled",
            Self::TimedOut(_) => "timed_out",
            Self::Limit(_) => "limit_exceeded",
            Self::Lost => "lost",
        }
    }
}

/// An error that the server reported inside the stream.
///
/// `Display` and `Debug` contain its type and code if these are identifiers. Its message and body may contain parts of the
/// prompt, so they are available only from the methods.
///
/// # Examples
///
/// ```
/// use unbraid_core::ServerError;
///
/// let error = ServerError::new(r#"{"message":"too long: SECRET","type":"invalid_request_error","code":400}"#, 7);
/// assert_eq!(error.message(), Some("too long: SECRET"));
/// assert_eq!((error.kind(), error.event_index().0), (Some("invalid_request_error"), 7));
/// assert_eq!(error.body()["code"], 400);
/// assert_eq!(error.to_string(), "the server reported an error (type invalid_request_error, code 400) in event 7");
/// assert!(!format!("{error:?}").contains("SECRET"));
/// ```
#[derive(Clone, PartialEq)]
pub struct ServerError {
    body: Value,
    /// The JSON text, if a `Value` may print a number of it in another form. A longer text is not kept twice.
    raw: Option<Box<str>>,
    event_index: EventIndex,
}

impl ServerError {
    /// An error from its JSON text. Text that is not JSON becomes the message.
    #[must_use]
    pub fn new(json: &str, event_index: impl Into<EventIndex>) -> Self {
        let known = serde_json::from_str(json).ok();
        // A number that a `Value` cannot represent must not turn the whole body into a text.
        let body = known.unwrap_or_else(|| crate::json_text::parsed(json));
        let raw = (json.len() <= MAX_VALUES && may_differ(json)).then(|| json.into());
        Self {
            body,
            raw,
            event_index: event_index.into(),
        }
    }

    /// The server's error object, complete.
    ///
    /// A number that a [`Value`] cannot represent is the nearest `f64`, or null beyond the range of `f64`.
    /// [`body_json`](Self::body_json) keeps each number as the server wrote it.
    #[must_use]
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The error object as one line of JSON text, in which every number keeps its digits. The numbers of a body of more
    /// than [`MAX_VALUES`] bytes are those of [`body`](Self::body).
    ///
    /// # Examples
    ///
    /// ```
    /// use unbraid_core::ServerError;
    ///
    /// let error = ServerError::new(r#"{"message":"quota","limit":9007199254740993.0}"#, 0);
    /// assert_eq!(error.body()["limit"], 9007199254740992.0);
    /// assert_eq!(error.body_json(), r#"{"message":"quota","limit":9007199254740993.0}"#);
    /// ```
    #[must_use]
    pub fn body_json(&self) -> String {
        self.body_part().into_text()
    }

    /// The error object as a part of other JSON.
    pub(crate) fn body_part(&self) -> Json<'_> {
        match &self.raw {
            Some(raw) => Json::Raw((&**raw).into()),
            None => Json::Value(self.body.clone()),
        }
    }

    /// The server's message, from the fields that servers use for it.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        if let Value::String(text) = &self.body {
            return Some(text);
        }
        let names = [
            "message",
            "error_message",
            "detail",
            "msg",
            "status_msg",
            "error",
        ];
        names.iter().find_map(|name| self.lookup(name)?.as_str())
    }

    /// The server's type of error, if there is one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        let inner = self.body.get("error").and_then(|error| error.get("type"));
        let own = ["type", "error_type"]
            .iter()
            .find_map(|name| self.lookup(name)?.as_str());
        // Around the error object, the type is that of the event.
        match own {
            Some("error" | "response.error") => inner.and_then(Value::as_str).or(own),
            own => own,
        }
    }

    /// The server's code as text, whether it is a number or a word.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        ["code", "status_code"]
            .iter()
            .find_map(|name| match self.lookup(name)? {
                Value::String(code) => Some(code.clone()),
                Value::Number(code) => Some(code.to_string()),
                _ => None,
            })
    }

    /// The event that contained it.
    #[must_use]
    pub fn event_index(&self) -> EventIndex {
        self.event_index
    }

    /// A field of the body, or of the error object inside it.
    fn lookup(&self, name: &str) -> Option<&Value> {
        // Typed servers write null for a field that is absent at one of the places.
        let inner = ["error", "base_resp"]
            .iter()
            .map(|outer| self.body.get(outer));
        let places = std::iter::once(Some(&self.body)).chain(inner).flatten();
        let mut fields = places.filter_map(|place| place.get(name));
        fields.find(|value| !value.is_null())
    }
}

/// The text if it is an identifier: other text might be payload, which must not reach a log.
fn identifier(text: &str) -> Option<&str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (!text.is_empty() && text.len() <= 48 && text.bytes().all(allowed)).then_some(text)
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server reported an error")?;
        let code = self.code();
        match (
            self.kind().and_then(identifier),
            code.as_deref().and_then(identifier),
        ) {
            (Some(kind), Some(code)) => write!(f, " (type {kind}, code {code})")?,
            (Some(kind), None) => write!(f, " (type {kind})")?,
            (None, Some(code)) => write!(f, " (code {code})")?,
            (None, None) => {}
        }
        write!(f, " in event {}", self.event_index)
    }
}

impl fmt::Debug for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerError({self})")
    }
}

impl StdError for ServerError {}

#[cfg(test)]
mod tests;
