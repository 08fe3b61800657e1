//! Records of a log: any bytes are refused or read, and what was read is kept as it is.

use bytes::Bytes;
use unbraid_log::{
    Appended, Event, Journal, LogError, Meta, Record, RecordBuilder, Seq, StreamEnd,
};

/// Reads bytes as a record, a seal and meta data, and writes what they contain again.
///
/// # Panics
///
/// Panics if an invariant is violated.
pub fn records(input: &[u8]) {
    if let Ok(end) = StreamEnd::decode(input) {
        assert_eq!(StreamEnd::decode(&end.encode()), Ok(end));
    }
    if let Ok(meta) = Meta::decode(input) {
        assert_eq!(Meta::decode(&meta.encode()), Ok(meta));
    }
    match Record::decode(Bytes::copy_from_slice(input)) {
        Ok(record) => read(&record),
        Err(LogError::InvalidRecord { offset, .. }) => assert!(offset <= input.len()),
        Err(LogError::UnsupportedVersion { version }) => assert_eq!(input.first(), Some(&version)),
        Err(other) => panic!("{other}"),
    }
}

fn read(record: &Record) {
    let events: Vec<(Seq, Event<'_>)> = record.events().collect();
    assert_eq!(events.first().map(|(seq, _)| *seq), Some(record.first()));
    assert_eq!(events.last().map(|(seq, _)| *seq), Some(record.last()));
    let mut builder = RecordBuilder::new(record.first());
    for (seq, event) in &events {
        assert_eq!(builder.push(event), *seq, "one event stays one event");
    }
    let written = builder.take().expect("a record has events");
    assert!(written.events().eq(events.iter().copied()), "written again");
    if record.first() == Seq(1) {
        follow(record, &events);
    }
}

/// A journal of one record for each event gives every reader the same events, whatever its cursor.
fn follow(record: &Record, events: &[(Seq, Event<'_>)]) {
    let journal = Journal::new();
    for (seq, event) in events {
        let mut builder = RecordBuilder::new(*seq);
        builder.push(event);
        let record = builder.take().expect("there is an event");
        assert_eq!(journal.append(&record), Ok(Appended::New));
    }
    assert_eq!(journal.append(record), Ok(Appended::Duplicate));
    for after in [0, events.len() as u64 / 2, events.len() as u64] {
        let mut reader = journal.reader(Seq(after));
        let first = reader.next_seq();
        assert!(first <= Seq(after).next(), "no event is skipped");
        let batch = reader.read(usize::MAX).expect("the journal is open");
        let read = batch.records.iter().flat_map(Record::events);
        let read = read.filter(|(seq, _)| *seq >= first);
        let expected = events.iter().copied().filter(|(seq, _)| *seq >= first);
        assert!(read.eq(expected), "after {after}");
    }
}
