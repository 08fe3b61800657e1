//! The log in a file: the contract, restarts, kills, full disks and damaged files.
#![cfg(test)]

// The contract that every log has to pass.
mod contract;
// Streams that go before their time.
mod evicted;
// Files that are not logs, or not any more.
mod files;
// A process that is killed while it appends.
mod killed;
// What a stream is after its process has ended.
mod restart;
// A disk without room.
mod space;

use std::path::Path;

use futures::StreamExt;
use unbraid_core::ChoiceIndex;
use unbraid_log::{
    Event, LogError, LogStore, LogWriter, Meta, Record, RecordBuilder, Seq, StreamId,
};
use unbraid_log_file::{FileLog, FileOptions};

/// Opens a log that must open.
async fn open_log(path: &Path, options: FileOptions) -> FileLog {
    FileLog::open(path, options).await.unwrap()
}

/// Opens a stream with these meta data.
async fn open_stream(log: &FileLog) -> (StreamId, Box<dyn LogWriter>) {
    let id = StreamId::random().unwrap();
    let writer = log.open(&id, &meta()).await.unwrap();
    (id, writer)
}

fn meta() -> Meta {
    Meta::new("/v1/chat/completions", 1_790_000_000).with_n(2)
}

/// The payload of an event.
fn payload(seq: u64, length: usize) -> String {
    format!("{seq} {}", "x".repeat(length))
}

/// A record of the events with these numbers, with payloads of about this length.
fn record(first: u64, last: u64, length: usize) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for seq in first..=last {
        let payload = payload(seq, length);
        builder.push(&Event::chunk(&[ChoiceIndex(0)], payload.as_bytes()));
    }
    builder.take().unwrap()
}

/// Appends until the log answers, as a producer does.
async fn append(writer: &mut dyn LogWriter, record: &Record) -> Result<(), LogError> {
    loop {
        match writer.append(record).await {
            Err(error) if error.is_temporary() => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            result => return result.map(|_| ()),
        }
    }
}

/// The number of the last event of a stream that has ended, each of which is as it was appended.
async fn read_to_end(log: &FileLog, id: &StreamId, after: u64) -> u64 {
    let mut records = log.read(id, Seq(after));
    let mut next = after + 1;
    while let Some(record) = records.next().await {
        for (seq, event) in record.unwrap().events() {
            if seq.0 > after {
                assert_eq!(seq.0, next);
                let text = str::from_utf8(event.payload().unwrap()).unwrap();
                assert_eq!(text, payload(next, text.matches('x').count()));
                next += 1;
            }
        }
    }
    next - 1
}
