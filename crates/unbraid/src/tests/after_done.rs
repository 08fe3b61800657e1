//! Usage after `[DONE]` (U13): when the reader waits for it, and for how long.

use std::time::Duration;

use tokio::time::Instant;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{ends, read, read_with, soon};
use crate::{Completions, CompletionsBuilder};

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\n";
const DRAIN: Duration = Duration::from_millis(100);

fn builder() -> CompletionsBuilder {
    Completions::builder().usage_after_done(true)
}

fn answer(after: impl IntoIterator<Item = Step>) -> Vec<Step> {
    let answer = [content(0, "Hi"), finish(0, "stop"), DONE.to_owned()];
    answer.into_iter().map(bytes).chain(after).collect()
}

/// Checks that the completion closes without an error, with this usage, after this time.
async fn check(completions: &Completions, expected: Option<u64>, after: Duration) {
    let started = Instant::now();
    soon(completions.closed()).await.unwrap();
    let took = started.elapsed();
    assert!(
        took >= after && took <= after + Duration::from_millis(5),
        "{took:?}"
    );
    let usage = soon(completions.usage()).await;
    assert_eq!(usage.raw["completion_tokens"].as_u64(), expected);
    assert_eq!(ends(completions).await, ["0 finished \"Hi\""]);
}

#[tokio::test(start_paused = true)]
async fn u13_usage_after_done_counts_if_configured() {
    let late = Duration::from_millis(60);
    let after = || answer([Step::Pause(late), bytes(USAGE)]);
    check(&read_with(builder(), after()), Some(7), late).await;
    let without = read(after());
    soon(without.closed()).await.unwrap();
    assert!(soon(without.usage()).await.raw.is_null());
}

#[tokio::test(start_paused = true)]
async fn u13_a_choice_ends_at_done_and_does_not_wait_for_usage() {
    let completions = read_with(builder(), answer([Step::Stall]));
    let started = Instant::now();
    let choice = soon(completions.first()).await.unwrap();
    assert_eq!(soon(choice.text()).await.unwrap(), "Hi");
    assert_eq!(started.elapsed(), Duration::ZERO);
    check(&completions, None, DRAIN).await;
}

#[tokio::test(start_paused = true)]
async fn u13_further_bytes_do_not_extend_the_wait_for_usage() {
    let pause = Duration::from_millis(30);
    let drip = (0..50).flat_map(|_| [Step::Pause(pause), bytes(": more\n\n")]);
    let source = Script::new(answer(drip.chain([bytes(USAGE)])));
    let probe = source.probe();
    let completions = builder().from_byte_stream(source);
    check(&completions, None, DRAIN).await;
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(
        probe.closed(),
        "the drain of the connection has the same bound"
    );
}

#[tokio::test(start_paused = true)]
async fn u13_a_source_that_never_pauses_is_bounded_in_bytes() {
    let flood = (0..100).map(|_| bytes(format!(":{}\n\n", " ".repeat(1000))));
    let steps = answer(flood.chain([bytes(USAGE), Step::Stall]));
    check(&read_with(builder(), steps), None, Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn u13_without_timers_only_what_is_ready_counts() {
    let steps = answer([bytes(USAGE), Step::Stall]);
    let completions = read_with(builder().implicit_timers(false), steps);
    check(&completions, Some(7), Duration::ZERO).await;
    let completions = read_with(builder().implicit_timers(false), answer([Step::Stall]));
    check(&completions, None, Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn u13_a_source_that_fails_after_done_changes_nothing() {
    let steps = answer([bytes(USAGE), Step::Fail]);
    check(&read_with(builder(), steps), Some(7), Duration::ZERO).await;
    let steps = answer([bytes(USAGE), Step::Panic]);
    check(&read_with(builder(), steps), Some(7), Duration::ZERO).await;
}

#[tokio::test(start_paused = true)]
async fn u13_a_source_that_is_always_ready_with_nothing_is_bounded_in_time() {
    let empty = || futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Vec::new()));
    let head = answer([]).into_iter().map(|step| match step {
        Step::Bytes(bytes) => Ok(bytes),
        other => unreachable!("{other:?}"),
    });
    let source = futures::StreamExt::chain(futures::stream::iter(head), empty());
    let completions = builder().from_byte_stream(source);
    let clock = async {
        loop {
            tokio::task::yield_now().await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        closed = completions.closed() => closed.unwrap(),
        () = clock => {}
    }
    assert_eq!(ends(&completions).await, ["0 finished \"Hi\""]);
}
