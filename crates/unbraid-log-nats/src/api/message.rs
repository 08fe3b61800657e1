//! Messages to and from JetStream, and the outcomes of requests.

use std::time::SystemTime;

use async_nats::{HeaderMap, jetstream::message::StreamMessage};
use bytes::Bytes;
use unbraid_log::LogError;

/// Of a message: the number of the message of the same subject that it follows.
pub(crate) const EXPECTED_SEQUENCE: &str = "Nats-Expected-Last-Subject-Sequence";

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The JetStream stream does not exist: a restart has lost it.
    Missing,
    /// The server, the account or the stream has no room. Nothing was stored.
    Full(String),
    /// The server could not write the message. Whether a part of a cluster has it is not known.
    NotWritten(String),
    /// The message is larger than the server accepts.
    TooLarge,
    /// No answer.
    TimedOut,
    /// A refusal that may be temporary.
    Unavailable(String),
}

impl From<Failure> for LogError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Missing => Self::unavailable("JetStream has lost the streams of the log"),
            Failure::Full(reason) => Self::unavailable(format!("JetStream has no room: {reason}")),
            Failure::NotWritten(reason) => {
                Self::unavailable(format!("JetStream could not write: {reason}"))
            }
            Failure::TooLarge => Self::InvalidRecord {
                what: "more bytes than the NATS server accepts",
                offset: 0,
            },
            Failure::TimedOut => Self::unavailable("no answer within a second"),
            Failure::Unavailable(reason) => Self::Unavailable { reason },
        }
    }
}

/// A message of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    /// Its number in the JetStream stream.
    pub(crate) sequence: u64,
    /// When it was stored, by the clock of the server.
    pub(crate) time: SystemTime,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl From<StreamMessage> for Stored {
    fn from(message: StreamMessage) -> Self {
        Self {
            subject: message.subject.to_string(),
            sequence: message.sequence,
            time: message.time.into(),
            headers: message.headers,
            payload: message.payload,
        }
    }
}

/// A message to be stored.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    pub(super) payload: Bytes,
}

impl Draft {
    pub(crate) fn new(subject: String, payload: impl Into<Bytes>) -> Self {
        Self {
            subject,
            headers: HeaderMap::new(),
            payload: payload.into(),
        }
    }

    pub(crate) fn header(mut self, name: &'static str, value: impl ToString) -> Self {
        self.headers.insert(name, value.to_string());
        self
    }

    /// It is stored only if this is the number of the last message of its subject; 0 if there must be none.
    pub(crate) fn after(self, sequence: u64) -> Self {
        self.header(EXPECTED_SEQUENCE, sequence)
    }

    /// About as many bytes as the server needs for it.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        let headers = self.headers.iter().flat_map(|(name, values)| {
            values
                .iter()
                .map(move |value| name.to_string().len() + value.as_str().len() + 4)
        });
        self.subject.len() + headers.sum::<usize>() + self.payload.len()
    }

    /// For a while, the server stores only one message with this id.
    pub(crate) fn message_id(self, id: impl ToString) -> Self {
        self.header("Nats-Msg-Id", id)
    }
}

/// What the server has done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ack {
    /// It is stored under this number.
    Stored(u64),
    /// The server has seen its id. That does not say that it is still stored.
    Duplicate,
    /// It does not follow the last message of its subject.
    Conflict,
}
