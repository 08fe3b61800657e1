//! Races over the choices of several sources.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_race_cancels_choices_that_have_not_appeared_yet() {
    let (slow, slow_probe) = probed([bytes(content(0, "slow")), Step::Stall]);
    let (unseen, unseen_probe) = probed([Step::Stall]);
    let quick = [
        bytes(content(0, "good")),
        Step::Pause(SECOND),
        bytes(content(0, " answer")),
        bytes(finish(0, "stop")),
        Step::Pause(SECOND),
        usage(5, 2),
        bytes(DONE),
    ];
    let completions = Completions::merge([slow, source(quick), unseen]);
    let is_good = |choice: &crate::Transcript| choice.content().any(|delta| delta == "good");
    let winners = soon(completions.first_where(1, is_good)).await;
    assert_eq!(winners.len(), 1);
    run_other_tasks().await;
    assert!(slow_probe.closed() && unseen_probe.closed());
    assert_eq!(
        soon(winners[0].text()).await.unwrap(),
        "good answer",
        "the winner goes on"
    );
    let mut ends = ends(&completions).await;
    ends.sort_unstable();
    let expected = [
        "0 cancelled \"slow\"",
        "1 finished \"good answer\"",
        "2 cancelled \"\"",
    ];
    assert_eq!(ends, expected);
    assert!(soon(completions.closed()).await.is_ok());
    let usage = soon(completions.usage()).await;
    assert_eq!(
        usage.raw["prompt_tokens"], 5,
        "the race waited for its usage"
    );
}

#[tokio::test(start_paused = true)]
async fn a_body_closes_when_its_winners_have_ended() {
    let script = Script::new([
        bytes(content(0, "a")),
        bytes(content(1, "b")),
        Step::Pause(SECOND),
        bytes(content(2, "late")),
        bytes(content(1, "B")),
        bytes(finish(1, "stop")),
        bytes(content(0, "A")),
        Step::Stall,
    ]);
    let probe = script.probe();
    let completions = Completions::from_byte_stream(script);
    let winners = soon(completions.first_where(1, |choice| choice.index() == ChoiceIndex(1))).await;
    assert_eq!(soon(winners[0].text()).await.unwrap(), "bB");
    run_other_tasks().await;
    assert!(probe.closed(), "only losers would still need it");
    assert_eq!(
        ends(&completions).await,
        [
            "0 cancelled \"a\"",
            "1 finished \"bB\"",
            "2 cancelled \"late\""
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_race_judges_once_per_batch_and_cancels_nothing_when_dropped_or_undecided() {
    let steps = || {
        [
            bytes(content(0, "a") + &content(0, "b")),
            Step::Pause(SECOND),
            bytes(content(0, "c")),
            bytes(finish(0, "stop")),
            usage(1, 1),
            bytes(DONE),
        ]
    };
    let completions = Completions::from_byte_stream(Script::new(steps()));
    let mut judged = Vec::new();
    let never = completions.first_where(1, |choice| {
        judged.push(choice.event_count());
        false
    });
    assert!(soon(never).await.is_empty());
    assert!(judged.len() <= 3 && judged.is_sorted(), "{judged:?}");
    assert!(soon(completions.closed()).await.is_ok());

    let completions = Completions::from_byte_stream(Script::new(steps()));
    let dropped = tokio::time::timeout(
        Duration::from_millis(1),
        completions.first_where(1, |_| false),
    )
    .await;
    assert!(dropped.is_err());
    assert!(soon(completions.first_where(0, |_| true)).await.is_empty());
    assert_eq!(ends(&completions).await, ["0 finished \"abc\""]);

    let completions = Completions::from_byte_stream(Script::new(steps()));
    assert_eq!(soon(completions.first_finished(1)).await.len(), 1);
    let usage = soon(completions.usage()).await;
    assert_eq!(
        usage.prompt_tokens,
        Some(1),
        "nothing was cancelled, so the usage arrives"
    );
}
