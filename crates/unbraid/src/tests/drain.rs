//! The rest of a stream that is over: how much of it is read, and how long that may take.

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

/// How many reads are taken of a source that has this many behind `[DONE]`.
async fn reads_after_done(most: usize) -> usize {
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    let mut first = Some(content(0, "a") + &finish(0, "stop") + DONE);
    let source = stream::poll_fn(move |_| {
        if let Some(first) = first.take() {
            return Poll::Ready(Some(Ok::<_, io::Error>(first)));
        }
        let read = counter.fetch_add(1, Ordering::Relaxed);
        Poll::Ready((read < most).then(|| Ok(" ".repeat(READ))))
    });
    let completions = Completions::from_byte_stream(source);
    assert!(completions.closed().await.is_ok());
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    taken.load(Ordering::Relaxed)
}

#[tokio::test]
async fn s26_the_rest_of_a_stream_is_read_to_its_end_within_a_bound_in_bytes() {
    assert_eq!(reads_after_done(10).await, 11, "the end is read, too");
    let most = MAX_BYTES_AFTER_DONE as usize / READ;
    let read = reads_after_done(10 * most).await;
    assert!(
        read > most * 3 / 4 && read <= most + 1,
        "{read} of {most} reads"
    );
}

#[test]
fn without_timers_the_rest_of_a_stream_is_not_waited_for() {
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
