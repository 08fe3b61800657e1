//! Opening the file, and what a process that was killed has left in it.

use std::{
    collections::{HashMap, VecDeque},
    fs::{self, File, OpenOptions},
    io,
    path::Path,
    sync::{Arc, PoisonError},
};

use redb::{Builder, Database, DatabaseError, ReadableDatabase, ReadableTable};
use unbraid_log::{End, Journal, LogError, Record, Seq, StreamEnd, StreamId};

use super::{
    Book, RETRY, Worker,
    arrivals::{Arrivals, cut},
};
use crate::{
    FileLogError,
    backend::Backend,
    caught::catch,
    clock::now,
    job::Effect,
    shared::{Running, Shared},
    tables::{
        FORMAT, HEAD_BYTES, HEAD_CLOCK, HEAD_FORMAT, HEAD_NUMBER, RowState, Tables, arrivals,
        check_format, decode,
    },
};

/// A file up to this length is read completely when it is opened, to find damage. A longer one is read completely only after
/// its process was killed: it takes about a second for each GiB.
const ALWAYS_CHECKED: u64 = 1024 * 1024 * 1024;

/// A file of this length is compacted when it is opened and contains less than a quarter of it.
const COMPACTED: u64 = 64 * 1024 * 1024;

impl Worker {
    /// Opens the file, unless it is open, and seals what an earlier process has left running.
    pub(super) fn open(&mut self) -> Result<(), FileLogError> {
        if self.shared.is_open() {
            return Ok(());
        }
        match catch(|| self.try_open()) {
            Ok((database, effects)) => {
                *self
                    .shared
                    .database
                    .write()
                    .unwrap_or_else(PoisonError::into_inner) = Some(database);
                self.retry_at = Some(now());
                effects.into_iter().for_each(|effect| self.publish(effect));
                Ok(())
            }
            Err(fault) => {
                self.shared.set_fault(fault.clone());
                self.retry_at = self.retry_at.map(|_| now() + RETRY);
                Err(fault)
            }
        }
    }

    fn try_open(&mut self) -> Result<(Database, Vec<Effect>), FileLogError> {
        let mut database = open_database(&self.shared)?;
        let effects = self.load(&database)?;
        let length = fs::metadata(&self.shared.path)?.len();
        if length > COMPACTED && self.book.bytes < length / 4 {
            database.compact()?;
        }
        Ok((database, effects))
    }

    /// Reads what the thread has to know, and seals the streams without a producer. If there are none, nothing is written: the
    /// disk may be full.
    fn load(&mut self, database: &Database) -> Result<Vec<Effect>, FileLogError> {
        let transaction = database.begin_write()?;
        let mut tables = Tables::open(&transaction)?;
        let is_first = self.shared.start_clock(tables.number(HEAD_CLOCK)?);
        let mut arrived = read_arrivals(&tables)?;
        let (last_number, bytes) = (tables.number(HEAD_NUMBER)?, tables.number(HEAD_BYTES)?);
        self.book = Book {
            last_number,
            bytes,
            evict_from: (0, 0),
            arrivals: Arrivals::new(std::mem::take(&mut arrived.rows)),
            pending_claims: std::mem::take(&mut self.book.pending_claims),
            written_head: Some((last_number, bytes)),
        };
        let mut has_changed = self.prepare(&mut tables, is_first)?;
        let mut known = self.shared.all_running();
        let mut effects = Vec::new();
        for (number, id) in running(&tables)? {
            let arrived = arrived.streams.remove(&number).unwrap_or_default();
            match known.iter().position(|stream| stream.id == id) {
                Some(position) => {
                    let stream = known.swap_remove(position);
                    self.continue_stream(&tables, &stream, number, &arrived)?;
                }
                None => {
                    self.seal_left(&mut tables, &id, number, &arrived.records)?;
                    has_changed = true;
                }
            }
        }
        for stream in known {
            effects.extend(self.restore(&mut tables, stream)?);
            has_changed = true;
        }
        if has_changed {
            self.write_head(&mut tables)?;
            drop(tables);
            transaction.commit()?;
        }
        self.publish_bytes();
        Ok(effects)
    }

    /// Writes the format into a new file, and frees the claims of an earlier process. Returns whether anything has changed.
    fn prepare(&self, tables: &mut Tables<'_>, is_first: bool) -> Result<bool, FileLogError> {
        if tables.number(HEAD_FORMAT)? != FORMAT {
            tables.set_number(HEAD_FORMAT, FORMAT)?;
            return Ok(true);
        }
        if is_first {
            // Who held them is gone.
            tables.claims.retain(|_, (_, _, is_kept)| is_kept)?;
        }
        Ok(is_first)
    }

    /// Seals a stream whose producer is gone with its process. Its lease needs no time to expire: the lock of the file says
    /// that no other process can hold it.
    fn seal_left(
        &mut self,
        tables: &mut Tables<'_>,
        id: &StreamId,
        number: u64,
        arrived: &[Record],
    ) -> Result<(), FileLogError> {
        let Some(row) = tables.row(id.as_str())? else {
            tables.running.remove(number)?;
            return Ok(());
        };
        let saved = tables.saved(number)?;
        let rows = contiguous(arrived, saved)?;
        tables.save(number, &rows)?;
        let tail = rows.last().map_or(saved, Record::last);
        let bytes = saved_bytes(tables, number)?;
        let end = StreamEnd::new(End::ProducerLost);
        self.set_ended(tables, id, row, &end, tail, bytes)?;
        Ok(())
    }

    /// Continues a stream of this process with what the file contains of it.
    fn continue_stream(
        &mut self,
        tables: &Tables<'_>,
        stream: &Arc<Running>,
        number: u64,
        arrived: &Arrived,
    ) -> Result<(), FileLogError> {
        let journal = stream.journal();
        let saved = tables.saved(number)?;
        let tail = arrived.records.last().map_or(saved, Record::last);
        if journal.tail() != tail || stream.number() != number {
            let stored = read_journal(tables, number)?;
            for record in &arrived.records {
                stored.append(record)?;
            }
            // An append may have been committed without an answer. Everything else is another file.
            let records = stored.records(Seq::START);
            let is_same = tail >= journal.tail()
                && records.iter().all(|record| journal.append(record).is_ok());
            if is_same {
                stream.set_number(number);
            } else {
                stream.replace(number, stored);
            }
        }
        let bytes = saved_bytes(tables, number)?;
        let arrivals = &mut self.book.arrivals;
        arrivals.add_existing(stream, saved, bytes, arrived.first_row);
        Ok(())
    }

    /// Continues a stream of this process that the file does not contain as running.
    fn restore(
        &mut self,
        tables: &mut Tables<'_>,
        stream: Arc<Running>,
    ) -> Result<Option<Effect>, FileLogError> {
        let end = match tables.row(stream.id.as_str())?.map(|row| row.state) {
            Some(RowState::Ended { end, .. }) => Ok(StreamEnd::decode(&end)?),
            Some(RowState::Expired { .. }) => Err(LogError::Expired),
            Some(RowState::Running { .. }) => Err(LogError::unavailable("the file is damaged")),
            // The file has lost it. The producer appends everything again.
            None => {
                let number = self.add_running(tables, &stream.id, &stream.meta)?;
                stream.replace(number, Journal::new());
                return Ok(None);
            }
        };
        Ok(Some(Effect::Ended {
            stream,
            end,
            then: Box::new(Effect::None),
        }))
    }
}

/// Opens a file, or creates it. Nothing is written to a file of another program or a later version.
fn open_database(shared: &Shared) -> Result<Database, FileLogError> {
    let path = &shared.path;
    if !path.try_exists()? {
        create(shared)?;
    }
    let file = open_file(path)?;
    let length = file.metadata()?.len();
    if length > 0 {
        match Builder::new().open_read_only(path) {
            Ok(database) => {
                check_format(&database.begin_read()?)?;
            }
            // Its process was killed: it has to be repaired before it can be read.
            Err(DatabaseError::RepairAborted) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let database = builder(shared)
        .set_check_integrity_on_open(length <= ALWAYS_CHECKED)
        .create_with_backend(Backend::new(file, shared.options.sync)?)?;
    check_format(&database.begin_read()?)?;
    Ok(database)
}

fn builder(shared: &Shared) -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(shared.options.cache_bytes);
    builder
}

fn open_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(path)
}

/// Creates a file under another name first: a process that is killed meanwhile leaves no half of one.
fn create(shared: &Shared) -> Result<(), FileLogError> {
    let mut name = shared.path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = shared.path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(true);
    // The answers are the users'.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&new)?;
    let created = builder(shared)
        .create_with_backend(Backend::new(file, shared.options.sync)?)
        .and_then(Database::close);
    let linked = match created {
        // Unlike a rename, this does not replace a file that another process has created.
        Ok(()) => fs::hard_link(&new, &shared.path).map_err(FileLogError::from),
        Err(error) => Err(error.into()),
    };
    let removed = fs::remove_file(&new);
    if linked.is_err() && !shared.path.try_exists()? {
        linked?;
    }
    Ok(removed?)
}

/// The records that did not move.
#[derive(Default)]
struct AllArrived {
    rows: VecDeque<(u64, usize)>,
    /// By the numbers of their streams.
    streams: HashMap<u64, Arrived>,
}

/// Those of one stream, and the row of the first one.
#[derive(Default)]
struct Arrived {
    first_row: Option<u64>,
    records: Vec<Record>,
}

fn read_arrivals(tables: &Tables<'_>) -> Result<AllArrived, FileLogError> {
    let mut all = AllArrived::default();
    for row in tables.arrivals.iter()? {
        let (key, row) = row?;
        all.rows.push_back((key.value(), row.value().len()));
        for (number, record) in arrivals::decode_all(row.value())? {
            let stream = all.streams.entry(number).or_default();
            stream.first_row.get_or_insert_with(|| key.value());
            stream.records.push(record);
        }
    }
    Ok(all)
}

fn running(tables: &Tables<'_>) -> Result<Vec<(u64, StreamId)>, FileLogError> {
    let mut running = Vec::new();
    for row in tables.running.iter()? {
        let (number, id) = row?;
        running.push((number.value(), id.value().parse()?));
    }
    Ok(running)
}

/// The events after a number, if none is missing.
fn contiguous(records: &[Record], tail: Seq) -> Result<Vec<Record>, FileLogError> {
    let mut next = tail.next();
    for record in records {
        if record.first() > next {
            return Err(FileLogError::Damaged {
                reason: format!("events {next} to {} are missing", record.first().previous()),
            });
        }
        next = next.max(record.last().next());
    }
    Ok(cut(records, tail))
}

fn read_journal(tables: &Tables<'_>, number: u64) -> Result<Journal, FileLogError> {
    let journal = Journal::new();
    for row in tables.events.range((number, 0)..=(number, u64::MAX))? {
        let (_, bytes) = row?;
        journal.append(&decode(bytes.value())?)?;
    }
    Ok(journal)
}

fn saved_bytes(tables: &Tables<'_>, number: u64) -> Result<u64, FileLogError> {
    let mut bytes = 0;
    for row in tables.events.range((number, 0)..=(number, u64::MAX))? {
        bytes += row?.1.value().len() as u64;
    }
    Ok(bytes)
}
