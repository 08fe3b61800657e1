//! The rest of a stream that has ended: how much of it is read, and for how long.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
};

use futures::stream;
use unbraid_core::limits::MAX_BYTES_AFTER_DONE;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use crate::Completions;

const READ: usize = 1000;

/// The number of reads that are taken from a source with this many after `[DONE]`.
async fn reads_after_done(available: usize) -> usize {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let mut first = Some(content(0, "a") + &finish(0, "stop") + DONE);
    let source = stream::poll_fn(move |_| {
        if let Some(first) = first.take() {
            return Poll::Ready(Some(Ok::<_, io::Error>(first)));
        }
        let read = counter.fetch_add(1, Ordering::Relaxed);
        Poll::Ready((read < available).then(|| Ok(" ".repeat(READ))))
    });
    let completions = Completions::from_byte_stream(source);
    assert!(completions.closed().await.is_ok());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    taken.load(Ordering::Relaxed)
}

#[tokio::test]
async fn s26_the_rest_of_a_stream_is_read_up_to_a_limit_in_bytes() {
    assert_eq!(
        reads_after_done(10).await,
        11,
        "the end of the source is read, too"
    );
    let limit = MAX_BYTES_AFTER_DONE / READ;
    let read = reads_after_done(10 * limit).await;
    assert!(
        read > limit * 3 / 4 && read <= limit + 1,
        "{read} of {limit} reads"
    );
}

#[test]
fn without_timers_the_reader_does_not_wait_for_the_rest_of_a_stream() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let steps = [
            bytes(content(0, "a") + &finish(0, "stop") + DONE),
            Step::Stall,
        ];
        let source = Script::new(steps);
        let probe = source.probe();
        let completions = Completions::from_byte_stream(source);
        assert!(completions.closed().await.is_ok());
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(probe.closed());
    });
}
