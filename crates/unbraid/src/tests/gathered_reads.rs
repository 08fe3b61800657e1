//! The reads of a large event are gathered: many tiny ones make one job, and a complete event does not wait for more.

use std::{convert::Infallible, time::Duration};

use futures::{StreamExt, stream};
use tokio::{runtime::Builder, time::Instant};
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{
    large::{KINDS, by_actors, by_demux, cut, jobs, one_text, value_of_lines},
    soon,
};
use crate::{Completions, Updates};

const SIZE: usize = 512 * 1024;

/// The length of an event of many lines, of which a third is its data.
const LINES: usize = 2 * SIZE;

/// The number of bytes that a job takes at least from a source that is always ready.
const GATHERED: usize = 64 * 1024;

/// The size from which an event is large.
const LARGE: usize = 128 * 1024;

/// A stream with an event of many lines, each of which may be its last.
fn many_lines() -> String {
    let large = value_of_lines(LINES, "m");
    content(0, "a") + &large + &content(0, "b") + &finish(0, "stop") + DONE
}

/// Each piece of the stream, followed by this step.
fn pieces(stream: &str, after: Option<Step>) -> Vec<Step> {
    let pieces = cut(stream, 7).into_iter();
    pieces
        .flat_map(|piece| [Some(piece), after.clone()])
        .flatten()
        .collect()
}

#[track_caller]
fn check_jobs() {
    let jobs = jobs();
    let jobs_of_the_rest = (LINES - 3 * LARGE) / GATHERED;
    let expected = jobs_of_the_rest - 2..=jobs_of_the_rest + 4;
    assert!(expected.contains(&jobs), "{jobs} jobs");
}

#[tokio::test(start_paused = true)]
async fn tiny_reads_of_a_large_event_share_a_job() {
    for after in [None, Some(Step::Yield)] {
        let completions = Completions::from_byte_stream(Script::new(pieces(&many_lines(), after)));
        let choice = soon(completions.first()).await.unwrap();
        let text = soon(choice.text()).await.unwrap();
        assert_eq!(text, "aab");
        soon(completions.closed()).await.unwrap();
        check_jobs();
    }
}

#[tokio::test(start_paused = true)]
async fn tiny_reads_of_a_large_event_share_a_job_of_the_flat_view() {
    for after in [None, Some(Step::Yield)] {
        let flat = Updates::from_byte_stream(Script::new(pieces(&many_lines(), after)));
        let text = |update: Result<crate::Update<'static>, _>| {
            update.unwrap().content.map(|piece| piece.text)
        };
        let texts: Vec<_> = soon(flat.map(text).collect()).await;
        let text: String = texts.into_iter().flatten().collect();
        assert_eq!(text, "aab");
        check_jobs();
    }
}

/// Steps in which a large event ends, and then the source stalls.
fn then_stalls() -> Vec<Step> {
    let stream = content(0, "a") + &one_text(SIZE, "");
    // A job has just run when the end arrives.
    let mut steps = pieces(stream.strip_suffix('\n').unwrap(), None);
    steps.extend([Step::Yield, bytes("\n"), Step::Stall]);
    steps
}

#[tokio::test(start_paused = true)]
async fn a_large_event_that_is_complete_is_delivered_while_its_source_is_pending() {
    let began = Instant::now();
    let completions = Completions::from_byte_stream(Script::new(then_stalls()));
    let choice = soon(completions.first()).await.unwrap();
    let mut content = choice.content();
    for length in [1, SIZE] {
        assert_eq!(soon(content.next()).await.unwrap().unwrap().len(), length);
    }
    let mut flat = Updates::from_byte_stream(Script::new(then_stalls()));
    for length in [1, SIZE] {
        let update = soon(flat.next()).await.unwrap().unwrap();
        assert_eq!(update.content.unwrap().text.len(), length);
    }
    assert!(began.elapsed() < Duration::from_millis(100));
}

#[test]
fn a_large_event_that_is_complete_is_delivered_without_timers() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let source = Script::new(then_stalls());
        let completions = Completions::builder()
            .implicit_timers(false)
            .from_byte_stream(source);
        let mut content = completions.first().await.unwrap().content();
        for length in [1, SIZE] {
            assert_eq!(content.next().await.unwrap().unwrap().len(), length);
        }
        let mut flat = Updates::from_byte_stream(Script::new(then_stalls()));
        for length in [1, SIZE] {
            let update = flat.next().await.unwrap().unwrap();
            assert_eq!(update.content.unwrap().text.len(), length);
        }
    });
}

#[tokio::test(start_paused = true)]
async fn without_implicit_timers_a_large_event_that_is_complete_does_not_wait() {
    let began = Instant::now();
    let completions = Completions::builder()
        .implicit_timers(false)
        .from_byte_stream(Script::new(then_stalls()));
    let mut content = soon(completions.first()).await.unwrap().content();
    for length in [1, SIZE] {
        assert_eq!(soon(content.next()).await.unwrap().unwrap().len(), length);
    }
    // The runtime has timers and its clock is paused, so any timer would advance it.
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_large_event_that_is_complete_is_delivered_before_endless_empty_reads() {
    // In the second case a job runs before the event is complete, so that the next one would wait for more.
    for (large, length) in [(one_text(SIZE, ""), SIZE), (value_of_lines(SIZE, ""), 1)] {
        let source = || {
            let stream = content(0, "a") + &large;
            let reads: Vec<Vec<u8>> = stream.as_bytes().chunks(7).map(<[u8]>::to_vec).collect();
            let empty = stream::repeat_with(Vec::new);
            stream::iter(reads).chain(empty).map(Ok::<_, Infallible>)
        };
        let began = Instant::now();
        let completions = Completions::from_byte_stream(source());
        let choice = soon(completions.first()).await.unwrap();
        let mut content = choice.content();
        for length in [1, length] {
            assert_eq!(soon(content.next()).await.unwrap().unwrap().len(), length);
        }
        assert_eq!(
            began.elapsed(),
            Duration::ZERO,
            "an empty read ends the wait for more"
        );
        completions.cancel();
        let mut flat = Updates::from_byte_stream(source());
        for length in [1, length] {
            let update = soon(flat.next()).await.unwrap().unwrap();
            assert_eq!(update.content.unwrap().text.len(), length);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn large_events_are_the_same_in_tiny_reads() {
    const SIZE: usize = LARGE + GATHERED;
    for kind in KINDS {
        let whole = content(0, "a") + &kind(SIZE, "m") + &content(0, "b") + DONE;
        let open = content(0, "a") + kind(SIZE, "m").trim_end();
        for (stream, fails) in [(&whole, false), (&open, false), (&open, true)] {
            let expected = by_demux(stream, fails);
            for after in [None, Some(Step::Yield)] {
                let mut steps = pieces(stream, after);
                steps.extend(fails.then_some(Step::Fail));
                assert!(by_actors(steps).await == expected);
            }
        }
    }
}

/// A source that ends while bytes are gathered still has those bytes decoded.
#[tokio::test(start_paused = true)]
async fn a_source_that_ends_or_fails_loses_nothing_that_was_gathered() {
    for (stream, fails) in [(many_lines(), false), (many_lines(), true)] {
        let mut steps = pieces(&stream, None);
        steps.extend(fails.then_some(Step::Fail));
        let flat = Updates::from_byte_stream(Script::new(steps));
        let texts = flat.filter_map(|update| async {
            let update = update.ok()?;
            Some(update.content?.text.into_owned())
        });
        assert_eq!(soon(texts.collect::<String>()).await, "aab");
    }
}
