//! What has come for a choice is applied by whoever looks first. Nothing may depend on who that is, or on whether anybody is.

use std::{task::Poll, time::Duration};

use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{all_choices, outcome, read, soon};
use crate::{Choice, Content};

const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const SECOND: Duration = Duration::from_secs(1);

fn pause() -> Step {
    Step::Pause(SECOND)
}

/// One choice, a piece of text each second, then its end.
fn a_second_apart() -> Vec<Step> {
    let pieces = ["a", "b", "c"];
    let mut steps: Vec<Step> = pieces
        .iter()
        .flat_map(|piece| [bytes(content(0, piece)), pause()])
        .collect();
    steps.extend([bytes(finish(0, "stop")), bytes(DONE)]);
    steps
}

/// A stream that waits for its next item, as a task that is at other work would leave it: woken, it does not look.
async fn waiting(choice: &Choice) -> Content {
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "a");
    idle(&mut content).await;
    content
}

/// Leaves the waker of this task.
async fn idle(content: &mut Content) {
    let next = std::pin::pin!(content.next());
    assert!(matches!(futures::poll!(next), Poll::Pending));
}

#[tokio::test(start_paused = true)]
async fn who_is_woken_and_does_not_look_holds_up_nobody() {
    let completions = read(a_second_apart());
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut idle = waiting(&choice).await;
    tokio::time::sleep(SECOND * 3 / 2).await;
    assert_eq!(choice.snapshot().content, "ab", "seen without it");
    assert!(soon(completions.closed()).await.is_ok());
    assert_eq!(outcome(&choice).await.message.content, "abc");
    let mut rest = Vec::new();
    while let Some(Ok(piece)) = soon(idle.next()).await {
        rest.push(piece);
    }
    assert_eq!(rest, ["b", "c"], "one item a delta, however late");
}

#[tokio::test(start_paused = true)]
async fn who_is_woken_and_dropped_takes_nothing_along() {
    let completions = read(a_second_apart());
    let choice = soon(completions.choice(0)).await.unwrap();
    let idle = waiting(&choice).await;
    let other = choice.content();
    tokio::time::sleep(SECOND * 3 / 2).await;
    drop(idle);
    let all: Vec<_> = soon(futures::StreamExt::collect(other)).await;
    let all: Vec<_> = all.into_iter().map(Result::unwrap).collect();
    assert_eq!(all, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn timing_tells_when_a_delta_came_and_not_when_it_was_looked_at() {
    let steps = [
        bytes(ROLE),
        pause(),
        bytes(content(0, "a")),
        pause(),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut content = choice.content();
    idle(&mut content).await;
    tokio::time::sleep(10 * SECOND).await;
    let timing = choice.timing();
    assert_eq!(
        (timing.first_delta, timing.end),
        (Some(SECOND), Some(2 * SECOND))
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_panics_in_a_consumers_task_ends_its_choice_and_not_the_task() {
    let steps = [
        bytes(content(0, "a")),
        pause(),
        bytes(content(0, crate::batch::PANIC)),
        bytes(content(1, "b")),
        bytes(DONE),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut pieces = choice.content();
    assert_eq!(soon(pieces.next()).await.unwrap().unwrap(), "a");
    let lost = soon(pieces.next()).await.unwrap();
    assert_eq!(lost.unwrap_err().end().name(), "lost");
    assert!(soon(pieces.next()).await.is_none());
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    assert_eq!(outcome(&choices[1]).await.message.content, "b");
}
