//! Readers of a journal, and what it refuses.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use futures::{FutureExt, StreamExt};
use proptest::prelude::*;
use unbraid_core::ChoiceIndex;

use super::Journal;
use crate::{Appended, End, Event, LogError, Record, RecordBuilder, Seq, StreamEnd};

fn record(first: u64, texts: &[&str]) -> Record {
    let mut builder = RecordBuilder::new(Seq(first));
    for text in texts {
        builder.push(&Event::chunk(&[ChoiceIndex(0)], text.as_bytes()));
    }
    builder.take().expect("there are events")
}

/// The payloads after a cursor, by their numbers.
fn read(journal: &Journal, after: Seq) -> Vec<(u64, Vec<u8>)> {
    let mut reader = journal.reader(after);
    let mut events = Vec::new();
    while let Ok(batch) = reader.read(1000)
        && !batch.records.is_empty()
    {
        for (seq, event) in batch.records.iter().flat_map(Record::events) {
            if seq > after {
                events.push((seq.0, event.payload().unwrap_or_default().to_vec()));
            }
        }
    }
    events
}

/// deer-flow 4426: a gap that is skipped silently.
#[test]
fn an_equal_record_is_a_duplicate_and_another_one_is_fenced() {
    let journal = Journal::new();
    assert_eq!(journal.append(&record(1, &["a", "b"])), Ok(Appended::New));
    assert_eq!(
        journal.append(&record(1, &["a", "b"])),
        Ok(Appended::Duplicate)
    );
    assert_eq!(journal.append(&record(2, &["b"])), Ok(Appended::Duplicate));
    assert_eq!(
        journal.append(&record(1, &["a", "x"])),
        Err(LogError::Fenced { first: Seq(1) })
    );
    assert_eq!(
        journal.append(&record(4, &["d"])),
        Err(LogError::Gap {
            tail: Seq(2),
            first: Seq(4)
        })
    );
    // After a repair, records may overlap.
    assert_eq!(journal.append(&record(2, &["b", "c"])), Ok(Appended::New));
    assert_eq!(
        journal.append(&record(3, &["x", "d"])),
        Err(LogError::Fenced { first: Seq(3) })
    );
    let events = [(1, b"a".to_vec()), (2, b"b".to_vec()), (3, b"c".to_vec())];
    assert_eq!(read(&journal, Seq::START), events);
    journal.seal(StreamEnd::new(End::Finished));
    assert_eq!(journal.append(&record(4, &["d"])), Err(LogError::Sealed));
    assert_eq!(
        journal.append(&record(3, &["c"])),
        Ok(Appended::Duplicate),
        "it was acknowledged"
    );
}

#[test]
fn the_first_end_is_kept() {
    let journal = Journal::new();
    assert!(journal.seal(StreamEnd::new(End::ProducerLost)));
    assert!(!journal.seal(StreamEnd::new(End::Finished)) && !journal.fail(LogError::Expired));
    assert_eq!(journal.end(), Some(Ok(StreamEnd::new(End::ProducerLost))));
}

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn every_waiting_reader_is_woken_by_an_append_and_by_the_end() {
    let journal = Journal::new();
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    let waker = Waker::from(Arc::clone(&wakes));
    let mut cx = Context::from_waker(&waker);
    let mut readers: Vec<_> = (0..64).map(|_| journal.reader(Seq::START)).collect();
    for reader in &mut readers {
        assert!(reader.poll_batch(&mut cx, 1000).is_pending());
    }
    journal.append(&record(1, &["a"])).unwrap();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 64);
    let payloads: Vec<_> = readers
        .iter_mut()
        .map(|reader| reader.read(1000).unwrap().records.remove(0))
        .map(|record| record.encoded().as_ptr())
        .collect();
    assert!(
        payloads.iter().all(|payload| *payload == payloads[0]),
        "the bytes are shared"
    );
    for reader in &mut readers {
        assert!(reader.poll_batch(&mut cx, 1000).is_pending());
    }
    journal.seal(StreamEnd::new(End::Finished));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 128);
    drop(readers);
    assert!(journal.state().notify().is_empty());
}

/// A reader that has read everything looks for changes without the lock. Each event is appended as soon as the one before was read, so
/// while the reader looks once more or begins to wait, and nothing but its own wake-up brings it.
#[test]
fn a_reader_in_another_thread_misses_nothing() {
    const EVENTS: u64 = 20_000;
    let journal = Journal::new();
    let mut reader = journal.reader(Seq::START);
    let (acknowledge, read) = mpsc::channel();
    let reads = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            loop {
                let batch = reader.next_batch(100).await.unwrap();
                // The writer has failed if it has gone.
                if acknowledge.send(reader.next_seq()).is_err() || batch.end.is_some() {
                    return;
                }
            }
        });
    });
    let next = || read.recv_timeout(Duration::from_secs(30));
    for seq in 1..=EVENTS {
        journal.append(&record(seq, &["a"])).unwrap();
        assert_eq!(next(), Ok(Seq(seq + 1)));
    }
    journal.seal(StreamEnd::new(End::Finished));
    assert_eq!(next(), Ok(Seq(EVENTS + 1)));
    reads.join().unwrap();
}

#[test]
fn a_dropped_reader_frees_its_place() {
    let journal = Journal::new();
    for _ in 0..3 {
        drop(journal.reader(Seq::START));
    }
    assert_eq!(journal.state().reader_count(), 0);
}

#[test]
fn a_stream_yields_one_record_at_a_time_and_one_error() {
    let journal = Journal::new();
    for seq in 1..=200 {
        journal.append(&record(seq, &["a"])).unwrap();
    }
    let mut reader = journal.reader(Seq(150));
    let first = reader.next().now_or_never().flatten().unwrap().unwrap();
    assert!(first.first() <= Seq(151) && first.last() >= Seq(151));
    let mut next = first.last().next();
    while let Some(Some(Ok(record))) = reader.next().now_or_never() {
        assert_eq!(record.first(), next);
        next = record.last().next();
    }
    assert_eq!(next, Seq(201));
    journal.fail(LogError::Expired);
    assert_eq!(
        reader.next().now_or_never(),
        Some(Some(Err(LogError::Expired)))
    );
    assert_eq!(reader.next().now_or_never(), Some(None));
}

#[test]
fn a_stream_that_follows_every_append_repeats_no_event_of_a_merged_record() {
    let journal = Journal::new();
    let mut reader = journal.reader(Seq::START);
    for seq in 1..=200 {
        journal.append(&record(seq, &["a"])).unwrap();
        let read = reader.next().now_or_never().flatten().unwrap().unwrap();
        assert_eq!((read.first(), read.last()), (Seq(seq), Seq(seq)));
    }
}

#[test]
fn a_check_says_what_an_append_would_add_and_changes_nothing() {
    let journal = Journal::new();
    journal.append(&record(1, &["a", "b"])).unwrap();
    assert_eq!(
        journal.check(&record(3, &["c"])),
        Ok(Some(record(3, &["c"])))
    );
    assert_eq!(
        journal.check(&record(2, &["b", "c"])),
        Ok(Some(record(3, &["c"])))
    );
    assert_eq!(journal.check(&record(1, &["a"])), Ok(None));
    let fenced = LogError::Fenced { first: Seq(2) };
    assert_eq!(journal.check(&record(2, &["x", "c"])), Err(fenced));
    let gap = LogError::Gap {
        tail: Seq(2),
        first: Seq(4),
    };
    assert_eq!(journal.check(&record(4, &["d"])), Err(gap));
    assert_eq!(journal.tail(), Seq(2));
    journal.seal(StreamEnd::new(End::Finished));
    assert_eq!(journal.check(&record(3, &["c"])), Err(LogError::Sealed));
}

#[test]
fn a_failed_journal_yields_its_events_first() {
    let journal = Journal::new();
    journal.append(&record(1, &["a"])).unwrap();
    journal.fail(LogError::unavailable("the broker is gone"));
    let mut reader = journal.reader(Seq::START);
    assert_eq!(reader.read(1000).unwrap().records.len(), 1);
    assert!(reader.read(1000).unwrap_err().is_temporary());
}

#[test]
fn a_delta_takes_few_bytes_beside_its_payload() {
    let journal = Journal::new();
    let payload = "x".repeat(300);
    for seq in 1..=2000 {
        journal.append(&record(seq, &[&payload])).unwrap();
    }
    let records = journal.records(Seq::START);
    assert!(records.len() < 2000 / 30, "{} records", records.len());
    let merged: usize = records.iter().map(|record| record.encoded().len()).sum();
    let overhead = merged - 2000 * payload.len() + records.len() * 64;
    assert!(overhead < 2000 * 12, "{overhead} bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn readers_on_other_threads_miss_nothing() {
    let journal = Journal::new();
    let readers: Vec<_> = (0..8)
        .map(|start| {
            let mut reader = journal.reader(Seq(start));
            tokio::spawn(async move {
                let mut next = reader.next_seq();
                loop {
                    let batch = reader.next_batch(500).await.unwrap();
                    for (seq, _) in batch.records.iter().flat_map(Record::events) {
                        if seq >= next {
                            assert_eq!(seq, next);
                            next = next.next();
                        }
                    }
                    if batch.end.is_some() {
                        return next;
                    }
                }
            })
        })
        .collect();
    for seq in 1..=5000 {
        journal.append(&record(seq, &["abc"])).unwrap();
        if seq % 64 == 0 {
            tokio::task::yield_now().await;
        }
    }
    journal.seal(StreamEnd::new(End::Finished));
    for reader in readers {
        assert_eq!(reader.await.unwrap(), Seq(5001));
    }
}

proptest! {
    /// Whatever the records are, and wherever a reader begins, it gets each later event once.
    #[test]
    fn every_cursor_gets_the_rest(
        sizes in prop::collection::vec((1..4_usize, prop_oneof![8 => 0..400_usize, 1 => 10_000..20_000_usize]), 1..60),
        after in 0..200_u64,
        max in 0..3000_usize,
    ) {
        let journal = Journal::new();
        let mut all = Vec::new();
        let mut builder = RecordBuilder::new(Seq(1));
        let mut live = journal.reader(Seq::START);
        let mut followed = 0;
        for (count, size) in sizes {
            for _ in 0..count {
                let payload = vec![b'a' + (all.len() % 26) as u8; size];
                let seq = builder.push(&Event::chunk(&[ChoiceIndex(0)], &payload));
                all.push((seq.0, payload));
            }
            journal.append(&builder.take().unwrap()).unwrap();
            for record in live.read(max).unwrap().records {
                followed += record.events().filter(|(seq, _)| seq.0 > followed).count() as u64;
                prop_assert_eq!(followed, record.last().0);
            }
        }
        let rest: Vec<_> = all.iter().filter(|(seq, _)| *seq > after).cloned().collect();
        prop_assert_eq!(read(&journal, Seq(after)), rest);
        journal.seal(StreamEnd::new(End::Finished));
        let mut last = journal.reader(Seq(after));
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            match last.poll_batch(&mut cx, max) {
                Poll::Ready(Ok(batch)) if batch.end.is_some() => break,
                Poll::Ready(Ok(batch)) => prop_assert!(!batch.records.is_empty()),
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }
}

struct PanickingWaker;

impl Wake for PanickingWaker {
    fn wake(self: Arc<Self>) {
        panic!("on purpose");
    }
}

#[test]
fn a_waker_that_panics_leaves_no_other_reader_asleep_and_does_not_fail_the_append() {
    let journal = Journal::new();
    let mut readers = [Seq::START, Seq::START, Seq::START].map(|after| journal.reader(after));
    let (panics, counts) = (
        Waker::from(Arc::new(PanickingWaker)),
        Arc::new(Wakes(AtomicUsize::new(0))),
    );
    let counting = Waker::from(Arc::clone(&counts));
    for (reader, waker) in readers.iter_mut().zip([&counting, &panics, &counting]) {
        assert!(
            reader
                .poll_batch(&mut Context::from_waker(waker), 1)
                .is_pending()
        );
    }
    assert_eq!(journal.append(&record(1, &["a"])), Ok(Appended::New));
    assert_eq!(counts.0.load(Ordering::Relaxed), 2);
}
