//! The tables of the file: what is where, in format 1.
//!
//! A running stream's records are in `arrivals`, in the order of their commits, those of all streams together: so a commit
//! writes one page for a hundred appends, and not one for each. They move to `events`, where each stream is contiguous, once
//! their stream has ended, or `arrivals` is large.

use redb::{ReadTransaction, ReadableTable, Table, TableDefinition, TableHandle, WriteTransaction};
use unbraid_log::{Record, Seq, StreamId};

use crate::error::FileLogError;

/// The format that this version writes.
pub(crate) const FORMAT: u64 = 1;

/// Single numbers, by their names below.
pub(crate) const HEAD: TableDefinition<'_, &str, u64> = TableDefinition::new("unbraid.head");
/// Every stream that is known, by its id.
pub(crate) const STREAMS: TableDefinition<'_, &str, Columns<'static>> =
    TableDefinition::new("unbraid.streams");
/// The running streams: id by number.
const RUNNING: TableDefinition<'_, u64, &str> = TableDefinition::new("unbraid.running");
/// When a stream expires or is forgotten, in milliseconds, and its number.
pub(crate) type ExpiryKey = (u64, u64);
/// When streams expire or, already expired, are forgotten: their ids.
pub(crate) const EXPIRY: TableDefinition<'_, ExpiryKey, &str> =
    TableDefinition::new("unbraid.expiry");
/// Records of running streams, by the number of their commit; see [`arrivals`].
const ARRIVALS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("unbraid.arrivals");
/// Records by the number of their stream and their first event.
pub(crate) const EVENTS: TableDefinition<'_, (u64, u64), &[u8]> =
    TableDefinition::new("unbraid.events");
/// The holder and the fingerprint of each claim, by its name.
const CLAIMS: TableDefinition<'_, &str, (&str, &[u8], bool)> =
    TableDefinition::new("unbraid.claims");

pub(crate) const HEAD_FORMAT: &str = "format";
pub(crate) const HEAD_NUMBER: &str = "last-number";
pub(crate) const HEAD_CLOCK: &str = "clock";
pub(crate) const HEAD_BYTES: &str = "bytes";

/// State, number, time, tail, bytes, meta data, end.
pub(crate) type Columns<'a> = (u8, u64, u64, u64, u64, &'a [u8], &'a [u8]);

/// A row of `streams`.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// The stream's number in this file.
    pub(crate) number: u64,
    pub(crate) state: RowState,
    /// The number of its last event, once it is sealed.
    pub(crate) tail: Seq,
    /// The bytes that it takes, once it is sealed.
    pub(crate) bytes: u64,
    /// As `Meta` encodes it.
    pub(crate) meta: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) enum RowState {
    Running {
        opened: u64,
    },
    Ended {
        expires: u64,
        /// As `StreamEnd` encodes it.
        end: Vec<u8>,
    },
    Expired {
        forgotten: u64,
    },
}

impl Row {
    pub(crate) fn columns(&self) -> Columns<'_> {
        let (code, time, end): (u8, u64, &[u8]) = match &self.state {
            RowState::Running { opened } => (1, *opened, &[]),
            RowState::Ended { expires, end } => (2, *expires, end),
            RowState::Expired { forgotten } => (3, *forgotten, &[]),
        };
        (
            code,
            self.number,
            time,
            self.tail.0,
            self.bytes,
            &self.meta,
            end,
        )
    }

    pub(crate) fn decode(columns: Columns<'_>) -> Result<Self, FileLogError> {
        let (code, number, time, tail, bytes, meta, end) = columns;
        let state = match code {
            1 => RowState::Running { opened: time },
            2 => RowState::Ended {
                expires: time,
                end: end.to_vec(),
            },
            3 => RowState::Expired { forgotten: time },
            _ => {
                return Err(FileLogError::Damaged {
                    reason: "the state of a stream".to_owned(),
                });
            }
        };
        Ok(Self {
            number,
            state,
            tail: Seq(tail),
            bytes,
            meta: meta.to_vec(),
        })
    }
}

/// Whether the file is new. A file of another program, or of a later version, is refused before anything is written.
pub(crate) fn check_format(transaction: &ReadTransaction) -> Result<bool, FileLogError> {
    let mut names = Vec::new();
    for table in transaction.list_tables()? {
        names.push(table.name().to_owned());
    }
    if names.is_empty() {
        return match transaction.list_multimap_tables()?.next() {
            Some(_) => Err(FileLogError::Foreign),
            None => Ok(true),
        };
    }
    if !names.iter().any(|name| name == HEAD.name()) {
        return Err(FileLogError::Foreign);
    }
    let format = transaction.open_table(HEAD)?.get(HEAD_FORMAT)?;
    match format.map(|format| format.value()) {
        Some(FORMAT) => Ok(false),
        Some(version) => Err(FileLogError::UnsupportedVersion { version }),
        None => Err(FileLogError::Foreign),
    }
}

/// All tables, within one transaction.
pub(crate) struct Tables<'t> {
    pub(crate) head: Table<'t, &'static str, u64>,
    pub(crate) streams: Table<'t, &'static str, Columns<'static>>,
    pub(crate) running: Table<'t, u64, &'static str>,
    pub(crate) expiry: Table<'t, ExpiryKey, &'static str>,
    pub(crate) arrivals: Table<'t, u64, &'static [u8]>,
    pub(crate) events: Table<'t, (u64, u64), &'static [u8]>,
    pub(crate) claims: Table<'t, &'static str, (&'static str, &'static [u8], bool)>,
}

impl<'t> Tables<'t> {
    pub(crate) fn open(transaction: &'t WriteTransaction) -> Result<Self, FileLogError> {
        Ok(Self {
            head: transaction.open_table(HEAD)?,
            streams: transaction.open_table(STREAMS)?,
            running: transaction.open_table(RUNNING)?,
            expiry: transaction.open_table(EXPIRY)?,
            arrivals: transaction.open_table(ARRIVALS)?,
            events: transaction.open_table(EVENTS)?,
            claims: transaction.open_table(CLAIMS)?,
        })
    }

    pub(crate) fn number(&self, name: &'static str) -> Result<u64, FileLogError> {
        Ok(self.head.get(name)?.map_or(0, |number| number.value()))
    }

    pub(crate) fn set_number(
        &mut self,
        name: &'static str,
        number: u64,
    ) -> Result<(), FileLogError> {
        self.head.insert(name, number)?;
        Ok(())
    }

    pub(crate) fn row(&self, id: &str) -> Result<Option<Row>, FileLogError> {
        let columns = self.streams.get(id)?;
        columns
            .map(|columns| Row::decode(columns.value()))
            .transpose()
    }

    pub(crate) fn set_row(&mut self, id: &StreamId, row: &Row) -> Result<(), FileLogError> {
        self.streams.insert(id.as_str(), row.columns())?;
        Ok(())
    }

    /// The number of a stream's last event in `events`.
    pub(crate) fn saved(&self, number: u64) -> Result<Seq, FileLogError> {
        let mut rows = self.events.range((number, 0)..=(number, u64::MAX))?;
        let last = rows.next_back().transpose()?;
        let Some((_, bytes)) = last else {
            return Ok(Seq::START);
        };
        Ok(decode(bytes.value())?.last())
    }

    /// Writes records after those that `events` contains. Returns their bytes.
    pub(crate) fn save(&mut self, number: u64, records: &[Record]) -> Result<u64, FileLogError> {
        let mut bytes = 0;
        for record in records {
            let key = (number, record.first().0);
            self.events.insert(key, &**record.encoded())?;
            bytes += record.encoded().len() as u64;
        }
        Ok(bytes)
    }

    /// Removes the records of a stream from `events`.
    pub(crate) fn remove_events(&mut self, number: u64) -> Result<(), FileLogError> {
        let all = (number, 0)..=(number, u64::MAX);
        self.events.retain_in(all, |_, _| false)?;
        Ok(())
    }
}

/// A record of the file, copied.
pub(crate) fn decode(bytes: &[u8]) -> Result<Record, FileLogError> {
    Ok(Record::decode(bytes.to_vec().into())?)
}

/// The rows of `arrivals`: for each record the number of its stream, its length, and its bytes.
pub(crate) mod arrivals {
    use unbraid_log::Record;

    use super::decode;
    use crate::error::FileLogError;

    pub(crate) fn push(number: u64, record: &Record, bytes: &mut Vec<u8>) {
        let encoded = record.encoded();
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(&(encoded.len() as u64).to_le_bytes());
        bytes.extend_from_slice(encoded);
    }

    pub(crate) fn decode_all(mut bytes: &[u8]) -> Result<Vec<(u64, Record)>, FileLogError> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let (number, record) = next(&mut bytes).ok_or_else(|| FileLogError::Damaged {
                reason: "the length of a record".to_owned(),
            })?;
            records.push((number, decode(record)?));
        }
        Ok(records)
    }

    fn next<'a>(bytes: &mut &'a [u8]) -> Option<(u64, &'a [u8])> {
        let number = next_number(bytes)?;
        let length = usize::try_from(next_number(bytes)?).ok()?;
        let (record, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some((number, record))
    }

    fn next_number(bytes: &mut &[u8]) -> Option<u64> {
        let (number, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u64::from_le_bytes(*number))
    }
}
