//! The judge of a race: what it may call, and what its panic leaves.

use std::{cell::Cell, sync::mpsc, thread, time::Duration};

use unbraid_testkit::script::{DONE, Probe, Script, Step, bytes, content, finish};

use super::{ends, soon};
use crate::{Choice, Completions, StreamError};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a test in a runtime and a thread of its own, so that a deadlock fails it.
fn without_deadlock<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let (done, waits) = mpsc::channel();
    thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().start_paused(true);
        runtime.build().unwrap().block_on(test());
        done.send(()).unwrap();
    });
    let done = waits.recv_timeout(Duration::from_secs(30));
    assert!(done.is_ok(), "the test deadlocked or panicked");
}

#[test]
fn a_judge_may_use_every_handle() {
    without_deadlock(|| async {
        let steps = [
            bytes(content(0, "a") + &content(1, "b")),
            Step::Pause(SECOND),
            bytes(content(0, "c")),
            bytes(finish(0, "stop")),
            bytes(DONE),
        ];
        let completions = Completions::from_byte_stream(Script::new(steps));
        let choices: Vec<Choice> = [
            soon(completions.choice(0)).await.unwrap(),
            soon(completions.choice(1)).await.unwrap(),
        ]
        .into();
        let judged = Cell::new(0);
        let winners = soon(completions.first_where(1, |transcript| {
            judged.set(judged.get() + 1);
            for choice in &choices {
                let message = choice.snapshot();
                if choice.index() == transcript.index() {
                    assert_eq!(message, transcript.message());
                }
                assert_eq!(choice.timing().first_delta, Some(Duration::ZERO));
                assert_eq!(choice.role(), None);
                assert!(!format!("{choice:?}").is_empty());
            }
            assert!(completions.warnings().is_empty());
            assert_eq!(completions.metadata().id.as_deref(), Some("c"));
            assert!(!format!("{completions:?}").is_empty());
            transcript.finish_reason().is_some()
        }));
        let winners = winners.await;
        assert!(judged.get() >= 3);
        assert_eq!(winners[0].index().0, 0);
    });
}

#[test]
fn a_judge_that_panics_leaves_the_choice_unchanged() {
    without_deadlock(|| async {
        let steps = [
            bytes(content(0, "a")),
            bytes(finish(0, "stop")),
            bytes(DONE),
        ];
        let completions = Completions::from_byte_stream(Script::new(steps));
        let race = completions.first_where(1, |_| panic!("on purpose"));
        let race = std::panic::AssertUnwindSafe(race);
        assert!(futures::FutureExt::catch_unwind(race).await.is_err());
        let choice = soon(completions.first()).await.unwrap();
        assert_eq!(soon(choice.text()).await.unwrap(), "a");
    });
}

/// The reader must also close the winners' source if it delivers from within a poll.
#[tokio::test(start_paused = true)]
async fn the_source_closes_with_its_last_winner_however_the_end_arrives() {
    let (script, probe): (Script, Probe) = {
        let mut steps = vec![bytes(content(0, "a") + &content(1, "b"))];
        // One read at a time, so that the reader stops polling the source again after each of them.
        for _ in 0..20 {
            steps.extend([Step::Pause(SECOND), bytes(content(0, "."))]);
        }
        let end = finish(0, "stop") + &content(1, "more");
        steps.extend([Step::Pause(SECOND), bytes(end), Step::Stall]);
        let script = Script::new(steps);
        let probe = script.probe();
        (script, probe)
    };
    let completions = Completions::from_byte_stream(script);
    let winners = soon(completions.first_where(1, |choice| choice.index().0 == 0)).await;
    assert!(soon(winners[0].finished()).await.is_ok());
    tokio::time::sleep(SECOND).await;
    assert!(probe.closed(), "only a loser would still need it");
}

#[tokio::test(start_paused = true)]
async fn the_source_closes_when_every_choice_that_appeared_has_won() {
    let script = Script::new([bytes(content(0, "a") + &finish(0, "stop")), Step::Stall]);
    let probe = script.probe();
    let completions = Completions::builder()
        .expect_choices(2)
        .from_byte_stream(script);
    assert_eq!(soon(completions.first_finished(1)).await.len(), 1);
    tokio::time::sleep(SECOND).await;
    assert!(probe.closed());
}

#[tokio::test(start_paused = true)]
async fn keep_only_cancels_all_others_and_the_kept_choice_goes_on() {
    let script = Script::new([
        bytes(content(0, "a") + &content(1, "b")),
        Step::Pause(SECOND),
        bytes(content(2, "late")),
        bytes(content(0, "A") + &content(1, "B")),
        bytes(finish(1, "stop")),
        Step::Pause(SECOND),
        bytes(content(0, "a")),
        Step::Stall,
    ]);
    let probe = script.probe();
    let completions = Completions::from_byte_stream(script);
    let kept = soon(completions.choice(1)).await.unwrap();
    completions.keep_only([kept.index()]);
    assert_eq!(soon(kept.text()).await.unwrap(), "bB");
    let expected = [
        "0 cancelled \"a\"",
        "1 finished \"bB\"",
        "2 cancelled \"late\"",
    ];
    assert_eq!(ends(&completions).await, expected);
    assert!(probe.closed(), "only cancelled choices would still need it");
}

#[tokio::test(start_paused = true)]
async fn keep_only_twice_keeps_what_both_name() {
    for pause in [Duration::ZERO, SECOND / 2] {
        let script = Script::new([
            bytes(content(0, "a") + &content(1, "b") + &content(2, "c")),
            Step::Pause(SECOND),
            bytes(content(0, "A") + &content(1, "B") + &content(2, "C")),
            bytes(finish(1, "stop") + &content(0, "a") + &content(2, "c")),
            Step::Stall,
        ]);
        let probe = script.probe();
        let completions = Completions::from_byte_stream(script);
        assert!(soon(completions.choice(2)).await.is_some());
        completions.keep_only([0, 1]);
        if !pause.is_zero() {
            tokio::time::sleep(pause).await; // otherwise the reader receives both at once
        }
        completions.keep_only([2, 1]);
        let expected = [
            "0 cancelled \"a\"",
            "1 finished \"bB\"",
            "2 cancelled \"c\"",
        ];
        assert_eq!(ends(&completions).await, expected);
        assert!(probe.closed(), "only cancelled choices would still need it");
    }
}

#[tokio::test(start_paused = true)]
async fn keep_only_again_closes_the_source_with_the_kept_choice() {
    let script = Script::new([
        bytes(content(0, "a") + &content(1, "b")),
        Step::Pause(SECOND),
        bytes(finish(1, "stop") + &content(0, "a")),
        Step::Stall,
    ]);
    let probe = script.probe();
    let completions = Completions::from_byte_stream(script);
    assert!(soon(completions.choice(1)).await.is_some());
    completions.keep_only([1]);
    tokio::time::sleep(SECOND / 2).await;
    completions.keep_only([1]); // nothing is left to cancel
    let expected = ["0 cancelled \"a\"", "1 finished \"b\""];
    assert_eq!(ends(&completions).await, expected);
    assert!(
        probe.closed(),
        "only the cancelled choice would still need it"
    );
}

#[tokio::test(start_paused = true)]
async fn keep_only_ends_a_choice_that_has_not_appeared() {
    for kept in [&[1][..], &[]] {
        let script = Script::new([
            bytes(content(0, "a")),
            Step::Pause(SECOND),
            bytes(content(1, "b")),
            Step::Stall,
        ]);
        let probe = script.probe();
        let completions = Completions::from_byte_stream(script);
        assert!(soon(completions.first()).await.is_ok());
        completions.keep_only(kept.iter().copied());
        let closed = soon(completions.closed()).await;
        assert_eq!(closed, Err(StreamError::Cancelled));
        assert_eq!(ends(&completions).await, ["0 cancelled \"a\""]);
        assert!(probe.closed());
    }
}

#[tokio::test(start_paused = true)]
async fn keep_only_that_cancels_nothing_reads_the_usage() {
    let steps = [
        bytes(content(0, "a") + &finish(0, "stop") + &content(1, "b")),
        Step::Pause(SECOND),
        bytes(finish(1, "length")),
        bytes("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5}}\n\n"),
        bytes(DONE),
    ];
    let completions = Completions::from_byte_stream(Script::new(steps));
    assert!(soon(completions.choice(1)).await.is_some());
    completions.keep_only([1, 0]);
    assert_eq!(
        ends(&completions).await,
        ["0 finished \"a\"", "1 finished \"b\""]
    );
    assert_eq!(soon(completions.usage()).await.prompt_tokens, Some(5));
    completions.keep_only([0]); // the stream has closed
    assert_eq!(soon(completions.closed()).await, Ok(()));
}
