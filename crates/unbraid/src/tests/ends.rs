//! Every end of a choice, reached through the actors.

use std::time::Duration;

use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{all_choices, ends, read, read_with, soon};
use crate::{Completions, StreamError, TimedOut, Timeout};

/// Choice 0 finishes and ends; choice 1 is open.
fn one_of_two() -> Vec<Step> {
    vec![
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        bytes(finish(0, "stop")),
        bytes(content(1, "c")),
    ]
}

#[track_caller]
fn check(actual: &[String], expected: &[&str]) {
    assert_eq!(actual, expected);
}

#[tokio::test(start_paused = true)]
async fn finished_and_done_without_finish() {
    let mut steps = one_of_two();
    steps.push(bytes(DONE));
    let completions = read(steps);
    check(
        &ends(&completions).await,
        &["0 finished \"a\"", "1 done_without_finish \"bc\""],
    );
    assert!(soon(completions.closed()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn s22_interrupted_at_the_end_of_the_bytes() {
    let completions = read(one_of_two());
    check(
        &ends(&completions).await,
        &["0 finished \"a\"", "1 interrupted \"bc\""],
    );
    assert!(soon(completions.closed()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn x01_a_server_error_ends_what_is_open() {
    let mut steps = one_of_two();
    steps.push(bytes(
        "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n",
    ));
    steps.push(Step::Stall);
    let completions = read(steps);
    check(
        &ends(&completions).await,
        &["0 finished \"a\"", "1 server_error \"bc\""],
    );
    let (_, error) = all_choices(&completions).await;
    let Some(StreamError::Server(error)) = error else {
        panic!("{error:?}")
    };
    assert_eq!(error.message(), Some("overloaded"));
}

#[tokio::test(start_paused = true)]
async fn x15_an_error_before_any_choice_is_the_first_item() {
    let completions = read([bytes("data: {\"error\":\"boom\"}\n\n")]);
    let (choices, error) = all_choices(&completions).await;
    assert!(choices.is_empty());
    assert!(matches!(error, Some(StreamError::Server(_))));
    assert!(matches!(
        soon(completions.first()).await,
        Err(StreamError::Server(_))
    ));
    assert!(soon(completions.choice(0)).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn x14_a_transport_error_keeps_what_had_arrived() {
    let mut steps = one_of_two();
    steps.push(Step::Fail);
    let completions = read(steps);
    check(
        &ends(&completions).await,
        &["0 finished \"a\"", "1 transport \"bc\""],
    );
    let Err(StreamError::Transport(error)) = soon(completions.closed()).await else {
        panic!()
    };
    assert!(error.bytes > 0);
    let source = std::error::Error::source(&*error).map(ToString::to_string);
    assert_eq!(source.as_deref(), Some("the peer closed the connection"));
}

#[tokio::test(start_paused = true)]
async fn x14_an_event_that_lacks_only_its_blank_line_comes_before_the_error() {
    let whole = content(1, "c");
    let steps = || {
        let mut steps = one_of_two();
        steps.push(bytes(whole.trim_end()));
        steps
    };
    let died = read(steps().into_iter().chain([Step::Fail]));
    let expected = ["0 finished \"a\"", "1 transport \"bcc\""];
    check(&ends(&died).await, &expected);
    let silent = Completions::builder().idle_timeout(Duration::from_secs(1));
    let silent = read_with(silent, steps().into_iter().chain([Step::Stall]));
    let expected = ["0 finished \"a\"", "1 timed_out \"bcc\""];
    check(&ends(&silent).await, &expected);
    let flat =
        crate::Updates::from_byte_stream(Script::new(steps().into_iter().chain([Step::Fail])));
    let flat: Vec<_> = futures::StreamExt::collect(flat).await;
    let (error, updates) = flat.split_last().unwrap();
    assert!(matches!(error, Err(StreamError::Transport(_))));
    let last = updates.last().unwrap().as_ref().unwrap();
    assert_eq!(last.content, Some("c".into()));
}

#[tokio::test(start_paused = true)]
async fn an_error_after_every_end_is_reported_by_closed_only() {
    let steps = [
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        Step::Pause(Duration::from_secs(1)),
        Step::Fail,
    ];
    let completions = read(steps);
    let (choices, error) = all_choices(&completions).await;
    assert_eq!(choices.len(), 1);
    assert!(error.is_none());
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Transport(_))
    ));
}

#[tokio::test(start_paused = true)]
async fn cancelled_by_the_caller() {
    let mut steps = one_of_two();
    steps.push(Step::Stall);
    let completions = read(steps);
    soon(completions.choice(1)).await.unwrap();
    completions.cancel();
    check(
        &ends(&completions).await,
        &["0 finished \"a\"", "1 cancelled \"bc\""],
    );
    assert!(matches!(
        soon(completions.closed()).await,
        Err(StreamError::Cancelled)
    ));
}

#[tokio::test(start_paused = true)]
async fn l10_each_timeout_names_itself() {
    let silent = || vec![bytes(content(0, "a")), Step::Stall];
    let second = Duration::from_secs(1);
    for (builder, steps, timeout, end) in [
        (
            Completions::builder().first_byte_timeout(second),
            vec![Step::Stall],
            Timeout::FirstByte,
            None,
        ),
        (
            Completions::builder().idle_timeout(second),
            silent(),
            Timeout::Idle,
            Some("0 timed_out \"a\""),
        ),
        (
            Completions::builder().total_timeout(second),
            silent(),
            Timeout::Total,
            Some("0 timed_out \"a\""),
        ),
    ] {
        let completions = read_with(builder, steps);
        check(&ends(&completions).await, end.as_slice());
        let Err(StreamError::TimedOut(over)) = soon(completions.closed()).await else {
            panic!()
        };
        assert_eq!((over.timeout, over.after), (timeout, second));
    }
}

#[tokio::test(start_paused = true)]
async fn s04_comments_keep_a_stream_alive_but_not_past_its_total() {
    let beat = Duration::from_millis(900);
    let mut steps = vec![bytes(content(0, "a"))];
    for _ in 0..10 {
        steps.extend([Step::Pause(beat), bytes(": keep-alive\n\n")]);
    }
    steps.extend([bytes(finish(0, "stop")), bytes(DONE)]);
    let idle = Completions::builder().idle_timeout(Duration::from_secs(1));
    check(
        &ends(&read_with(idle.clone(), steps.clone())).await,
        &["0 finished \"a\""],
    );
    let total = idle.total_timeout(Duration::from_secs(5));
    check(
        &ends(&read_with(total, steps)).await,
        &["0 timed_out \"a\""],
    );
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_total_timeout_ends_the_stream_and_its_error_states_the_whole() {
    let [rest, whole] = [2, 5].map(Duration::from_secs);
    let builder = Completions::builder().rest_of_total_timeout(rest, whole);
    let steps = || vec![bytes(content(0, "a")), Step::Stall];
    for (builder, length, stated) in [
        (builder.clone(), rest, whole),
        (builder.total_timeout(rest), rest, rest),
    ] {
        let started = tokio::time::Instant::now();
        let completions = read_with(builder, steps());
        let closed = soon(completions.closed()).await;
        let expected = TimedOut::new(Timeout::Total, stated);
        assert!(matches!(closed, Err(StreamError::TimedOut(over)) if over == expected));
        let late = started.elapsed().saturating_sub(length);
        assert!(started.elapsed() >= length && late < Duration::from_millis(50));
    }
}

#[tokio::test(start_paused = true)]
async fn the_total_timeout_applies_to_a_source_that_is_never_idle() {
    use futures::{StreamExt, stream};
    let endless = stream::repeat(())
        .map(|()| Ok::<_, std::io::Error>(": x\n\n"))
        .then(|read| async {
            tokio::time::advance(Duration::from_millis(10)).await;
            read
        });
    let completions = Completions::builder()
        .total_timeout(Duration::from_secs(2))
        .from_byte_stream(endless);
    let Err(StreamError::TimedOut(over)) = soon(completions.closed()).await else {
        panic!()
    };
    assert_eq!(over.timeout, Timeout::Total);
}

#[tokio::test(start_paused = true)]
async fn idle_time_ends_a_choice_that_has_its_reason() {
    let steps = [
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        bytes(finish(0, "stop")),
        Step::Stall,
    ];
    let completions = read(steps);
    let choice = soon(completions.first()).await.unwrap();
    let before = tokio::time::Instant::now();
    let finished = soon(choice.finished()).await.unwrap();
    assert_eq!(finished.end.as_str(), "finished");
    assert_eq!(before.elapsed(), Duration::from_millis(250));
    let other = soon(completions.choice(1)).await.unwrap();
    assert!(
        tokio::time::timeout(Duration::from_secs(60), other.finished())
            .await
            .is_err(),
        "it is open"
    );
}

#[tokio::test(start_paused = true)]
async fn l01_nothing_at_all_is_an_error() {
    for steps in [
        vec![],
        vec![bytes("")],
        vec![bytes(": hello\n\n")],
        vec![bytes(DONE)],
    ] {
        let completions = read(steps.clone());
        let (_, error) = all_choices(&completions).await;
        assert!(
            matches!(error, Some(StreamError::Empty { .. })),
            "{steps:?}: {error:?}"
        );
        assert!(matches!(
            soon(completions.first()).await,
            Err(StreamError::Empty { .. })
        ));
        assert_eq!(
            soon(completions.aggregate()).await["choices"],
            serde_json::json!([])
        );
    }
}
