//! Cancel, discard, drop: what each ends, and what it keeps.

use std::time::Duration;

use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{ends, outcome, read, read_with, soon};
use crate::{Completions, Event, StreamError};

/// Lets every other task run until all of them wait.
async fn run_other_tasks() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_choice_ends_in_order_and_its_siblings_go_on() {
    let second = Duration::from_secs(1);
    let call = r#"data: {"choices":[{"index":1,"delta":{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{\"a"}}]}}]}"#;
    let steps = [
        bytes(content(0, "a")),
        bytes(format!("{call}\n\n")),
        Step::Pause(second),
        bytes(content(1, "dropped")),
        bytes(content(0, "A")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(1)).await.unwrap();
    choice.cancel();
    choice.cancel();
    let error = soon(choice.finished()).await.unwrap_err();
    assert_eq!(error.end().as_str(), "cancelled");
    assert_eq!(
        error.partial().message.tool_calls[0]
            .status
            .map(|status| status.as_str()),
        Some("truncated")
    );
    let mut events = choice.events();
    let mut names = Vec::new();
    while let Some(Ok(event)) = soon(events.next()).await {
        names.push(event.event.as_str());
    }
    assert_eq!(
        names,
        [
            "choice.start",
            "tool_call.start",
            "tool_call.arguments.delta",
            "tool_call.done",
            "end"
        ]
    );
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"aA\"", "1 cancelled \"\""]
    );
    assert!(soon(completions.closed()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_body_closes_when_all_expected_choices_are_cancelled() {
    let script = || Script::new([bytes(content(0, "a")), bytes(content(1, "b")), Step::Stall]);
    let source = script();
    let probe = source.probe();
    let completions = Completions::builder()
        .expect_choices(2)
        .from_byte_stream(source);
    for index in [0, 1] {
        assert!(!probe.closed());
        soon(completions.choice(index)).await.unwrap().cancel();
        run_other_tasks().await;
    }
    assert!(probe.closed());
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Cancelled)
    ));

    let source = script();
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    for index in [0, 1] {
        soon(completions.choice(index)).await.unwrap().cancel();
        run_other_tasks().await;
    }
    assert!(
        !probe.closed(),
        "more choices may appear: their number is not known"
    );
}

#[tokio::test(start_paused = true)]
async fn a_discarded_choice_keeps_no_text_and_ends_for_all_its_clones() {
    let second = Duration::from_secs(1);
    let completions = read([
        bytes(content(0, "secret")),
        bytes(content(1, "b")),
        Step::Pause(second),
        bytes(content(0, "more")),
        bytes(DONE),
    ]);
    let choice = soon(completions.choice(0)).await.unwrap();
    let clone = choice.clone();
    let mut content = choice.content();
    assert_eq!(soon(content.next()).await.unwrap().unwrap(), "secret");
    choice.discard();
    assert_eq!(
        soon(content.next())
            .await
            .unwrap()
            .unwrap_err()
            .end()
            .as_str(),
        "cancelled"
    );
    assert!(soon(content.next()).await.is_none());
    assert_eq!(outcome(&clone).await.end.as_str(), "cancelled");
    assert_eq!(clone.snapshot().content, "");
    let whole = soon(completions.aggregate()).await;
    assert!(
        !whole.to_string().contains("secret") && !whole.to_string().contains("more"),
        "{whole}"
    );
}

/// `choices()` reports an error of the stream only if it ended a choice. A cancelled choice was not ended by it.
#[tokio::test(start_paused = true)]
async fn a_cancelled_choice_does_not_make_the_choices_report_a_later_error() {
    let second = Duration::from_secs(1);
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        Step::Pause(second),
        bytes(finish(1, "stop")),
        Step::Pause(second),
        Step::Fail,
    ]);
    soon(completions.choice(0)).await.unwrap().cancel();
    let (choices, error) = super::all_choices(&completions).await;
    assert_eq!(outcome(&choices[0]).await.end.as_str(), "cancelled");
    assert_eq!(outcome(&choices[1]).await.end.as_str(), "finished");
    assert!(error.is_none(), "{error:?}");
    let closed = soon(completions.closed()).await;
    assert!(matches!(closed, Err(StreamError::Transport(_))));
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_the_body_at_once() {
    let source = Script::new([bytes(content(0, "a")), Step::Stall]);
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    let choice = soon(completions.first()).await.unwrap();
    let cursor = choice.content();
    drop((completions, choice));
    run_other_tasks().await;
    assert!(!probe.closed(), "a cursor is a handle");
    drop(cursor);
    run_other_tasks().await;
    assert!(probe.closed());
}

#[tokio::test(start_paused = true)]
async fn everything_may_be_dropped_before_the_first_poll() {
    let source = Script::new([bytes(content(0, "a")), Step::Stall]);
    let probe = source.probe();
    drop(Completions::from_byte_stream(source));
    run_other_tasks().await;
    assert!(probe.closed());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_consumer_affects_no_other() {
    let second = Duration::from_secs(1);
    let completions = read([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        Step::Pause(second),
        bytes(content(0, "A")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let first = soon(completions.choice(0)).await.unwrap();
    let mut cursor = first.content();
    soon(cursor.next()).await.unwrap().unwrap();
    drop((cursor, first));
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"aA\"", "1 done_without_finish \"b\""]
    );
}

#[tokio::test(start_paused = true)]
async fn l13_the_rest_is_drained_within_bounds_once_all_has_ended() {
    let comment = ": x\n".repeat(16);
    let rest = |n: usize| (0..n).map(|_| bytes(&comment)).collect::<Vec<_>>();
    let after_done = |rest: Vec<Step>| {
        let mut steps = vec![
            bytes(content(0, "a")),
            bytes(finish(0, "stop")),
            bytes(DONE),
        ];
        steps.extend(rest);
        Script::new(steps)
    };
    // A stalled rest costs 100 ms, and the result does not wait for it.
    let source = after_done(vec![Step::Stall]);
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    let before = tokio::time::Instant::now();
    soon(completions.closed()).await.unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(99)).await;
    assert!(!probe.closed());
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert!(probe.closed());
    // An endless rest is abandoned after 64 KiB.
    let source = after_done(rest(100_000));
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    soon(completions.closed()).await.unwrap();
    run_other_tasks().await;
    assert!(probe.closed());
}

#[tokio::test(start_paused = true)]
async fn l13_the_last_handle_drains_when_every_choice_has_ended() {
    let source = Script::new([
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        bytes(": x\n\n"),
        Step::Stall,
    ]);
    let probe = source.probe();
    let completions = Completions::from_byte_stream(source);
    let choice = soon(completions.first()).await.unwrap();
    soon(choice.finished()).await.unwrap();
    drop((completions, choice));
    tokio::time::sleep(Duration::from_millis(99)).await;
    assert!(!probe.closed(), "the usage may still arrive");
    tokio::time::sleep(Duration::from_millis(2)).await;
    assert!(probe.closed());
}

#[tokio::test(start_paused = true)]
async fn first_finished_counts_only_finished_choices() {
    let second = Duration::from_secs(1);
    let steps = || {
        vec![
            bytes(content(0, "a")),
            bytes(content(1, "b")),
            bytes(content(2, "c")),
            bytes(finish(1, "stop")),
            Step::Pause(second),
            bytes(finish(2, "length")),
            Step::Pause(second),
            bytes(DONE),
        ]
    };
    let completions = read(steps());
    let first = soon(completions.first_finished(1)).await;
    assert_eq!(first.iter().map(|f| f.choice.0).collect::<Vec<_>>(), [1]);
    assert_eq!(
        ends(&completions).await,
        ["0 cancelled \"a\"", "1 finished \"b\"", "2 cancelled \"c\""]
    );
    let two = soon(read(steps()).first_finished(2)).await;
    assert_eq!(two.iter().map(|f| f.choice.0).collect::<Vec<_>>(), [1, 2]);
    let fewer = soon(read(steps()).first_finished(3)).await;
    assert_eq!(fewer.len(), 2, "choice 0 had no reason");

    let completions = read(steps());
    let dropped =
        tokio::time::timeout(Duration::from_millis(300), completions.first_finished(3)).await;
    assert!(dropped.is_err());
    assert_eq!(
        soon(completions.first_finished(3)).await.len(),
        2,
        "the dropped future cancelled nothing"
    );
    let none: Vec<_> = soon(completions.first_finished(0)).await;
    assert!(none.is_empty());
}

#[tokio::test(start_paused = true)]
async fn first_finished_returns_the_choices_in_the_order_of_their_ends_however_they_were_read() {
    let parts = [
        content(0, "a"),
        content(1, "b"),
        finish(1, "stop"),
        finish(0, "stop"),
        DONE.to_owned(),
    ];
    for steps in [vec![bytes(parts.concat())], parts.map(bytes).to_vec()] {
        let one = soon(read(steps.clone()).first_finished(1)).await;
        assert_eq!(one.iter().map(|f| f.choice.0).collect::<Vec<_>>(), [1]);
        let two = soon(read(steps).first_finished(2)).await;
        assert_eq!(two.iter().map(|f| f.choice.0).collect::<Vec<_>>(), [1, 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn u14_choices_that_have_their_reason_are_not_cancelled_and_cost_no_usage() {
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":7}}\n\n";
    let steps = || {
        [
            bytes(content(0, "a") + &content(1, "b")),
            bytes(finish(0, "stop")),
            bytes(finish(1, "stop")),
            Step::Pause(Duration::from_millis(100)),
            bytes(usage),
            bytes(DONE),
        ]
    };
    let check = async |completions: Completions| {
        soon(completions.closed()).await.unwrap();
        assert_eq!(soon(completions.usage()).await.total_tokens, Some(7));
        assert_eq!(
            ends(&completions).await,
            ["0 finished \"a\"", "1 finished \"b\""]
        );
    };
    let completions = read_with(Completions::builder().expect_choices(2), steps());
    // The first choice ends with the event of the second one's reason.
    let first = soon(completions.first_finished(1)).await;
    assert_eq!(first.iter().map(|f| f.choice.0).collect::<Vec<_>>(), [0]);
    check(completions).await;

    let completions = read_with(Completions::builder().expect_choices(2), steps());
    soon(completions.first_finished(1)).await;
    soon(completions.choice(1)).await.unwrap().cancel();
    check(completions).await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_after_the_end_changes_nothing() {
    let completions = read([
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    soon(completions.closed()).await.unwrap();
    let choice = soon(completions.first()).await.unwrap();
    choice.cancel();
    completions.cancel();
    run_other_tasks().await;
    assert_eq!(ends(&completions).await, ["0 finished \"a\""]);
    let mut events = completions.events();
    let mut last = None;
    while let Some(event) = soon(events.next()).await {
        last = Some(event.unwrap());
    }
    assert!(matches!(last.unwrap().event, Event::End(_)));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_choice_with_a_reason_has_finished() {
    let completions = read_with(
        Completions::builder(),
        [
            bytes(content(0, "a")),
            bytes(finish(0, "stop")),
            Step::Stall,
        ],
    );
    let choice = soon(completions.first()).await.unwrap();
    choice.cancel();
    assert_eq!(outcome(&choice).await.end.as_str(), "finished");
}

#[tokio::test(start_paused = true)]
async fn u14_an_ended_choice_that_is_discarded_or_cancelled_costs_no_usage() {
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":7}}\n\n";
    for n in [1, 2] {
        let mut steps: Vec<_> = (0..n)
            .flat_map(|i| [bytes(content(i, "a")), bytes(finish(i, "stop"))])
            .collect();
        steps.extend([
            Step::Pause(Duration::from_secs(1)),
            bytes(usage),
            bytes(DONE),
        ]);
        let completions = read_with(Completions::builder().expect_choices(n), steps);
        for index in 0..n {
            let choice = soon(completions.choice(index)).await.unwrap();
            soon(choice.finished()).await.unwrap();
            choice.cancel();
            choice.discard();
        }
        soon(completions.closed()).await.unwrap();
        assert_eq!(soon(completions.usage()).await.total_tokens, Some(7));
    }
}

#[tokio::test(start_paused = true)]
async fn one_finished_choice_keeps_the_body_open_for_its_usage() {
    let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":7}}\n\n";
    let second = Step::Pause(Duration::from_secs(1));
    let steps = [
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        bytes(finish(0, "stop")),
        second,
        bytes(usage),
        bytes(DONE),
    ];
    let completions = read_with(Completions::builder().expect_choices(2), steps);
    let winner = soon(completions.choice(0)).await.unwrap();
    soon(winner.finished()).await.unwrap();
    soon(completions.choice(1)).await.unwrap().cancel();
    soon(completions.closed()).await.unwrap();
    assert_eq!(soon(completions.usage()).await.total_tokens, Some(7));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_choice_leaves_the_stream_open_for_choices_that_have_not_appeared() {
    let steps = [
        bytes(content(0, "a")),
        Step::Pause(Duration::from_secs(1)),
        bytes(content(1, "b")),
        bytes(finish(1, "stop")),
        bytes(DONE),
    ];
    let completions = read_with(Completions::builder().expect_choices(2), steps);
    soon(completions.choice(0)).await.unwrap().cancel();
    let other = soon(completions.choice(1)).await.unwrap();
    assert_eq!(outcome(&other).await.message.content, "b");
}
