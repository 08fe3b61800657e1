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
        bytes(content(0, crate::state::batch::PANIC)),
        bytes(content(1, "b")),
        bytes(DONE),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut pieces = choice.content();
    assert_eq!(soon(pieces.next()).await.unwrap().unwrap(), "a");
    let lost = soon(pieces.next()).await.unwrap();
    assert_eq!(lost.unwrap_err().end().as_str(), "lost");
    assert!(soon(pieces.next()).await.is_none());
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    assert_eq!(outcome(&choices[1]).await.message.content, "b");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_panicked_leaves_nobody_waiting_behind_the_next_event() {
    let steps = [
        bytes(content(0, "a")),
        pause(),
        bytes(content(0, crate::state::batch::PANIC)),
        pause(),
        bytes(content(0, "b")),
        Step::Pause(10_000 * SECOND),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut pieces = choice.content();
    let mut calls = choice.tool_calls();
    let looks = async {
        while let Some(Ok(_)) = pieces.next().await {}
        tokio::time::Instant::now()
    };
    let waits = async {
        assert!(calls.next().await.unwrap().is_err());
        tokio::time::Instant::now()
    };
    let (lost, told) = futures::future::join(looks, tokio::time::timeout(60 * SECOND, waits)).await;
    assert_eq!(told.unwrap() - lost, SECOND);
}

#[tokio::test(start_paused = true)]
async fn more_than_is_copied_at_once_comes_at_once() {
    let piece = "a".repeat(1000);
    let chunk = content(0, &piece).repeat(300);
    let completions = read([bytes(chunk), Step::Pause(10_000 * SECOND)]);
    let choice = soon(completions.choice(0)).await.unwrap();
    let (mut content, mut events) = (choice.content(), choice.events());
    for _ in 0..300 {
        assert_eq!(soon(content.next()).await.unwrap().unwrap().len(), 1000);
    }
    for _ in 0..301 {
        soon(events.next()).await.unwrap().unwrap();
    }
    let mut gathered = choice.content().coalesced();
    let mut bytes = 0;
    while bytes < 300_000 {
        bytes += soon(gathered.next()).await.unwrap().unwrap().len();
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_brings_two_texts_wakes_who_waits_for_either() {
    let call = |rest: &str| {
        let call = format!("{{\"index\":0,\"function\":{{{rest}}}}}");
        let delta = format!("{{\"tool_calls\":[{call}]}}");
        format!("data: {{\"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")
    };
    let fragment = |text| call(&format!("\"arguments\":\"{text}\""));
    let begin = content(0, "a") + &call("\"name\":\"f\",\"arguments\":\"1\"");
    let pairs = |piece| {
        [
            content(0, piece),
            fragment(piece),
            content(0, piece) + &fragment(piece),
            fragment(piece) + &content(0, piece),
        ]
    };
    let steps = [vec![begin], pairs("Oslo").to_vec(), pairs("Rome").to_vec()].concat();
    let steps = steps.into_iter().map(|read| [bytes(read), pause()]);
    let end = [Step::Pause(10_000 * SECOND)];
    let completions = read(steps.flatten().chain(end));
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut content = choice.content();
    let mut arguments = soon(choice.tool_calls().next())
        .await
        .unwrap()
        .unwrap()
        .arguments();
    let texts = async {
        for piece in ["a", "Oslo", "Oslo", "Oslo", "Rome", "Rome", "Rome"] {
            assert_eq!(soon(content.next()).await.unwrap().unwrap(), piece);
        }
    };
    let fragments = async {
        for piece in ["1", "Oslo", "Oslo", "Oslo", "Rome", "Rome", "Rome"] {
            assert_eq!(soon(arguments.next()).await.unwrap().unwrap(), piece);
        }
    };
    futures::future::join(texts, fragments).await;
}
