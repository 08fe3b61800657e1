//! A server that is killed, stopped and emptied again and again, under a producer and readers.

use std::time::Duration;

use futures::{StreamExt, future::join_all};
use tokio::time::{sleep, timeout};
use unbraid_log::{End, Journal, LogError, LogStore, LogWriter, Record, Seq, StreamEnd, StreamId};
use unbraid_log_nats::NatsLog;

use crate::support::{connect, meta, new_id, record, server};

const INTERRUPTIONS: usize = 12;

/// Appends a record, and first what the engine has lost.
async fn append(writer: &mut dyn LogWriter, produced: &Journal, record: &Record) {
    produced.append(record).unwrap();
    let mut queue = vec![record.clone()];
    while let Some(next) = queue.first() {
        match writer.append(next).await {
            Ok(_) => {
                queue.remove(0);
            }
            Err(LogError::Gap { tail, .. }) => queue = produced.records(tail),
            Err(error) => {
                assert!(error.is_temporary(), "{error}");
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

async fn seal(writer: &mut dyn LogWriter, produced: &Journal) {
    loop {
        match writer.seal(&StreamEnd::new(End::Finished)).await {
            Ok(()) => return,
            Err(LogError::Gap { tail, .. }) => {
                for lost in produced.records(tail) {
                    // The next seal reports what is still missing.
                    let _appended = writer.append(&lost).await;
                }
            }
            Err(error) => {
                assert!(error.is_temporary(), "{error}");
                sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

/// Reads to the end, and returns the number of the last event. Nothing may be missing, changed, or read twice.
async fn read(log: NatsLog, id: StreamId) -> u64 {
    let mut seq = 0;
    loop {
        let mut records = log.read(&id, Seq(seq));
        loop {
            match records.next().await {
                Some(Ok(read)) => {
                    let expected = record(read.first().0, read.last().0);
                    assert!(read.events().eq(expected.events()), "{read:?}");
                    assert!(
                        read.first().0 <= seq + 1 && read.last().0 > seq,
                        "{read:?} after {seq}"
                    );
                    seq = read.last().0;
                }
                // Until the producer has repaired an emptied server, it does not know the stream.
                Some(Err(LogError::Unknown)) => break,
                Some(Err(error)) => {
                    assert!(error.is_temporary(), "{error}");
                    break;
                }
                None => return seq,
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_get_everything_once_from_a_server_that_is_killed_and_emptied() {
    let Some(server) = server().await else {
        return;
    };
    let log = connect(&server).await;
    let id = new_id();
    let mut writer = log.open(&id, &meta()).await.unwrap();
    let mut readers = Vec::new();
    for _ in 0..3 {
        readers.push(tokio::spawn(read(connect(&server).await, id.clone())));
    }
    let produced = Journal::new();
    let (stop, stopped) = tokio::sync::oneshot::channel();
    let produce = async {
        let mut stopped = stopped;
        let mut seq = 0;
        while stopped.try_recv().is_err() {
            let last = seq + 1 + seq % 3;
            append(&mut *writer, &produced, &record(seq + 1, last)).await;
            seq = last;
            sleep(Duration::from_millis(5)).await;
        }
        seal(&mut *writer, &produced).await;
        seq
    };
    let interrupt = async {
        for turn in 0..INTERRUPTIONS {
            sleep(Duration::from_millis(150 + 70 * (turn as u64 % 5))).await;
            if turn % 3 == 2 {
                server.empty().await;
            } else {
                server.kill();
                sleep(Duration::from_millis(100 * (turn as u64 % 4))).await;
                server.restart().await;
            }
        }
        stop.send(()).unwrap();
    };
    let both = futures::future::join(produce, interrupt);
    let (produced, ()) = timeout(Duration::from_secs(90), both)
        .await
        .expect("it hangs");
    let read = timeout(Duration::from_secs(20), join_all(readers)).await;
    for read in read.expect("a reader hangs") {
        assert_eq!(read.unwrap(), produced);
    }
}
