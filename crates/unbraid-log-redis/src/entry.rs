//! The entries of a log's stream.
//!
//! ```text
//! 0-1              v 1 g <gateway> n <nonce>     the first entry, so that an empty log exists
//! <first>-<last>   r <record>
//! <max>-<max>      s <end> t <last number>       the seal
//! <max>-<max>      e 1                           the only entry of an erased log
//! ```

use std::fmt;

use bytes::Bytes;
use redis::Value;
use unbraid_log::{LogError, Record, Seq};

use crate::error::Failure;

/// The id of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryId(pub(crate) u64, pub(crate) u64);

impl EntryId {
    pub(crate) const HEADER: Self = Self(0, 1);
    const SEAL: Self = Self(u64::MAX, u64::MAX);

    pub(crate) fn of(record: &Record) -> Self {
        Self(record.first().0, record.last().0)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, last) = std::str::from_utf8(bytes).ok()?.split_once('-')?;
        Some(Self(first.parse().ok()?, last.parse().ok()?))
    }

    /// The number of the last event, if a record or the first entry has this id.
    pub(crate) fn tail(self) -> Result<Seq, LogError> {
        match self {
            Self::HEADER => Ok(Seq::START),
            Self(first, last) if (1..=last).contains(&first) && last < Seq::MAX.0 => Ok(Seq(last)),
            Self(..) => Err(foreign("an entry's id")),
        }
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// The error of something under a key that no log has written.
pub(crate) fn foreign(what: &'static str) -> LogError {
    LogError::InvalidRecord { what, offset: 0 }
}

/// What an entry is.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Header(Header),
    /// A record, or why it is none.
    Record(Result<Record, LogError>),
    Seal {
        end: Bytes,
        tail: Seq,
    },
    Erased,
    Foreign,
}

/// What the first entry says about the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) version: Bytes,
    pub(crate) gateway: Bytes,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) id: EntryId,
    pub(crate) content: Content,
}

impl Entry {
    /// Reads an id and an array of fields.
    fn parse(value: Value) -> Result<Self, Failure> {
        let [id, fields] = array(value)?;
        Self::new(parse_id(id)?, parse_fields(fields)?)
    }

    pub(crate) fn new(id: EntryId, fields: Vec<Bytes>) -> Result<Self, Failure> {
        let content = match (id, names(&fields).as_slice()) {
            (EntryId::HEADER, [b"v", b"g", ..]) => Content::header(fields),
            (EntryId::SEAL, [b"s", b"t"]) => Content::seal(fields),
            (EntryId::SEAL, [b"e", ..]) => Content::Erased,
            (EntryId::SEAL | EntryId::HEADER, _) => Content::Foreign,
            (id, [b"r"]) => Content::record(id, fields),
            _ => Content::Foreign,
        };
        Ok(Self { id, content })
    }

    /// Reads the answer to `XRANGE`.
    pub(crate) fn parse_all(value: Value) -> Result<Vec<Self>, Failure> {
        match value {
            Value::Array(entries) => entries.into_iter().map(Self::parse).collect(),
            Value::Nil => Ok(Vec::new()),
            _ => Err(Failure::Answer),
        }
    }
}

fn names(fields: &[Bytes]) -> Vec<&[u8]> {
    fields.iter().step_by(2).map(|name| &**name).collect()
}

fn nth(fields: &[Bytes], index: usize) -> Bytes {
    fields.get(index).cloned().unwrap_or_default()
}

impl Content {
    fn header(fields: Vec<Bytes>) -> Self {
        Self::Header(Header {
            version: nth(&fields, 1),
            gateway: nth(&fields, 3),
        })
    }

    fn seal(fields: Vec<Bytes>) -> Self {
        let tail = std::str::from_utf8(&nth(&fields, 3))
            .ok()
            .and_then(|tail| tail.parse().ok());
        match tail {
            Some(tail) if tail < Seq::MAX.0 => Self::Seal {
                end: nth(&fields, 1),
                tail: Seq(tail),
            },
            _ => Self::Foreign,
        }
    }

    fn record(id: EntryId, fields: Vec<Bytes>) -> Self {
        let record = Record::decode(nth(&fields, 1));
        // Redis orders entries by their ids, so an id that is not the record's would let a reader skip events.
        let is_other = record
            .as_ref()
            .is_ok_and(|record| EntryId::of(record) != id);
        Self::Record(match is_other {
            true => Err(foreign("the record's entry has another id")),
            false => record,
        })
    }
}

/// An array of exactly this many values.
pub(crate) fn array<const N: usize>(value: Value) -> Result<[Value; N], Failure> {
    match value {
        Value::Array(values) => values.try_into().map_err(|_| Failure::Answer),
        _ => Err(Failure::Answer),
    }
}

pub(crate) fn bytes(value: Value) -> Result<Bytes, Failure> {
    match value {
        Value::BulkString(bytes) => Ok(bytes.into()),
        Value::SimpleString(text) => Ok(text.into_bytes().into()),
        Value::Okay => Ok(Bytes::from_static(b"OK")),
        _ => Err(Failure::Answer),
    }
}

pub(crate) fn integer(value: &Value) -> Result<i64, Failure> {
    match value {
        Value::Int(integer) => Ok(*integer),
        _ => Err(Failure::Answer),
    }
}

pub(crate) fn parse_id(value: Value) -> Result<EntryId, Failure> {
    EntryId::parse(&bytes(value)?).ok_or(Failure::Answer)
}

pub(crate) fn parse_fields(value: Value) -> Result<Vec<Bytes>, Failure> {
    match value {
        Value::Array(fields) => fields.into_iter().map(bytes).collect(),
        // The fields of an entry that was deleted.
        Value::Nil => Ok(Vec::new()),
        _ => Err(Failure::Answer),
    }
}

/// Reads the answer to `XREAD`: the entries of each key that has some.
pub(crate) fn parse_streams(value: Value) -> Result<Vec<(Bytes, Value)>, Failure> {
    let streams = match value {
        Value::Array(streams) => streams,
        Value::Nil => return Ok(Vec::new()),
        _ => return Err(Failure::Answer),
    };
    let pairs = streams.into_iter().map(|stream| {
        let [key, entries] = array(stream)?;
        Ok((bytes(key)?, entries))
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use unbraid_log::{Event, RecordBuilder};

    use super::*;

    fn record(first: u64, count: u64) -> Record {
        let mut builder = RecordBuilder::new(Seq(first));
        for _ in 0..count {
            builder.push(&Event::chunk(&[0.into()], b"{}"));
        }
        builder.take().unwrap()
    }

    fn content(id: EntryId, fields: &[&[u8]]) -> Content {
        let fields = fields.iter().map(|field| Bytes::copy_from_slice(field));
        Entry::new(id, fields.collect()).unwrap().content
    }

    #[test]
    fn a_record_has_the_id_of_its_numbers() {
        let record = record(3, 2);
        let fields: [&[u8]; 2] = [b"r", record.encoded()];
        assert!(
            matches!(content(EntryId(3, 4), &fields), Content::Record(Ok(read)) if read == record)
        );
        for id in [EntryId(3, 5), EntryId(1, 4)] {
            assert!(matches!(content(id, &fields), Content::Record(Err(_))));
        }
    }

    #[test]
    fn an_entry_of_another_program_is_foreign() {
        let max = EntryId::SEAL;
        for (id, fields) in [
            (EntryId(1_700_000_000_000, 0), &[b"f" as &[u8], b"v"][..]),
            (EntryId(1, 1), &[b"r", b"x", b"more", b"y"]),
            (EntryId(1, 1), &[]),
            (max, &[b"x", b"1"]),
            (max, &[b"s", b"", b"t", b"many"]),
            (EntryId::HEADER, &[b"x", b"1"]),
        ] {
            assert!(matches!(content(id, fields), Content::Foreign), "{id}");
        }
        assert!(matches!(content(max, &[b"e", b"1"]), Content::Erased));
        let seal = content(max, &[b"s", b"end", b"t", b"7"]);
        assert!(matches!(seal, Content::Seal { tail: Seq(7), .. }));
    }

    #[test]
    fn an_id_says_where_the_log_ends() {
        assert_eq!(EntryId::HEADER.tail(), Ok(Seq::START));
        assert_eq!(EntryId(3, 9).tail(), Ok(Seq(9)));
        for id in [EntryId(1_700_000_000_000, 0), EntryId::SEAL, EntryId(0, 2)] {
            assert!(id.tail().is_err(), "{id}");
        }
    }
}
