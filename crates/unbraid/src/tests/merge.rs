//! Several sources as one completion: indices, ends, usage, and which source is closed when.

mod dialects;
mod races;

use std::time::Duration;

use futures::executor::block_on;
use unbraid_testkit::script::{DONE, Probe, Script, Step, bytes, content, finish};

use super::{all_choices, ends, outcome, soon};
use crate::{ChoiceIndex, Completions, Event, Limit, Source, StreamError, UsageSource};

const SECOND: Duration = Duration::from_secs(1);

fn usage(prompt: u64, completion: u64) -> Step {
    let total = prompt + completion;
    bytes(format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"total_tokens\":{total}}}}}\n\n"
    ))
}

/// A complete answer of one choice.
pub(super) fn answer(text: &str) -> Vec<Step> {
    vec![
        bytes(content(0, text)),
        bytes(finish(0, "stop")),
        usage(5, 2),
        bytes(DONE),
    ]
}

pub(super) fn source(steps: impl IntoIterator<Item = Step>) -> Source {
    Source::from_byte_stream(Script::new(steps))
}

fn probed(steps: impl IntoIterator<Item = Step>) -> (Source, Probe) {
    let script = Script::new(steps);
    let probe = script.probe();
    (Source::from_byte_stream(script), probe)
}

/// Lets every other task run until all of them wait.
async fn run_other_tasks() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

#[tokio::test(start_paused = true)]
async fn sources_are_choices_in_their_order() {
    let slow = [Step::Pause(SECOND)].into_iter().chain(answer("a"));
    let completions = Completions::merge([source(slow), source(answer("b")), source(answer("c"))]);
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    let order: Vec<u32> = choices.iter().map(|choice| choice.index().0).collect();
    assert_eq!(order, [1, 2, 0], "by appearance");
    for (choice, text) in choices.iter().zip(["b", "c", "a"]) {
        assert_eq!(outcome(choice).await.message.content, text);
        assert_eq!(outcome(choice).await.choice, choice.index());
    }
    assert!(soon(completions.closed()).await.is_ok());
    let usage = soon(completions.usage()).await;
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (Some(15), Some(6))
    );
    assert_eq!(usage.total_tokens, Some(21));
    assert_eq!(usage.source, UsageSource::Reported);
    let each: Vec<_> = (0..3).map(|index| (ChoiceIndex(index), 2)).collect();
    assert_eq!(usage.per_choice, each);
    assert_eq!(completions.metadata().id.as_deref(), Some("c"));
    let response = soon(completions.aggregate()).await;
    assert_eq!(response["choices"][2]["message"]["content"], "c");
    assert_eq!(response["usage"]["prompt_tokens"], 15);
}

#[tokio::test(start_paused = true)]
async fn sources_that_use_the_same_index_have_a_choice_each() {
    let (completions, source_set) = Completions::builder().source_set();
    let slow = [Step::Pause(SECOND)].into_iter().chain(answer("b"));
    source_set.add(source(slow), 0..2).unwrap();
    source_set.add(source(answer("a")), 0..1).unwrap();
    drop(source_set);
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    let mut texts = Vec::new();
    for choice in &choices {
        let outcome = outcome(choice).await;
        texts.push((outcome.choice.0, outcome.message.content));
    }
    assert_eq!(texts, [(0, "a".to_owned()), (0, "b".to_owned())]);
    let first = soon(completions.choice(0)).await.unwrap();
    assert_eq!(outcome(&first).await.message.content, "a");
    let response = soon(completions.aggregate()).await;
    let texts = response["choices"].as_array().unwrap().iter();
    let texts: Vec<_> = texts.map(|choice| &choice["message"]["content"]).collect();
    assert_eq!(texts, ["a", "b"]);
    assert_eq!(soon(completions.usage()).await.completion_tokens, Some(4));
}

#[tokio::test(start_paused = true)]
async fn timing_of_a_source_added_later_counts_from_the_start_of_the_completion() {
    let (completions, source_set) = Completions::builder().source_set();
    source_set.add(source(answer("a")), 0..1).unwrap();
    tokio::time::sleep(SECOND).await;
    let late = [Step::Pause(SECOND)].into_iter().chain(answer("b"));
    source_set.add(source(late), 1..2).unwrap();
    drop(source_set);
    let choice = soon(completions.choice(1)).await.unwrap();
    outcome(&choice).await;
    let timing = choice.timing();
    assert_eq!(
        (timing.first_delta, timing.end),
        (Some(2 * SECOND), Some(2 * SECOND))
    );
}

#[tokio::test(start_paused = true)]
async fn e30_is_reported_for_the_whole_completion() {
    let codes = |completions: &Completions| -> Vec<String> {
        let warnings = completions.warnings();
        let text = |warning: &crate::Warning| format!("{}: {}", warning.code, warning.message);
        warnings.iter().map(text).collect()
    };
    let (made_up, source_set) = Completions::builder().source_set();
    let first = source_set.add(source(answer("a")), 0..2).unwrap();
    soon(first.closed()).await.unwrap();
    source_set.add(source(answer("b")), 1..2).unwrap();
    drop(source_set);
    soon(made_up.closed()).await.unwrap();
    assert_eq!(codes(&made_up), Vec::<String>::new());
    let (missing, source_set) = Completions::builder().source_set();
    source_set.add(source(answer("a")), 0..3).unwrap();
    drop(source_set);
    soon(missing.closed()).await.unwrap();
    assert_eq!(codes(&missing), ["E30: expected 3 choices, got 1"]);
    let mut events = missing.events();
    let mut warned = 0;
    while let Some(Ok(stamped)) = soon(events.next()).await {
        warned += usize::from(matches!(stamped.event, Event::Warning(_)));
    }
    assert_eq!(warned, 1);
}

#[tokio::test(start_paused = true)]
async fn no_expected_choices_count_as_one_for_each_source() {
    let builder = Completions::builder().expect_choices(0);
    let completions = builder.merge([source(answer("a")), source(answer("b"))]);
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"a\"", "1 finished \"b\""]
    );
}

#[tokio::test(start_paused = true)]
async fn the_events_of_the_stream_are_emitted_once_and_in_order() {
    let completions = Completions::merge([
        source(answer("a")),
        source([Step::Fail]),
        source(answer("b")),
    ]);
    let mut events = completions.events();
    let mut own = Vec::new();
    while let Some(event) = soon(events.next()).await {
        let event = event.expect("one source failed, not the stream");
        if event.choice.is_none() {
            own.push((event.seq, event.event));
        }
    }
    let [(0, Event::Usage(usage))] = own.as_slice() else {
        panic!("{own:?}");
    };
    assert_eq!(
        usage.prompt_tokens,
        Some(10),
        "a source that brought nothing is left out"
    );
}

#[tokio::test(start_paused = true)]
async fn a_failed_source_is_the_error_of_its_choices() {
    let completions = Completions::builder().expect_choices(2).merge([
        source([bytes(content(1, "x")), Step::Fail]),
        source([bytes("<html>")]),
        source([
            bytes(content(0, "y")),
            bytes(finish(0, "stop")),
            bytes(DONE),
        ]),
    ]);
    let (choices, error) = all_choices(&completions).await;
    assert!(error.is_none());
    let mut ends = Vec::new();
    for choice in &choices {
        let finished = outcome(choice).await;
        ends.push((finished.choice.0, finished.end.as_str()));
    }
    ends.sort_unstable();
    let expected = [
        (1, "transport"),
        (2, "transport"),
        (3, "transport"),
        (4, "finished"),
    ];
    assert_eq!(ends, expected);
    let third = soon(completions.choice(2)).await.unwrap();
    let error = soon(third.text()).await.unwrap_err();
    let chain = std::iter::successors(Some(&error as &dyn std::error::Error), |error| {
        error.source()
    });
    let messages: Vec<String> = chain.map(ToString::to_string).collect();
    let expected = [
        "choice 2: the source failed after 6 bytes",
        "not a stream of completion chunks: it appears to be an error page (HTML)",
    ];
    assert_eq!(messages, expected);
    assert!(soon(completions.closed()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_stream_fails_only_if_all_sources_failed() {
    let completions = Completions::merge([source([Step::Fail]), source([Step::Panic])]);
    assert_eq!(
        ends(&completions).await,
        ["0 transport \"\"", "1 lost \"\""]
    );
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Transport(_))
    ));
    let empty = Completions::merge([]);
    assert!(matches!(
        soon(empty.closed()).await,
        Err(StreamError::Empty { .. })
    ));
    assert!(matches!(
        soon(empty.first()).await,
        Err(StreamError::Empty { .. })
    ));
}

#[tokio::test(start_paused = true)]
async fn a_failed_source_of_many_choices_opens_no_more_than_the_limit_allows() {
    for (limit, expected) in [(None, crate::limits::MAX_CHOICES), (Some(3), 3)] {
        let mut builder = Completions::builder().expect_choices(40_000);
        if let Some(choices) = limit {
            builder = builder.limits(crate::Limits::default().with_choices(choices));
        }
        let completions = builder.merge([source([Step::Fail]), source(answer("b"))]);
        let (choices, error) = all_choices(&completions).await;
        assert!(error.is_none());
        assert_eq!(choices.len(), expected + 1);
        for choice in &choices {
            let end = if choice.index().0 == 40_000 {
                "finished"
            } else {
                "transport"
            };
            assert_eq!(outcome(choice).await.end.as_str(), end);
        }
    }
}

/// Quadratic time would be minutes for this many choices.
#[tokio::test(start_paused = true)]
async fn a_failed_source_opens_its_choices_in_linear_time() {
    const CHOICES: u32 = 100_000;
    let limits = crate::Limits::default().with_choices(CHOICES as usize);
    let builder = Completions::builder()
        .expect_choices(CHOICES)
        .limits(limits);
    let completions = builder.merge([source([Step::Fail])]);
    assert!(soon(completions.closed()).await.is_err());
    let last = soon(completions.choice(CHOICES - 1)).await.unwrap();
    assert_eq!(outcome(&last).await.end.as_str(), "transport");
}

#[test]
fn a_merge_without_a_runtime_is_an_error() {
    let completions = Completions::merge([source(answer("a"))]);
    assert!(matches!(
        block_on(completions.closed()),
        Err(StreamError::NoRuntime)
    ));
}

#[tokio::test(start_paused = true)]
async fn indices_follow_the_order_of_the_sources_and_no_source_takes_those_of_another() {
    let two = |a: &str, b: &str| {
        [
            bytes(content(1, b)),
            bytes(content(0, a)),
            bytes(content(7, "too many")),
            bytes(finish(0, "stop")),
            bytes(finish(1, "stop")),
            bytes(DONE),
        ]
    };
    let completions = Completions::builder()
        .expect_choices(2)
        .merge([source(two("a", "b")), source(two("c", "d"))]);
    let mut ends = ends(&completions).await;
    ends.sort_unstable();
    let expected = [
        "0 finished \"a\"",
        "1 finished \"b\"",
        "2 finished \"c\"",
        "3 finished \"d\"",
    ];
    assert_eq!(ends, expected);
    let refused = completions.warnings();
    assert_eq!(
        refused
            .iter()
            .filter(|warning| warning.code == "E11")
            .count(),
        2
    );
    let closed = soon(completions.closed()).await;
    let Err(StreamError::Limit(limit)) = closed else {
        panic!("{closed:?}");
    };
    assert_eq!((limit.limit, limit.max), (Limit::Choices, 2));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_choice_closes_its_own_source() {
    let (first, first_probe) = probed([bytes(content(0, "a")), Step::Stall]);
    let (second, second_probe) = probed([bytes(content(0, "b")), Step::Stall]);
    let completions = Completions::merge([first, second]);
    let (one, two) = (
        soon(completions.choice(0)).await.unwrap(),
        soon(completions.choice(1)).await.unwrap(),
    );
    one.cancel();
    assert_eq!(outcome(&one).await.end.as_str(), "cancelled");
    run_other_tasks().await;
    assert!(first_probe.closed() && !second_probe.closed());
    assert_eq!(two.snapshot().content, "b");
    completions.cancel();
    assert_eq!(outcome(&two).await.end.as_str(), "cancelled");
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Cancelled)
    ));
    assert!(second_probe.closed());
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_closes_every_source() {
    let (first, first_probe) = probed([bytes(content(0, "a")), Step::Stall]);
    let (second, second_probe) = probed([Step::Stall]);
    let completions = Completions::merge([first, second]);
    let choice = soon(completions.choice(0)).await.unwrap();
    drop(completions);
    run_other_tasks().await;
    assert!(!first_probe.closed() && !second_probe.closed());
    drop(choice);
    run_other_tasks().await;
    assert!(first_probe.closed() && second_probe.closed());
}

#[tokio::test(start_paused = true)]
async fn sources_can_be_added_until_the_completion_has_no_handle() {
    let (completions, source_set) = Completions::builder().source_set();
    let first = source_set.add(source(answer("a")), 0..1).unwrap();
    assert!(soon(first.closed()).await.is_ok());
    assert_eq!(first.choices(), 1);
    run_other_tasks().await;
    let waits = tokio::time::timeout(SECOND, completions.closed()).await;
    assert!(waits.is_err(), "more sources may be added");
    let second = source_set.add(source([Step::Stall]), 1..2).unwrap();
    drop(source_set);
    completions.cancel();
    assert!(matches!(
        soon(second.closed()).await,
        Err(StreamError::Cancelled)
    ));
    assert!(
        soon(completions.closed()).await.is_ok(),
        "one of the two was added"
    );

    let (completions, source_set) = Completions::builder().source_set();
    completions.cancel();
    let (refused, probe) = probed([Step::Stall]);
    assert!(source_set.add(refused, 0..1).is_none());
    assert!(probe.closed());
    drop(source_set);
    assert!(soon(completions.closed()).await.is_err());

    let (completions, source_set) = Completions::builder().source_set();
    drop(completions);
    assert!(source_set.add(source([Step::Stall]), 0..1).is_none());
}
