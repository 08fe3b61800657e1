//! The stream of outcomes: one per choice, in the order of the ends.

use std::time::Duration;

use futures::StreamExt;
use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{read, soon};
use crate::{Completions, Outcomes, Source, StreamError};

const SECOND: Duration = Duration::from_secs(1);

/// Each outcome as `choice end "text"`, and the error at the end.
async fn all(mut outcomes: Outcomes) -> (Vec<String>, Option<StreamError>) {
    let mut seen = Vec::new();
    loop {
        match soon(outcomes.next()).await {
            Some(Ok(outcome)) => seen.push(format!(
                "{} {} {:?}",
                outcome.choice,
                outcome.end.as_str(),
                outcome.message.content
            )),
            Some(Err(error)) => {
                assert!(
                    soon(outcomes.next()).await.is_none(),
                    "the error comes once"
                );
                return (seen, Some(error));
            }
            None => return (seen, None),
        }
    }
}

fn three_choices() -> Vec<Step> {
    vec![
        bytes(content(0, "a") + &content(1, "b") + &content(2, "c")),
        bytes(finish(2, "stop")),
        Step::Pause(SECOND),
        bytes(finish(0, "stop") + &finish(1, "length")),
        bytes(DONE),
    ]
}

const IN_ORDER: [&str; 3] = ["2 finished \"c\"", "0 finished \"a\"", "1 finished \"b\""];

#[tokio::test(start_paused = true)]
async fn each_choice_has_one_outcome_as_soon_as_it_ends() {
    let completions = read(three_choices());
    let mut outcomes = completions.outcomes();
    let first = soon(outcomes.next()).await.unwrap().unwrap();
    assert_eq!(first.choice.0, 2);
    assert!(!completions.is_closed(), "it does not wait for the stream");
    let (rest, error) = all(outcomes).await;
    assert_eq!(rest, IN_ORDER[1..]);
    assert!(error.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_late_subscriber_gets_the_outcomes_in_the_order_of_the_ends() {
    let completions = read(three_choices());
    soon(completions.closed()).await.unwrap();
    assert_eq!(all(completions.outcomes()).await.0, IN_ORDER);
    // All in one read.
    let body: String = [content(0, "a"), content(1, "b"), content(2, "c")].concat();
    let ends = [finish(2, "stop"), finish(0, "stop"), finish(1, "length")].concat();
    let completions = read([bytes(body + &ends + DONE)]);
    assert_eq!(all(completions.outcomes()).await.0, IN_ORDER);
}

#[tokio::test(start_paused = true)]
async fn outcomes_of_several_sources_are_ordered_by_time() {
    let source = |pause: u32| {
        let end = [
            Step::Pause(SECOND * pause),
            bytes(finish(0, "stop")),
            bytes(DONE),
        ];
        let steps = [bytes(content(0, "a"))].into_iter().chain(end);
        Source::from_byte_stream(Script::new(steps))
    };
    let completions = Completions::merge([source(3), source(1), source(2)]);
    let expected = ["1 finished \"a\"", "2 finished \"a\"", "0 finished \"a\""];
    assert_eq!(all(completions.outcomes()).await.0, expected);
    assert_eq!(
        all(completions.outcomes()).await.0,
        expected,
        "in a replay, too"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cut_choice_has_its_outcome_before_the_error() {
    let completions = read([
        bytes(content(0, "a") + &content(1, "b")),
        bytes(finish(0, "stop")),
        bytes(content(1, "c")),
        Step::Fail,
    ]);
    let (outcomes, error) = all(completions.outcomes()).await;
    assert_eq!(outcomes, ["0 finished \"a\"", "1 transport \"bc\""]);
    assert!(matches!(error, Some(StreamError::Transport(_))));
}

#[tokio::test(start_paused = true)]
async fn an_error_that_ended_no_choice_is_not_reported() {
    let completions = read([bytes(content(0, "a")), bytes(finish(0, "stop")), Step::Fail]);
    let (outcomes, error) = all(completions.outcomes()).await;
    assert_eq!(outcomes, ["0 finished \"a\""]);
    assert!(error.is_none());
    assert!(soon(completions.closed()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_a_choice_has_an_error_and_no_outcome() {
    let (outcomes, error) = all(read([Step::Fail]).outcomes()).await;
    assert!(outcomes.is_empty());
    assert!(matches!(error, Some(StreamError::Transport(_))));
}

#[tokio::test(start_paused = true)]
async fn a_clone_continues_on_its_own_and_dropping_a_future_loses_nothing() {
    let completions = read(three_choices());
    let mut outcomes = completions.outcomes();
    soon(outcomes.next()).await.unwrap().unwrap();
    assert!(futures::poll!(std::pin::pin!(outcomes.next())).is_pending());
    let clone = outcomes.clone();
    assert_eq!(all(outcomes).await.0, IN_ORDER[1..]);
    assert_eq!(all(clone).await.0, IN_ORDER[1..]);
}

#[tokio::test(start_paused = true)]
async fn an_async_judge_cancels_the_rest() {
    let completions = read([
        bytes(content(0, "no") + &content(1, "yes") + &content(2, "slow")),
        bytes(finish(0, "stop")),
        bytes(finish(1, "stop")),
        bytes(": the stream goes on\n\n"),
        Step::Stall,
    ]);
    let judge = async |text: &str| {
        tokio::time::sleep(SECOND).await;
        text == "yes"
    };
    let mut outcomes = completions.outcomes();
    let winner = loop {
        let outcome = soon(outcomes.next()).await.unwrap().unwrap();
        if judge(&outcome.message.content).await {
            completions.cancel();
            break outcome;
        }
    };
    assert_eq!(winner.choice.0, 1);
    let rest: Vec<_> = soon(outcomes.by_ref().collect()).await;
    let ends: Vec<_> = rest.iter().flatten().map(|end| end.end.as_str()).collect();
    assert_eq!(ends, ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn outcomes_keep_the_source_open() {
    let completions = read(three_choices());
    let outcomes = completions.outcomes();
    drop(completions);
    assert_eq!(all(outcomes).await.0, IN_ORDER);
}
