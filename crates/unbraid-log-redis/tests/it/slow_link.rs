//! Readers whose link needs longer for a page of long records than a call may take.

use futures::TryStreamExt;
use tokio::time::timeout;
use unbraid_log::{End, Event, LogStore, Record, RecordBuilder, Seq, StreamEnd};
use unbraid_log_redis::RedisLog;
use unbraid_testkit::servers::{Proxy, RedisServer};

use crate::support::{PATIENCE, append, connect, open, options, record};

const LENGTH: usize = 450_000;
const LAST: u64 = 9;

/// As long as records become that have waited for the server.
fn long_record(seq: u64) -> Record {
    let mut builder = RecordBuilder::new(Seq(seq));
    builder.push(&Event::chunk(&[0.into()], &vec![b'x'; LENGTH]));
    builder.take().unwrap()
}

#[tokio::test]
async fn long_records_reach_a_reader_over_a_slow_link() {
    let Some(server) = RedisServer::new() else {
        return;
    };
    let producer = connect(&server).await;
    let (id, mut writer) = open(&producer).await;
    append(&mut *writer, &record(1, 1)).await.unwrap();
    for seq in 2..=LAST {
        append(&mut *writer, &long_record(seq)).await.unwrap();
    }
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();

    let proxy = Proxy::start(format!("127.0.0.1:{}", server.port())).await;
    let url = format!("redis://{}", proxy.address());
    let reader = RedisLog::connect(&url, options()).await.unwrap();
    // A record takes half a second, and two of them longer than a call.
    proxy.throttle(Some(900_000));
    for after in [0, 4] {
        let records = reader.read(&id, Seq(after)).try_collect::<Vec<_>>();
        let records = timeout(PATIENCE, records).await.unwrap().unwrap();
        let first = records.iter().map(|record| record.first().0);
        assert_eq!(
            first.collect::<Vec<_>>(),
            (after + 1..=LAST).collect::<Vec<_>>()
        );
    }
}
