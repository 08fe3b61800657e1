//! A batch is applied by the next task that reads the log. Nothing may depend on which task that is, or whether there is one.

use std::{
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::time::Instant;
use unbraid_core::{
    ChoiceIndex, CompletionKind, Config, EventIndex, Position,
    internal::{Delta, DeltaKind, TextDelta},
};
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{all_choices, outcome, read, soon};
use crate::{
    Choice, Content,
    state::{
        batch::Batch,
        choice_log::{ChoiceLog, FirstDelta},
    },
    sync::{
        shared::Watcher,
        wait_list::{Interest, WakeList},
    },
};

const ROLE: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
const SECOND: Duration = Duration::from_secs(1);

fn pause() -> Step {
    Step::Pause(SECOND)
}

/// One choice with a text delta each second, then its end.
fn a_second_apart() -> Vec<Step> {
    let texts = ["a", "b", "c"];
    let mut steps: Vec<Step> = texts
        .iter()
        .flat_map(|text| [bytes(content(0, text)), pause()])
        .collect();
    steps.extend([bytes(finish(0, "stop")), bytes(DONE)]);
    steps
}

/// A stream that waits for its next item and is not polled after it was woken, as if its task was busy.
async fn waiting(choice: &Choice) -> Content {
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "a");
    idle(&mut content).await;
    content
}

/// Registers the waker of this task.
async fn idle(content: &mut Content) {
    let next = std::pin::pin!(content.next());
    assert!(matches!(futures::poll!(next), Poll::Pending));
}

#[tokio::test(start_paused = true)]
async fn a_woken_consumer_that_never_polls_blocks_nobody() {
    let completions = read(a_second_apart());
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut idle = waiting(&choice).await;
    tokio::time::sleep(SECOND * 3 / 2).await;
    assert_eq!(
        choice.snapshot().content,
        "ab",
        "it is applied without that consumer"
    );
    assert!(soon(completions.closed()).await.is_ok());
    assert_eq!(outcome(&choice).await.message.content, "abc");
    let mut rest = Vec::new();
    while let Some(Ok(delta)) = soon(idle.next()).await {
        rest.push(delta);
    }
    assert_eq!(rest, ["b", "c"], "one item per delta, however late");
}

#[tokio::test(start_paused = true)]
async fn a_woken_consumer_that_is_dropped_loses_nothing_for_others() {
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
async fn timing_shows_when_a_delta_arrived_and_not_when_it_was_read() {
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
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "a");
    let lost = soon(content.next()).await.unwrap();
    assert_eq!(lost.unwrap_err().end().as_str(), "lost");
    assert!(soon(content.next()).await.is_none());
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    assert_eq!(outcome(&choices[1]).await.message.content, "b");
}

#[tokio::test(start_paused = true)]
async fn after_a_panic_of_the_machine_the_next_event_wakes_every_waiter() {
    let steps = [
        bytes(content(0, "a")),
        pause(),
        bytes(content(0, "a")),
        pause(),
        bytes(content(0, "a")), // starts the actor, which applies what is pending then
        pause(),
        // The second delta of a read is in its batch, which a consumer applies.
        bytes(content(0, "a") + &content(0, crate::state::batch::PANIC)),
        pause(),
        bytes(content(0, "b")),
        Step::Pause(10_000 * SECOND),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut content = choice.content();
    let mut calls = choice.tool_calls();
    let reads = async {
        while let Some(Ok(_)) = content.next().await {}
        Instant::now()
    };
    let waits = async {
        assert!(calls.next().await.unwrap().is_err());
        Instant::now()
    };
    let (lost, ended) =
        futures::future::join(reads, tokio::time::timeout(60 * SECOND, waits)).await;
    assert_eq!(ended.unwrap() - lost, SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_replay_longer_than_one_copy_does_not_wait() {
    let text = "a".repeat(1000);
    let chunk = content(0, &text).repeat(300);
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
async fn a_read_that_brings_two_texts_wakes_the_waiters_of_both() {
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

fn new_log() -> ChoiceLog {
    let config = Arc::new(Config::default());
    let kind = CompletionKind::Chat;
    ChoiceLog::new(ChoiceIndex(0), kind, &config, Instant::now())
}

fn text_delta(text: &str) -> TextDelta<'_> {
    TextDelta::new(EventIndex(0), ChoiceIndex(0), DeltaKind::Content, text)
}

#[tokio::test]
async fn the_first_delta_of_a_read_is_applied_unless_a_batch_comes_before_it() {
    let log = new_log();
    let apply = |text| log.apply_first(&text_delta(text), Position::default());
    assert_eq!(apply("a"), FirstDelta::Applied(Interest::ALL));
    assert_eq!(apply("b"), FirstDelta::Applied(Interest::TEXT));
    // A batch is kept as long as a consumer waits that will apply it.
    let mut watcher = Watcher::new(&log);
    let waits = watcher.poll(&Context::from_waker(Waker::noop()), |_| Poll::<()>::Pending);
    assert!(waits.is_pending());
    let mut batch = Batch::default();
    batch.push_delta(Delta::Text(&text_delta("c")), Position::default());
    log.append(Interest::NONE, &mut batch, &mut WakeList::default());
    assert_eq!(apply("d"), FirstDelta::NeedsBatch);
    assert_eq!(
        log.read(|state| state.transcript.content().collect::<String>()),
        "abc"
    );
    assert_eq!(apply("d"), FirstDelta::Applied(Interest::TEXT));
    // The reader does not copy a transcript that a snapshot shares.
    let snapshot = log.modify(|state| state.transcript.snapshot());
    assert_eq!(apply("e"), FirstDelta::WouldCopy);
    drop(snapshot);
    assert_eq!(apply("e"), FirstDelta::Applied(Interest::TEXT));
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_machine_in_the_reader_wakes_every_waiter() {
    let steps = [
        bytes(content(0, "a")),
        pause(),
        bytes(content(0, crate::state::batch::PANIC)),
        Step::Pause(10_000 * SECOND),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let mut calls = choice.tool_calls();
    let lost = soon(calls.next()).await.unwrap();
    assert_eq!(lost.unwrap_err().end().as_str(), "lost");
}

#[tokio::test(start_paused = true)]
async fn a_panic_of_the_machine_in_the_reader_ends_the_owner_at_once() {
    let log = new_log();
    let owned = log.clone();
    let owner = tokio::spawn(async move { owned.apply_until_complete().await });
    tokio::task::yield_now().await;
    let panics = text_delta(crate::state::batch::PANIC);
    // A waiting reader must not leave the owner asleep.
    let mut watcher = Watcher::new(&log);
    let waits = watcher.poll(&Context::from_waker(Waker::noop()), |_| Poll::<()>::Pending);
    assert!(waits.is_pending());
    let applied = log.apply_first(&panics, Position::default());
    assert_eq!(applied, FirstDelta::Applied(Interest::ALL));
    log.append(
        Interest::ALL,
        &mut Batch::default(),
        &mut WakeList::default(),
    );
    soon(owner).await.unwrap(); // although nothing is pending
}
