//! Every limit at its bound and one past it, through the actors; the core tests their arithmetic.

use unbraid_core::limits::DELTA_COST;
use unbraid_testkit::script::{DONE, bytes, content, finish};

use super::{all_choices, ends, read, read_with, soon};
use crate::{Completions, Limit, Limits, StreamError};

#[track_caller]
fn check(error: Option<StreamError>, limit: Limit, max: u64) {
    let Some(StreamError::Limit(exceeded)) = error else {
        panic!("{error:?}")
    };
    assert_eq!((exceeded.limit, exceeded.max), (limit, max));
}

#[tokio::test(start_paused = true)]
async fn e07_the_largest_index_is_an_index_like_any_other() {
    let completions = read([
        bytes(content(u32::MAX, "a")),
        bytes(finish(u32::MAX, "stop")),
        bytes(DONE),
    ]);
    assert_eq!(ends(&completions).await, ["4294967295 finished \"a\""]);
    assert!(soon(completions.choice(u32::MAX)).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn e11_128_choices_are_accepted_and_one_more_is_refused() {
    let round = |n: u32| {
        let mut steps: Vec<_> = (0..n)
            .rev()
            .map(|choice| bytes(content(choice, "x")))
            .collect();
        steps.extend((0..n).map(|choice| bytes(finish(choice, "stop"))));
        steps.push(bytes(DONE));
        steps
    };
    let completions = read(round(128));
    let (choices, error) = all_choices(&completions).await;
    assert_eq!(choices.len(), 128);
    assert!(error.is_none());
    assert!(
        choices
            .iter()
            .rev()
            .zip(0..)
            .all(|(choice, index)| choice.index().0 == index)
    );

    let completions = read(round(129));
    let (choices, error) = all_choices(&completions).await;
    assert_eq!(choices.len(), 128);
    check(error, Limit::Choices, 128);
    for choice in choices {
        assert_eq!(
            soon(choice.finished()).await.unwrap().end.as_str(),
            "finished"
        );
    }
    assert!(
        completions
            .warnings()
            .iter()
            .any(|warning| warning.code == "E11")
    );
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_choice_end_that_choice() {
    let cost = 4 + DELTA_COST;
    let steps = |n: usize| {
        let mut steps = vec![bytes(content(1, "b"))];
        steps.extend((0..n).map(|_| bytes(content(0, "four"))));
        steps.extend([bytes(content(1, "B")), bytes(DONE)]);
        steps
    };
    let builder = || Completions::builder().limits(Limits::default().with_choice_bytes(3 * cost));
    let at_bound = read_with(builder(), steps(3));
    assert_eq!(
        ends(&at_bound).await,
        [
            "1 done_without_finish \"bB\"",
            "0 done_without_finish \"fourfourfour\""
        ]
    );
    let past = read_with(builder(), steps(4));
    assert_eq!(
        ends(&past).await,
        [
            "1 done_without_finish \"bB\"",
            "0 limit_exceeded \"fourfourfour\""
        ]
    );
    assert!(soon(past.closed()).await.is_ok(), "only the choice ended");
}

#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_completion_end_it() {
    let cost = 4 + DELTA_COST;
    let steps = |n: u32| {
        (0..n)
            .map(|choice| bytes(content(choice, "four")))
            .chain([bytes(DONE)])
            .collect::<Vec<_>>()
    };
    let builder =
        || Completions::builder().limits(Limits::default().with_completion_bytes(3 * cost));
    assert!(soon(read_with(builder(), steps(3)).closed()).await.is_ok());
    let past = read_with(builder(), steps(4));
    let (choices, error) = all_choices(&past).await;
    check(error, Limit::CompletionBytes, 3 * cost);
    assert_eq!(choices.len(), 4);
    assert_eq!(
        ends(&past).await[..2],
        ["0 limit_exceeded \"four\"", "1 limit_exceeded \"four\""]
    );
}

#[tokio::test(start_paused = true)]
async fn t45_a_call_too_many_ends_its_choice() {
    let call = |index: usize| {
        bytes(format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"i{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}]}}}}]}}\n\n"
        ))
    };
    let steps = |n: usize| {
        (0..n)
            .map(call)
            .chain([bytes(content(1, "b")), bytes(DONE)])
            .collect::<Vec<_>>()
    };
    let builder = || Completions::builder().limits(Limits::default().with_tool_calls(2));
    assert_eq!(
        ends(&read_with(builder(), steps(2))).await,
        ["0 done_without_finish \"\"", "1 done_without_finish \"b\""]
    );
    assert_eq!(
        ends(&read_with(builder(), steps(3))).await,
        ["0 limit_exceeded \"\"", "1 done_without_finish \"b\""]
    );
}

#[tokio::test(start_paused = true)]
async fn s31_a_line_or_an_event_too_long_ends_the_stream() {
    let line = content(0, "0123456789").trim_end().len();
    let steps = || {
        [
            bytes(content(0, "a")),
            bytes(content(0, "0123456789")),
            bytes(DONE),
        ]
    };
    let limits = |line_bytes, event_bytes| {
        Completions::builder().limits(
            Limits::default()
                .with_line_bytes(line_bytes)
                .with_event_bytes(event_bytes),
        )
    };
    let data = line - "data: ".len();
    assert!(
        soon(read_with(limits(line, data), steps()).closed())
            .await
            .is_ok()
    );
    let past = read_with(limits(line - 1, data), steps());
    check(
        soon(past.closed()).await.err(),
        Limit::Line,
        line as u64 - 1,
    );
    assert_eq!(ends(&past).await, ["0 limit_exceeded \"a\""]);
    let past = read_with(limits(line, data - 1), steps());
    check(
        soon(past.closed()).await.err(),
        Limit::Event,
        data as u64 - 1,
    );
}
