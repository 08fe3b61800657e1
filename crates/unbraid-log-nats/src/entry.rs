//! What the messages of a log contain: records and their end, and the meta data of a stream.

use std::time::{Duration, SystemTime};

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};
use unbraid_log::{LogError, Meta, Record, RecordBuilder, Seq, StreamEnd};

use crate::api::{Draft, EXPECTED_SEQUENCE, Stored};

/// Says what the payload is. A message without it was written by something else.
const KIND: &str = "Unbraid-Kind";
/// Of a seal: the number of the last event.
const TAIL: &str = "Unbraid-Tail";
/// Of a seal: how long the stream is kept, in milliseconds.
const TTL: &str = "Unbraid-Ttl";
/// Of meta data: the gateway that produces the stream.
const GATEWAY: &str = "Unbraid-Gateway";
/// Of meta data: a random text by which the gateway recognizes its own attempt.
const TOKEN: &str = "Unbraid-Token";

/// The version of messages that this crate writes. Records have one of their own.
const VERSION: &str = "1";

/// A message of a stream's log.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its number in the JetStream stream.
    pub(crate) sequence: u64,
    pub(crate) content: Content,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    Record(Record),
    Seal(Seal),
    /// The stream was erased, or has expired.
    Erased,
}

#[derive(Debug, Clone)]
pub(crate) struct Seal {
    pub(crate) end: StreamEnd,
    pub(crate) tail: Seq,
    pub(crate) ttl: Duration,
}

fn foreign(what: &'static str) -> LogError {
    LogError::InvalidRecord { what, offset: 0 }
}

fn text<'a>(headers: &'a HeaderMap, name: &'static str) -> Option<&'a str> {
    headers.get(name).map(|value| value.as_str())
}

fn number(headers: &HeaderMap, name: &'static str) -> Option<u64> {
    text(headers, name)?.parse().ok()
}

/// The number of the message that this one had to follow.
pub(crate) fn expected_sequence(headers: &HeaderMap) -> Option<u64> {
    number(headers, EXPECTED_SEQUENCE)
}

/// The kind of a message, of a version that this crate can read.
fn kind(headers: &HeaderMap) -> Result<&str, LogError> {
    let value =
        text(headers, KIND).ok_or_else(|| foreign("a message that was not written by unbraid"))?;
    let (kind, version) = value.split_once('/').unwrap_or((value, ""));
    match version.parse() {
        Ok(1) => Ok(kind),
        Ok(version) => Err(LogError::UnsupportedVersion { version }),
        Err(_) => Err(foreign("a message of an unknown kind")),
    }
}

fn with_kind(draft: Draft, kind: &str) -> Draft {
    draft.header(KIND, format!("{kind}/{VERSION}"))
}

impl Entry {
    pub(crate) fn decode(stored: Stored) -> Result<Self, LogError> {
        Self::from_parts(stored.sequence, &stored.headers, stored.payload)
    }

    pub(crate) fn from_parts(
        sequence: u64,
        headers: &HeaderMap,
        payload: Bytes,
    ) -> Result<Self, LogError> {
        let content = Content::decode(headers, payload)?;
        Ok(Self { sequence, content })
    }

    /// Whether it has something for a reader after this cursor. The end has, for every cursor.
    pub(crate) fn concerns(&self, after: Seq) -> bool {
        match &self.content {
            Content::Record(record) => record.last() > after,
            Content::Seal(_) | Content::Erased => true,
        }
    }
}

impl Content {
    fn decode(headers: &HeaderMap, payload: Bytes) -> Result<Self, LogError> {
        match kind(headers)? {
            "record" => Record::decode(payload).map(Self::Record),
            "seal" => {
                let tail = number(headers, TAIL).ok_or_else(|| foreign("a seal without a tail"))?;
                let ttl = number(headers, TTL).ok_or_else(|| foreign("a seal without a ttl"))?;
                Ok(Self::Seal(Seal {
                    end: StreamEnd::decode(&payload)?,
                    tail: Seq(tail),
                    ttl: Duration::from_millis(ttl),
                }))
            }
            "erased" => Ok(Self::Erased),
            _ => Err(foreign("a message of an unknown kind")),
        }
    }
}

/// A message that the server has sent to a subscriber after it has stored it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) entry: Result<Entry, LogError>,
    pub(crate) sequence: u64,
    /// The number of the message before it with the same subject; 0 if it is the first.
    pub(crate) previous: u64,
}

impl Live {
    /// `None` for a message that does not come from the server.
    pub(crate) fn decode(message: Message) -> Option<Self> {
        let headers = message.headers?;
        let sequence = number(&headers, "Nats-Sequence")?;
        let previous = number(&headers, "Nats-Last-Sequence")?;
        let content = Content::decode(&headers, message.payload);
        Some(Self {
            entry: content.map(|content| Entry { sequence, content }),
            sequence,
            previous,
        })
    }
}

pub(crate) fn record_draft(subject: String, record: &Record) -> Draft {
    with_kind(Draft::new(subject, record.encoded().clone()), "record")
}

pub(crate) fn seal_draft(subject: String, end: &StreamEnd, tail: Seq, ttl: Duration) -> Draft {
    let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    with_kind(Draft::new(subject, end.encode()), "seal")
        .header(TAIL, tail)
        .header(TTL, millis)
}

pub(crate) fn erased_draft(subject: String) -> Draft {
    with_kind(Draft::new(subject, Bytes::new()), "erased")
}

/// What is stored about a stream beside its events.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) meta: Meta,
    /// The gateway that produces it.
    pub(crate) gateway: String,
    pub(crate) token: String,
    /// Its events were erased, or have expired.
    pub(crate) is_expired: bool,
    /// When this was stored, by the clock of the server.
    pub(crate) time: SystemTime,
}

impl Origin {
    pub(crate) fn decode(stored: &Stored) -> Result<Self, LogError> {
        let is_expired = match kind(&stored.headers)? {
            "open" => false,
            "expired" => true,
            _ => return Err(foreign("a message of an unknown kind")),
        };
        let header = |name| text(&stored.headers, name).unwrap_or_default().to_owned();
        Ok(Self {
            meta: Meta::decode(&stored.payload)?,
            gateway: header(GATEWAY),
            token: header(TOKEN),
            is_expired,
            time: stored.time,
        })
    }
}

pub(crate) fn open_draft(subject: String, meta: &Meta, gateway: &str, token: &str) -> Draft {
    with_kind(Draft::new(subject, meta.encode()), "open")
        .header(GATEWAY, gateway)
        .header(TOKEN, token)
}

pub(crate) fn expired_draft(subject: String, meta: &Meta) -> Draft {
    with_kind(Draft::new(subject, meta.encode()), "expired")
}

/// Of a lease: how long it lasts, in milliseconds.
const LEASE: &str = "Unbraid-Lease";

/// The lease of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) duration: Duration,
    /// Another gateway has found it expired.
    pub(crate) is_revoked: bool,
}

impl Lease {
    pub(crate) fn decode(headers: &HeaderMap) -> Result<Self, LogError> {
        let duration = number(headers, LEASE).ok_or_else(|| foreign("a lease without a duration"));
        match kind(headers)? {
            "lease" => Ok(Self {
                duration: Duration::from_millis(duration?),
                is_revoked: false,
            }),
            "revoked" => Ok(Self {
                duration: Duration::ZERO,
                is_revoked: true,
            }),
            _ => Err(foreign("a message of an unknown kind")),
        }
    }
}

pub(crate) fn lease_draft(subject: String, duration: Duration) -> Draft {
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    with_kind(Draft::new(subject, Bytes::new()), "lease").header(LEASE, millis)
}

pub(crate) fn revoked_draft(subject: String) -> Draft {
    with_kind(Draft::new(subject, Bytes::new()), "revoked")
}

/// Larger than a lease, so that the server has no room for it if it has none for a renewal.
pub(crate) fn clock_draft(subject: String) -> Draft {
    const PADDING: [u8; 192] = [b' '; 192];
    with_kind(Draft::new(subject, Bytes::from_static(&PADDING)), "clock")
}

/// The entry of a sealed stream among those that expire.
pub(crate) fn ended_draft(subject: String, ttl: Duration) -> Draft {
    let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    with_kind(Draft::new(subject, Bytes::new()), "ended").header(TTL, millis)
}

/// How long the stream of such an entry is kept.
pub(crate) fn ended_ttl(stored: &Stored) -> Result<Duration, LogError> {
    match (kind(&stored.headers)?, number(&stored.headers, TTL)) {
        ("ended", Some(millis)) => Ok(Duration::from_millis(millis)),
        _ => Err(foreign("a message of an unknown kind")),
    }
}

/// A value in JSON: a claim or a command.
pub(crate) fn value_draft(subject: String, name: &str, value: &impl Serialize) -> Draft {
    // Texts and numbers always have a JSON text.
    let json = serde_json::to_vec(value).unwrap_or_default();
    with_kind(Draft::new(subject, json), name)
}

pub(crate) fn decode_value<T: DeserializeOwned>(
    stored: &Stored,
    name: &str,
) -> Result<T, LogError> {
    if kind(&stored.headers)? != name {
        return Err(foreign("a message of an unknown kind"));
    }
    serde_json::from_slice(&stored.payload).map_err(|error| LogError::InvalidRecord {
        what: "a value is not the expected JSON",
        offset: error.column(),
    })
}

/// The events of a record after a number, as records: one, because they fit into the record that they are from.
pub(crate) fn events_after(record: &Record, after: Seq) -> Vec<Record> {
    let mut builder = RecordBuilder::new(after.next().max(record.first()));
    for (seq, event) in record.events() {
        if seq > after {
            builder.push(&event);
        }
    }
    std::iter::from_fn(|| builder.take()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(kind: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(KIND, kind);
        headers
    }

    #[test]
    fn a_clock_is_larger_than_every_lease() {
        let names = crate::names::Names::new("unbraid").unwrap();
        let lease = names.lease(&unbraid_log::StreamId::random().unwrap());
        let clock = clock_draft(names.clock()).size();
        for duration in [Duration::from_secs(15), Duration::MAX] {
            let renewal = lease_draft(lease.clone(), duration).after(u64::MAX);
            assert!(renewal.size() < clock);
        }
        assert!(revoked_draft(lease).after(u64::MAX).size() < clock);
    }

    #[test]
    fn a_message_of_something_else_is_a_typed_error() {
        let error = |headers: &HeaderMap, payload: &'static [u8]| {
            Content::decode(headers, payload.into()).unwrap_err()
        };
        let foreign = error(&HeaderMap::new(), b"{}");
        assert!(
            matches!(foreign, LogError::InvalidRecord { .. }),
            "{foreign}"
        );
        for kind in ["record", "record/", "record/x", "other/1"] {
            let unknown = error(&headers(kind), b"{}");
            assert!(matches!(unknown, LogError::InvalidRecord { .. }), "{kind}");
        }
        let later = LogError::UnsupportedVersion { version: 2 };
        assert_eq!(error(&headers("record/2"), b""), later);
        let later = LogError::UnsupportedVersion { version: 9 };
        assert_eq!(error(&headers("record/1"), &[9, 1, 1]), later);
        let incomplete = error(&headers("seal/1"), &[1, 1, 0]);
        assert!(matches!(incomplete, LogError::InvalidRecord { .. }));
    }
}
