//! What ends a stream, a choice or a call. Errors say where; the payload is in none of their texts.

mod transport;

use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use serde_json::Value;

pub use self::transport::TransportError;
use crate::{
    BodyFormat, ChoiceEnd, ChoiceIndex, EventIndex, LimitExceeded, message::ChoiceOutcome,
};

/// An error of any source, as it was given to us.
pub type BoxError = Box<dyn StdError + Send + Sync>;

/// What ended a whole stream before its time.
///
/// It is cloneable, so that every waiter gets it. A choice that was open ends with the [`ChoiceEnd`](crate::ChoiceEnd) of the same name.
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
    /// A timeout was asked for, but the runtime has no time driver.
    #[error("a timeout was asked for, but the runtime has no time driver")]
    NoTimeDriver,
    /// The stream ended without any event that carries an answer (L1).
    #[error("the stream held no answer ({events} events)")]
    Empty {
        /// Events that were read.
        events: u64,
    },
    /// What came is no stream of completion chunks (S29, S30, X13).
    #[error(
        "not a stream of completion chunks ({bytes} bytes, {events} events, none of them a chunk)"
    )]
    NotAStream {
        /// Bytes that were read.
        bytes: u64,
        /// Events that were read; 0 where no event-stream field was seen at all.
        events: u64,
    },
    /// An answer in the format of another API came, or a page, and no choice of a completion.
    #[error("not a stream of completion chunks: it appears to be {format}")]
    UnsupportedFormat {
        /// What it appears to be.
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
    /// The reader of the stream was lost: it panicked, or its runtime was shut down.
    #[error("the reader of the stream was lost")]
    Lost,
}

impl StreamError {
    /// One lower-case word for the kind of error, as the command line prints it.
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
/// `Display` and `Debug` give its type and code where these are plain identifiers; its message and body, which may hold
/// parts of the prompt, are given only when asked for.
///
/// # Examples
///
/// ```
/// use unbraid_core::ServerError;
///
/// let error = ServerError::new(r#"{"message":"too long: SECRET","type":"invalid_request_error","code":400}"#, 7);
/// assert_eq!(error.message(), Some("too long: SECRET"));
/// assert_eq!(error.to_string(), "the server reported an error (type invalid_request_error, code 400) in event 7");
/// assert!(!format!("{error:?}").contains("SECRET"));
/// ```
#[derive(Clone, PartialEq)]
pub struct ServerError {
    body: Value,
    event_index: EventIndex,
}

impl ServerError {
    /// An error from its JSON text; text that is no JSON becomes the message.
    #[must_use]
    pub fn new(json: &str, event_index: impl Into<EventIndex>) -> Self {
        let known = serde_json::from_str(json).ok();
        // A number that a `Value` has no room for must not make a text of all the rest.
        let body = known.unwrap_or_else(|| crate::report::parsed(json));
        Self {
            body,
            event_index: event_index.into(),
        }
    }

    /// What the server sent, whole (X9).
    #[must_use]
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// The server's message, looked for under the names that servers use.
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

    /// The server's type of error, if it gave one.
    #[must_use]
    pub fn kind(&self) -> Option<&str> {
        ["type", "error_type"]
            .iter()
            .find_map(|name| self.lookup(name)?.as_str())
    }

    /// The server's code as text, be it a number or a word.
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
        let inner = ["error", "base_resp"]
            .iter()
            .find_map(|outer| self.body.get(outer)?.get(name));
        self.body
            .get(name)
            .or(inner)
            .filter(|value| !value.is_null())
    }
}

/// The text if it is a plain identifier, so that no payload slips into a log.
fn identifier(text: &str) -> Option<&str> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (!text.is_empty() && text.len() <= 48 && text.bytes().all(plain)).then_some(text)
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

/// Which timeout passed, and after how long.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use unbraid_core::{TimedOut, Timeout};
///
/// let error = TimedOut::new(Timeout::Idle, Duration::from_secs(30));
/// assert_eq!(error.to_string(), "idle timeout after 30s");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{timeout} timeout after {after:?}")]
#[non_exhaustive]
pub struct TimedOut {
    /// Which of the three.
    pub timeout: Timeout,
    /// Its configured length.
    pub after: Duration,
}

impl TimedOut {
    /// The error of a timeout of this length.
    #[must_use]
    pub fn new(timeout: Timeout, after: Duration) -> Self {
        Self { timeout, after }
    }
}

/// The three timeouts of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Timeout {
    /// No byte came at all.
    FirstByte,
    /// No byte came for a while after others had (L10); comments count as bytes (S4).
    Idle,
    /// The stream took too long as a whole (L9).
    Total,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstByte => "first-byte",
            Self::Idle => "idle",
            Self::Total => "total",
        })
    }
}

/// A choice that did not come to its end, and what had arrived of it.
///
/// # Examples
///
/// ```
/// use unbraid_core::{Demux, Config, ChoiceIndex};
///
/// let mut demux = Demux::new(Config::default());
/// demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\n\n");
/// demux.finish();
/// let error = demux.result(ChoiceIndex(0)).unwrap().unwrap_err();
/// assert_eq!(error.to_string(), "choice 0: the stream ended before the choice did");
/// assert_eq!(error.partial().message.content, "Hel");
/// ```
#[derive(Clone, PartialEq)]
pub struct ChoiceError {
    partial: Arc<ChoiceOutcome>,
}

impl fmt::Display for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "choice {}: {}", self.partial.choice, self.reason())
    }
}

/// The `source()` is that of a failed transport: what the HTTP client said.
impl StdError for ChoiceError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.partial.end {
            ChoiceEnd::Transport(error) => error.source(),
            _ => None,
        }
    }
}

/// Tells what `Display` tells: the partial answer is no part of an error's text.
impl fmt::Debug for ChoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChoiceError({self})")
    }
}

impl ChoiceError {
    /// The error of a choice that ended in any way but by finishing, or that was discarded.
    #[must_use]
    pub fn new(partial: ChoiceOutcome) -> Self {
        Self {
            partial: Arc::new(partial),
        }
    }

    /// Which choice.
    #[must_use]
    pub fn choice(&self) -> ChoiceIndex {
        self.partial.choice
    }

    /// How it ended.
    #[must_use]
    pub fn end(&self) -> &ChoiceEnd {
        &self.partial.end
    }

    /// What went wrong, as one lower-case fragment that does not name the choice: its end, or that it was discarded.
    #[must_use]
    pub fn reason(&self) -> String {
        let ChoiceOutcome { end, discarded, .. } = &*self.partial;
        if *discarded && !end.is_error() {
            "discarded after its end".into()
        } else {
            end.reason()
        }
    }

    /// What had arrived.
    #[must_use]
    pub fn partial(&self) -> &ChoiceOutcome {
        &self.partial
    }

    /// What had arrived, for keeps.
    #[must_use]
    pub fn into_partial(self) -> ChoiceOutcome {
        Arc::unwrap_or_clone(self.partial)
    }
}

#[cfg(test)]
mod tests;
