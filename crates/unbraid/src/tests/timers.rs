//! Timers against sources that never return `Pending`.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures::stream;
use tokio::io::{AsyncRead, ReadBuf};
use unbraid_testkit::script::{content, finish};

use super::{outcome, soon};
use crate::{Completions, CompletionsBuilder, Source, StreamError, Timeout};

const SECOND: Duration = Duration::from_secs(1);

/// More empty reads than any timer of these tests needs. After them the source ends, so that a test fails instead of hanging.
const READS: usize = 4_000_000;

/// Returns these reads, then empty ones, and is never pending.
fn then_empty<const N: usize>(first: [String; N]) -> Source {
    let mut first = first.into_iter();
    let mut left = READS;
    Source::from_byte_stream(stream::poll_fn(move |_| {
        if let Some(read) = first.next() {
            return Poll::Ready(Some(Ok::<_, io::Error>(read)));
        }
        left -= 1;
        Poll::Ready((left > 0).then(|| Ok(String::new())))
    }))
}

/// Is interrupted at each read, and is never pending.
struct Interrupted(usize);

impl AsyncRead for Interrupted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.0 += 1;
        if self.0 > READS {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(Err(io::ErrorKind::Interrupted.into()))
    }
}

/// Returns an empty read at every other poll, and wakes its task at once at the others.
fn flickering() -> Source {
    let mut polls = 0;
    Source::from_byte_stream(stream::poll_fn(move |cx| {
        polls += 1;
        if polls > READS {
            return Poll::Ready(None);
        }
        if polls % 2 == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok::<_, io::Error>("")))
    }))
}

async fn times_out(builder: CompletionsBuilder, source: Source, expected: Timeout) {
    let completions = builder.merge([source]);
    let before = tokio::time::Instant::now();
    let closed = soon(completions.closed()).await;
    let Err(StreamError::TimedOut(over)) = closed else {
        panic!("{expected}: {closed:?}");
    };
    assert_eq!(over.timeout, expected);
    assert!(before.elapsed() < over.after + SECOND / 50, "{expected}");
}

#[tokio::test(start_paused = true)]
async fn l10_endless_empty_reads_defeat_no_timeout() {
    let builder = Completions::builder;
    let text = || then_empty([content(0, "a")]);
    times_out(
        builder().first_byte_timeout(SECOND),
        then_empty([]),
        Timeout::FirstByte,
    )
    .await;
    times_out(builder().idle_timeout(SECOND), text(), Timeout::Idle).await;
    times_out(builder().total_timeout(SECOND), text(), Timeout::Total).await;
}

#[tokio::test(start_paused = true)]
async fn l10_endlessly_interrupted_reads_defeat_no_timeout() {
    let builder = Completions::builder().first_byte_timeout(SECOND);
    let source = Source::from_reader(Interrupted(0));
    times_out(builder, source, Timeout::FirstByte).await;
}

#[tokio::test(start_paused = true)]
async fn l10_a_source_that_wakes_itself_with_empty_reads_defeats_no_timeout() {
    let builder = Completions::builder().first_byte_timeout(SECOND);
    times_out(builder, flickering(), Timeout::FirstByte).await;
}

#[tokio::test(start_paused = true)]
async fn endless_empty_reads_do_not_delay_the_end_of_a_finished_choice() {
    let completions = Completions::merge([then_empty([content(0, "a"), finish(0, "stop")])]);
    let choice = soon(completions.first()).await.unwrap();
    let before = tokio::time::Instant::now();
    assert_eq!(outcome(&choice).await.end.as_str(), "finished");
    let waited = before.elapsed();
    assert!(
        waited >= SECOND / 4 && waited < SECOND / 3,
        "it ended after {waited:?}"
    );
}

/// A source that is always ready must let other tasks run, whatever its reads bring.
#[tokio::test(start_paused = true)]
async fn a_source_that_is_always_ready_yields_after_a_bounded_number_of_reads() {
    const MOST: usize = 64 * 1024 / 64; // the bytes of one poll by the minimum cost of a read
    for read in ["", ":"] {
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        let source = stream::poll_fn(move |_| {
            let count = counted.fetch_add(1, Ordering::Relaxed);
            Poll::Ready((count < 200_000).then_some(Ok::<_, io::Error>(read)))
        });
        let completions = Completions::from_byte_stream(source);
        let mut longest = 0;
        let mut before = 0;
        while before < 200_000 {
            tokio::time::advance(SECOND / 1000).await; // yields, and lets the reader pause
            let now = reads.load(Ordering::Relaxed);
            longest = longest.max(now - before);
            before = now;
        }
        assert!(longest <= MOST, "{longest} reads of {read:?} in one turn");
        assert!(soon(completions.closed()).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn l10_endless_empty_reads_defeat_no_timeout_without_implicit_timers() {
    let builder = Completions::builder().implicit_timers(false);
    let builder = builder.first_byte_timeout(SECOND);
    times_out(builder, then_empty([]), Timeout::FirstByte).await;
}
