use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{WINDOW_BYTES, Window};
use crate::{
    Batch, End, Event, LogError, LogStore, LogWriter, MemoryLog, MemoryOptions, Meta,
    RecordBuilder, Seq, StreamEnd, StreamId,
};

const LEASE: Duration = Duration::from_secs(15);
const READ: usize = 64 * 1024;

async fn stream(sizes: &[usize]) -> (Arc<dyn LogStore>, StreamId, Box<dyn LogWriter>) {
    let log: Arc<dyn LogStore> = Arc::new(MemoryLog::new(MemoryOptions::default()));
    let id = StreamId::random().unwrap();
    let meta = Meta::new("/v1/completions", 1);
    let mut writer = log.open(&id, &meta).await.unwrap();
    for (seq, size) in (1..).zip(sizes) {
        let mut builder = RecordBuilder::new(Seq(seq));
        builder.push(&Event::chunk(&[0.into()], &vec![b'x'; *size]));
        writer.append(&builder.take().unwrap()).await.unwrap();
    }
    (log, id, writer)
}

fn poll(window: &mut Window) -> Poll<Result<Batch, LogError>> {
    window.poll_batch(&mut Context::from_waker(Waker::noop()), READ)
}

/// Lets the task read as much as it wants to.
async fn rest() {
    tokio::time::sleep(Duration::from_millis(100)).await;
}

#[tokio::test(start_paused = true)]
async fn a_log_waits_for_room_and_then_continues() {
    let sizes = [20_000; 100];
    let (log, id, mut writer) = stream(&sizes).await;
    writer.seal(&StreamEnd::new(End::Finished)).await.unwrap();
    let mut window = Window::start(log, id, LEASE);
    let mut next = Seq(1);
    loop {
        rest().await;
        let waiting = window.items.len();
        assert!(waiting <= WINDOW_BYTES / 20_000, "{waiting}");
        let Poll::Ready(Ok(batch)) = poll(&mut window) else {
            panic!("there is more");
        };
        for record in &batch.records {
            assert_eq!(record.first(), next);
            next = record.last().next();
        }
        assert!(batch.records.len() <= READ / 20_000 + 1);
        if let Some(end) = batch.end {
            assert_eq!(end.end, End::Finished);
            break;
        }
    }
    assert_eq!(next, Seq(101));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_longer_than_the_window_waits_until_it_is_alone() {
    let sizes = [100, 500_000, 100, 500_000];
    let (log, id, _writer) = stream(&sizes).await;
    let mut window = Window::start(log, id, LEASE);
    for (seq, waiting) in (1..).zip([1, 1, 1, 1]) {
        rest().await;
        assert_eq!(window.items.len(), waiting, "before record {seq}");
        let Poll::Ready(Ok(batch)) = poll(&mut window) else {
            panic!("there is more");
        };
        assert_eq!(batch.records[0].first(), Seq(seq));
        assert_eq!(batch.records.len(), 1);
    }
    rest().await;
    assert!(poll(&mut window).is_pending());
}

#[tokio::test(start_paused = true)]
async fn an_error_comes_after_the_records_before_it() {
    let (log, id, _writer) = stream(&[100, 100]).await;
    let mut window = Window::start(Arc::clone(&log), id.clone(), LEASE);
    rest().await;
    log.erase(&id).await.unwrap();
    rest().await;
    let Poll::Ready(Ok(batch)) = poll(&mut window) else {
        panic!("there are records");
    };
    assert_eq!((batch.records.len(), batch.end), (2, None));
    assert_eq!(poll(&mut window), Poll::Ready(Err(LogError::Expired)));
    // A task that is gone is an error, too, and not silence.
    assert!(matches!(
        poll(&mut window),
        Poll::Ready(Err(LogError::Unavailable { .. }))
    ));
}
