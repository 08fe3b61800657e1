//! `Record`: what one append writes, and its format.
//!
//! ```text
//! record = version(1) first:varint count:varint event*
//! event  = 1 choices payload | 2 choices text payload       Chunk, without and with a name
//!        | 3 choice end | 4 choice end text                 ChoiceEnd, without and with a finish reason
//!        | 5 choices payload                                Synthetic
//!        | 6 payload | 7 text payload                       Error, without and with a name
//!        | 8 payload                                        Part
//! choices = count:varint choice*   choice = varint below 2^32   end = one byte   payload, text = length:varint bytes
//! seal   = version(1) end flags:byte [text] [text]          error if bit 0, usage if bit 1
//! ```
//!
//! A format that any reader cannot read has another version byte.

mod builder;
mod read;

use std::fmt;

pub use builder::{MAX_PAYLOAD_BYTES, RecordBuilder};
use bytes::Bytes;
pub(crate) use read::Input;

use crate::{Event, LogError, Seq, StreamEnd, varint};

/// The version of the format.
const VERSION: u8 = 1;

/// Consecutive events of a stream, encoded: what one append writes. It never changes; `Clone` copies no payload.
///
/// # Examples
///
/// ```
/// use unbraid_log::{Event, Record, RecordBuilder, Seq};
///
/// let mut builder = RecordBuilder::new(Seq(5));
/// builder.push(&Event::chunk(&[0.into()], b"{}"));
/// builder.push(&Event::chunk(&[1.into()], b"[]"));
/// let record = builder.take().unwrap();
/// assert_eq!((record.first(), record.last()), (Seq(5), Seq(6)));
///
/// let read = Record::decode(record.encoded().clone())?;
/// let (seq, event) = read.events().next().unwrap();
/// assert_eq!((seq, event.payload()), (Seq(5), Some(&b"{}"[..])));
/// # Ok::<(), unbraid_log::LogError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Record {
    first: Seq,
    count: u64,
    /// The offset of the first event.
    start: usize,
    bytes: Bytes,
}

impl Record {
    /// Checks the bytes of a record. No event is copied.
    ///
    /// # Errors
    ///
    /// [`LogError::UnsupportedVersion`], and [`LogError::InvalidRecord`] for anything that is not exactly one record.
    pub fn decode(bytes: Bytes) -> Result<Self, LogError> {
        let mut input = Input::new(&bytes);
        input.version(VERSION)?;
        let first = Seq(input.number("the first number")?);
        let count = input.number("the number of events")?;
        let start = input.offset();
        if first < Seq(1)
            || count == 0
            || first
                .0
                .checked_add(count)
                .is_none_or(|next| next > Seq::MAX.0)
        {
            return Err(input.error("the numbers of the events"));
        }
        for _ in 0..count {
            input.event()?;
        }
        input.end()?;
        Ok(Self {
            first,
            count,
            start,
            bytes,
        })
    }

    /// A record of events that are already encoded.
    pub(crate) fn from_body(first: Seq, count: u64, body: &[&[u8]]) -> Self {
        const HEADER: usize = 1 + 10 + 10;
        let length: usize = body.iter().map(|part| part.len()).sum();
        let mut bytes = Vec::with_capacity(HEADER + length);
        bytes.push(VERSION);
        varint::write(first.0, &mut bytes);
        varint::write(count, &mut bytes);
        let start = bytes.len();
        for part in body {
            bytes.extend_from_slice(part);
        }
        Self {
            first,
            count,
            start,
            bytes: bytes.into(),
        }
    }

    /// The same events in one record. `None` without records, and for a single one.
    pub(crate) fn merge(records: &[Self]) -> Option<Self> {
        let [first, _, ..] = records else {
            return None;
        };
        let count = records.iter().map(|record| record.count).sum();
        let bodies: Vec<&[u8]> = records.iter().map(Self::body).collect();
        Some(Self::from_body(first.first, count, &bodies))
    }

    /// The events after this number; `None` if there are none. All of them for a number before the first.
    pub(crate) fn after(&self, seq: Seq) -> Option<Self> {
        let skipped = seq.next().0.saturating_sub(self.first.0);
        let count = self.count.checked_sub(skipped).filter(|count| *count > 0)?;
        let mut input = Input::new(self.body());
        for _ in 0..skipped {
            input.event().ok()?;
        }
        let body = self.body().get(input.offset()..)?;
        let first = Seq(self.first.0 + skipped);
        Some(Self::from_body(first, count, &[body]))
    }

    /// The events from one number to another; `None` if there are none. The bytes are those of a record with these events.
    pub(crate) fn slice(&self, first: Seq, last: Seq) -> Option<Self> {
        let first = first.max(self.first);
        let last = last.min(self.last());
        if first > last {
            return None;
        }
        if (first, last) == (self.first, self.last()) {
            return Some(self.clone());
        }
        let mut input = Input::new(self.body());
        for _ in self.first.0..first.0 {
            input.event().ok()?;
        }
        let start = input.offset();
        for _ in first.0..=last.0 {
            input.event().ok()?;
        }
        let body = self.body().get(start..input.offset())?;
        Some(Self::from_body(first, last.0 - first.0 + 1, &[body]))
    }

    /// The number of its first event.
    #[must_use]
    pub fn first(&self) -> Seq {
        self.first
    }

    /// The number of its last event.
    #[must_use]
    pub fn last(&self) -> Seq {
        Seq(self.first.0 + self.count - 1)
    }

    /// The bytes, as an engine stores them.
    #[must_use]
    pub fn encoded(&self) -> &Bytes {
        &self.bytes
    }

    /// The encoded events.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The events with their numbers.
    pub fn events(&self) -> impl Iterator<Item = (Seq, Event<'_>)> {
        // Every event was checked, so the iterator ends after the last one.
        let mut input = Input::new(self.body());
        let mut next = self.first;
        std::iter::from_fn(move || {
            let event = input.event().ok()?;
            let seq = next;
            next = next.next();
            Some((seq, event))
        })
    }
}

/// Shows the numbers, and no payload.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("first", &self.first.0)
            .field("last", &self.last().0)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

const HAS_ERROR: u8 = 1;
const HAS_USAGE: u8 = 2;

impl StreamEnd {
    /// Encodes it for an engine.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let has = |text: &Option<String>, flag| if text.is_some() { flag } else { 0 };
        let flags = has(&self.error, HAS_ERROR) | has(&self.usage, HAS_USAGE);
        let mut bytes = vec![VERSION, self.end.code(), flags];
        for text in [&self.error, &self.usage].into_iter().flatten() {
            varint::write(text.len() as u64, &mut bytes);
            bytes.extend_from_slice(text.as_bytes());
        }
        bytes
    }

    /// Decodes what [`encode`](Self::encode) has written.
    ///
    /// # Errors
    ///
    /// [`LogError::UnsupportedVersion`] and [`LogError::InvalidRecord`].
    pub fn decode(bytes: &[u8]) -> Result<Self, LogError> {
        let mut input = Input::new(bytes);
        input.version(VERSION)?;
        let mut end = Self::new(input.end_code()?);
        let flags = input.byte("the flags")?;
        if flags & !(HAS_ERROR | HAS_USAGE) != 0 {
            return Err(input.error("the flags"));
        }
        if flags & HAS_ERROR != 0 {
            end.error = Some(input.text("the error")?.to_owned());
        }
        if flags & HAS_USAGE != 0 {
            end.usage = Some(input.text("the usage")?.to_owned());
        }
        input.end()?;
        Ok(end)
    }
}

#[cfg(test)]
mod tests;
