//! Reading streams that have ended from the file. Nothing here waits for a transaction that writes.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use redb::{Database, ReadTransaction, ReadableDatabase, TableError};
use tokio::{task::spawn_blocking, time::timeout};
use unbraid_log::{LogError, LogStatus, Meta, Record, Seq, StreamEnd, StreamId};

use crate::{
    caught::catch,
    clock::Clock,
    error::FileLogError,
    shared::Shared,
    tables::{EVENTS, Row, RowState, STREAMS},
};

/// No call waits longer for the disk.
pub(crate) const ANSWER: Duration = Duration::from_secs(1);

/// A reader copies about this many bytes at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// Calls a function with the file on a thread that may wait for the disk.
pub(crate) async fn read_file<T: Send + 'static>(
    shared: &Arc<Shared>,
    call: impl FnOnce(&Database) -> Result<T, FileLogError> + Send + 'static,
) -> Result<T, LogError> {
    let shared = Arc::clone(shared);
    let read = move || catch(|| shared.with_database(call));
    match timeout(ANSWER, spawn_blocking(read)).await {
        Ok(Ok(result)) => result.map_err(|error| error.to_log_error()),
        Ok(Err(_)) => Err(LogError::unavailable("the runtime shuts down")),
        Err(_) => Err(LogError::unavailable("the disk does not answer")),
    }
}

pub(crate) fn row(database: &Database, id: &StreamId) -> Result<Option<Row>, FileLogError> {
    row_in(&database.begin_read()?, id)
}

fn row_in(transaction: &ReadTransaction, id: &StreamId) -> Result<Option<Row>, FileLogError> {
    let streams = match transaction.open_table(STREAMS) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(None),
        streams => streams?,
    };
    let columns = streams.get(id.as_str())?;
    columns
        .map(|columns| Row::decode(columns.value()))
        .transpose()
}

/// The status of a stream that no producer of this process writes.
pub(crate) fn status_of(row: Option<Row>, clock: &Clock) -> Result<LogStatus, LogError> {
    let Some(row) = row else {
        return Ok(LogStatus::Unknown);
    };
    let meta = Arc::new(Meta::decode(&row.meta)?);
    let now = clock.now();
    Ok(match row.state {
        // It was sealed when the file was opened, or its opening is being committed.
        RowState::Running { .. } => LogStatus::Running {
            meta,
            tail: row.tail,
        },
        RowState::Ended { expires, end } if now < expires => LogStatus::Ended {
            meta,
            tail: row.tail,
            end: StreamEnd::decode(&end)?,
            expires: clock.wall(expires),
        },
        // Swept soon.
        RowState::Ended { .. } => LogStatus::Expired { meta },
        RowState::Expired { forgotten } if now < forgotten => LogStatus::Expired { meta },
        RowState::Expired { .. } => LogStatus::Unknown,
    })
}

/// What a reader of the file gets at once.
enum Chunk {
    /// Records, and whether they are the last.
    Records(Vec<Record>, bool),
    /// A producer of this process writes the stream.
    Running,
    Failed(LogError),
}

/// Reads a stream that has ended.
pub(crate) fn read_ended(
    shared: &Arc<Shared>,
    id: StreamId,
    after: Seq,
) -> BoxStream<'static, Result<Record, LogError>> {
    let state = Some((Arc::clone(shared), id, after));
    stream::unfold(state, |state| async move {
        let (shared, id, after) = state?;
        let (wanted, clock) = (id.clone(), shared.clock());
        let read = read_file(&shared, move |database| {
            chunk(database, &wanted, after, &clock)
        });
        match read.await {
            Ok(Chunk::Records(records, is_last)) => {
                let next = records.last().map_or(after, Record::last);
                let state = (!is_last).then_some((shared, id, next));
                Some((stream::iter(records.into_iter().map(Ok)).boxed(), state))
            }
            Ok(Chunk::Running) => {
                let records = match shared.running(&id) {
                    Some(stream) => stream.journal().reader(after).boxed(),
                    None => failed(LogError::unavailable("the stream is being opened")),
                };
                Some((records, None))
            }
            Ok(Chunk::Failed(error)) | Err(error) => Some((failed(error), None)),
        }
    })
    .flatten()
    .boxed()
}

fn failed(error: LogError) -> BoxStream<'static, Result<Record, LogError>> {
    stream::iter([Err(error)]).boxed()
}

/// The next records after a cursor.
fn chunk(
    database: &Database,
    id: &StreamId,
    after: Seq,
    clock: &Clock,
) -> Result<Chunk, FileLogError> {
    let transaction = database.begin_read()?;
    let Some(row) = row_in(&transaction, id)? else {
        return Ok(Chunk::Failed(LogError::Unknown));
    };
    match row.state {
        RowState::Ended { expires, .. } if clock.now() < expires => {}
        RowState::Running { .. } => return Ok(Chunk::Running),
        RowState::Expired { forgotten } if forgotten <= clock.now() => {
            return Ok(Chunk::Failed(LogError::Unknown));
        }
        RowState::Ended { .. } | RowState::Expired { .. } => {
            return Ok(Chunk::Failed(LogError::Expired));
        }
    }
    if after >= row.tail {
        return Ok(Chunk::Records(Vec::new(), true));
    }
    let bytes = rows(&transaction, row.number, after)?;
    let mut records = Vec::with_capacity(bytes.len());
    let mut next = after.next();
    for bytes in bytes {
        let record = match Record::decode(bytes.into()) {
            Ok(record) => record,
            Err(error) => return Ok(Chunk::Failed(error)),
        };
        let is_first = records.is_empty();
        let fits = record.first() == next || (is_first && record.first() < next);
        if !fits || record.last() < next {
            return Ok(Chunk::Failed(LogError::Gap {
                tail: next.previous(),
                first: record.first(),
            }));
        }
        next = record.last().next();
        records.push(record);
    }
    if records.is_empty() {
        return Ok(Chunk::Failed(LogError::Gap {
            tail: after,
            first: row.tail,
        }));
    }
    Ok(Chunk::Records(records, next > row.tail))
}

/// The rows that contain events after a cursor, until they have enough bytes.
fn rows(
    transaction: &ReadTransaction,
    number: u64,
    after: Seq,
) -> Result<Vec<Vec<u8>>, FileLogError> {
    let events = transaction.open_table(EVENTS)?;
    let before = events
        .range((number, 0)..=(number, after.next().0))?
        .next_back();
    let first = before
        .transpose()?
        .map_or((number, 0), |(key, _)| key.value());
    let mut rows = Vec::new();
    let mut bytes = 0;
    for row in events.range(first..=(number, u64::MAX))? {
        let (_, row) = row?;
        bytes += row.value().len();
        rows.push(row.value().to_vec());
        if bytes >= CHUNK_BYTES {
            break;
        }
    }
    Ok(rows)
}
