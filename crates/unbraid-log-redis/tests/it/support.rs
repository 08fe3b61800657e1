//! What the tests share.

use std::{sync::Arc, time::Duration};

use futures::StreamExt;
use tokio::time::timeout;
use unbraid_log::{
    Appended, Event, LogError, LogStore, LogWriter, Meta, Record, RecordBuilder, Seq, StreamEnd,
    StreamId,
};
use unbraid_log_redis::{RedisLog, RedisOptions};
use unbraid_testkit::servers::RedisServer;

/// Much longer than anything takes, so that a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const LEASE: Duration = Duration::from_secs(2);

pub(crate) fn options() -> RedisOptions {
    RedisOptions::default()
        .with_ttl(Duration::from_secs(60))
        .with_lease(LEASE)
}

pub(crate) async fn connect(server: &RedisServer) -> RedisLog {
    let connected = RedisLog::connect(&server.url(), options()).await;
    connected.expect("the server runs")
}

/// Runs something that blocks: starting and stopping a server.
pub(crate) async fn blocking(
    server: &Arc<RedisServer>,
    action: impl FnOnce(&RedisServer) + Send + 'static,
) {
    let server = Arc::clone(server);
    let done = tokio::task::spawn_blocking(move || action(&server)).await;
    done.expect("the server obeys");
}

pub(crate) fn meta() -> Meta {
    Meta::new("/v1/chat/completions", 1_790_000_000).with_owner("alice".to_owned())
}

pub(crate) fn record(first: u64, last: u64) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for seq in first..=last {
        builder.push(&Event::chunk(
            &[0.into()],
            format!("event {seq}").as_bytes(),
        ));
    }
    builder.take().expect("there are events")
}

/// A new stream, and its writer.
pub(crate) async fn open(log: &RedisLog) -> (StreamId, Box<dyn LogWriter>) {
    let id = StreamId::random().expect("random numbers");
    let writer = log.open(&id, &meta()).await.expect("a new id");
    (id, writer)
}

/// Repeats an append until the server answers.
pub(crate) async fn append(
    writer: &mut dyn LogWriter,
    record: &Record,
) -> Result<Appended, LogError> {
    let repeated = async {
        loop {
            if let Some(answer) = answered(writer.append(record).await).await {
                return answer;
            }
        }
    };
    in_time(repeated).await
}

/// Repeats a seal until the server answers.
pub(crate) async fn seal(writer: &mut dyn LogWriter, end: &StreamEnd) -> Result<(), LogError> {
    let repeated = async {
        loop {
            if let Some(answer) = answered(writer.seal(end).await).await {
                return answer;
            }
        }
    };
    in_time(repeated).await
}

/// The answer to a call; `None`, after a pause, if the call is to be repeated.
async fn answered<T>(answer: Result<T, LogError>) -> Option<Result<T, LogError>> {
    if !matches!(&answer, Err(error) if error.is_temporary()) {
        return Some(answer);
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    None
}

async fn in_time<T>(repeated: impl Future<Output = T>) -> T {
    timeout(PATIENCE, repeated)
        .await
        .expect("the server answers")
}

/// Reads a sealed stream, and returns its numbers; after a temporary error it reads on.
pub(crate) async fn read_all(log: &dyn LogStore, id: &StreamId) -> Result<Vec<u64>, LogError> {
    let read = async {
        let mut numbers: Vec<u64> = Vec::new();
        loop {
            let after = numbers.last().copied().unwrap_or(0);
            let mut records = log.read(id, Seq(after));
            loop {
                match records.next().await {
                    Some(Ok(record)) => {
                        let events = record.events().filter(|(seq, _)| seq.0 > after);
                        for (seq, event) in events {
                            let expected = format!("event {seq}");
                            assert_eq!(event.payload(), Some(expected.as_bytes()));
                            numbers.push(seq.0);
                        }
                    }
                    Some(Err(error)) if error.is_temporary() => break,
                    Some(Err(error)) => return Err(error),
                    None => return Ok(numbers),
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(2 * PATIENCE, read).await.expect("the reader ends")
}
