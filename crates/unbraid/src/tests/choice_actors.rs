//! Which choices have an actor, and what a kill of an actor ends.

use std::time::Duration;

use futures::FutureExt;
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{all_choices, ends, outcome, read, soon};
use crate::{Choice, Completions, StreamError};

const SECOND: Duration = Duration::from_secs(1);

/// The trace of a choice, without the texts of its warnings.
async fn trace(choice: &Choice) -> Vec<String> {
    let mut events = choice.events();
    let mut lines = Vec::new();
    while let Some(Ok(event)) = soon(events.next()).await {
        lines.push(event.to_string());
    }
    lines
}

/// How many batches of a choice find nobody before it gets an actor. A batch is what a read brings after the first delta.
const UNATTENDED: usize = 4;

/// The traces of eight choices, one of which may be killed in the middle.
async fn eight(killed: Option<usize>) -> Vec<Vec<String>> {
    let round = |text: &str| {
        (0..8)
            .map(|choice| bytes(content(choice, text)))
            .collect::<Vec<_>>()
    };
    let mut steps = round("a");
    for _ in 0..UNATTENDED {
        steps.push(Step::Yield);
        steps.extend([round("b"), round("b")].concat());
    }
    steps.push(Step::Pause(SECOND));
    steps.extend(round("c"));
    steps.extend((0..8).map(|choice| bytes(finish(choice, "stop"))));
    steps.push(bytes(DONE));
    let completions = read(steps);
    let eighth = soon(completions.choice(7)).await.unwrap();
    drop(eighth);
    // Wait until every actor has started its long handler.
    tokio::time::sleep(Duration::from_millis(10)).await;
    if let Some(killed) = killed {
        kill(&completions, killed);
    }
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    let mut traces = Vec::new();
    for choice in &choices {
        traces.push(trace(choice).await);
    }
    traces
}

/// Kills the n-th actor that was started; actor ids ascend.
fn kill(completions: &Completions, nth: usize) {
    let mut children = completions
        .reader()
        .expect("the stream is open")
        .get_children();
    children.sort_by_key(|child| child.get_id().pid());
    children[nth].kill();
}

#[tokio::test(start_paused = true)]
async fn a_killed_choice_leaves_its_siblings_traces_unchanged() {
    let whole = eight(None).await;
    for killed in [0, 3, 7] {
        let traces = eight(Some(killed)).await;
        for (choice, (trace, expected)) in traces.iter().zip(&whole).enumerate() {
            if choice == killed {
                let last = trace.last().unwrap();
                assert!(last.contains("\"end\":\"lost\""), "{last}");
                let has = |text: &str| trace.iter().any(|line| line.contains(text));
                assert!(has("\"a\"") && has("\"b\""), "what had arrived is there");
                assert!(!has("\"c\""));
            } else {
                assert_eq!(trace, expected);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_killed_choice_ends_at_once_although_the_reader_is_inside_its_handler() {
    let mut steps = vec![bytes(content(0, "a")), bytes(content(1, "b"))];
    for _ in 0..UNATTENDED {
        steps.extend([Step::Yield, bytes(content(0, "a").repeat(2))]);
    }
    steps.push(Step::Stall);
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(10)).await;
    kill(&completions, 0);
    let ended = tokio::time::timeout(Duration::from_millis(100), choice.finished()).await;
    assert_eq!(
        ended
            .expect("the choice ends at once")
            .unwrap_err()
            .end()
            .as_str(),
        "lost"
    );
    let sibling = soon(completions.choice(1)).await.unwrap();
    let open = tokio::time::timeout(Duration::from_secs(60), sibling.finished()).await;
    assert!(open.is_err(), "the sibling goes on");
}

#[tokio::test(start_paused = true)]
async fn a_killed_reader_loses_what_is_open() {
    for reads in 1..=UNATTENDED + 2 {
        // After one read there are no actors, after two the reader has one, and after some more choice 1 has one, too.
        let mut steps = vec![
            bytes(content(0, "a")),
            bytes(finish(0, "stop")),
            bytes(content(1, "b")),
        ];
        for _ in 1..reads {
            steps.extend([Step::Yield, bytes(content(1, "b").repeat(2))]);
        }
        steps.push(Step::Stall);
        let completions = read(steps);
        let open = soon(completions.choice(1)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(completions.reader().is_some(), reads > 1);
        assert_eq!(actors(&completions), usize::from(reads > UNATTENDED));
        completions.kill_reader();
        assert_eq!(outcome(&open).await.end.as_str(), "lost");
        assert!(matches!(
            soon(completions.closed()).await,
            Err(StreamError::Lost)
        ));
        let text = "b".repeat(2 * reads - 1);
        assert_eq!(
            ends(&completions).await,
            ["0 finished \"a\"".to_owned(), format!("1 lost {text:?}")]
        );
    }
}

/// How many choices have an actor.
fn actors(completions: &Completions) -> usize {
    let reader = completions.reader();
    reader.map_or(0, |reader| reader.get_children().len())
}

/// Two choices: one that ends, and one to which each second brings so many deltas.
fn deltas_a_second(deltas: usize) -> Completions {
    let mut steps = vec![bytes(content(0, "a") + &content(1, "b"))];
    steps.push(bytes(finish(0, "stop")));
    for _ in 0..2 * UNATTENDED {
        let read = content(1, "b").repeat(deltas);
        steps.extend([Step::Pause(SECOND), bytes(read)]);
    }
    steps.extend([Step::Pause(SECOND), bytes(finish(1, "stop")), bytes(DONE)]);
    read(steps)
}

#[tokio::test(start_paused = true)]
async fn an_open_choice_gets_an_actor_once_batches_in_succession_found_nobody() {
    let completions = deltas_a_second(2);
    let _choice = soon(completions.choice(1)).await.unwrap();
    tokio::time::sleep(SECOND / 2).await;
    for reads in 0..2 * UNATTENDED {
        assert_eq!(actors(&completions), usize::from(reads >= UNATTENDED));
        tokio::time::sleep(SECOND).await;
    }
    let text = "b".repeat(1 + 4 * UNATTENDED);
    assert_eq!(
        ends(&completions).await,
        [
            "0 finished \"a\"".to_owned(),
            format!("1 finished {text:?}")
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_choice_needs_no_actor_if_its_consumer_keeps_up_or_nothing_is_left_to_apply() {
    // The reader applies a single delta itself, and a waiting consumer what follows it.
    for (deltas, consumes) in [(1, false), (1, true), (3, true)] {
        let completions = deltas_a_second(deltas);
        let mut content = soon(completions.choice(1)).await.unwrap().content();
        let consumer = async {
            while consumes && let Some(delta) = soon(content.next()).await {
                delta.unwrap();
            }
        };
        let ends_without_an_actor = async {
            for _ in 0..2 * UNATTENDED {
                tokio::time::sleep(SECOND).await;
                assert_eq!(actors(&completions), 0);
            }
        };
        futures::future::join(consumer, ends_without_an_actor).await;
        assert!(soon(completions.closed()).await.is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_is_late_now_and_then_needs_no_actor() {
    let completions = deltas_a_second(2);
    let mut content = soon(completions.choice(1)).await.unwrap().content();
    tokio::time::sleep(SECOND / 2).await;
    let mut deltas = 0;
    for read in 0..2 * UNATTENDED {
        // It is away for all batches but one of those that would start an actor.
        while read % UNATTENDED == UNATTENDED - 1
            && let Some(delta) = content.next().now_or_never()
        {
            assert_eq!(delta.unwrap().unwrap(), "b");
            deltas += 1;
        }
        tokio::time::sleep(SECOND).await;
        assert_eq!(actors(&completions), 0, "after {deltas} deltas");
    }
}
