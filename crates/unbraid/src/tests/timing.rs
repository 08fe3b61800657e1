//! When a choice got its first delta and its end.

use std::time::Duration;

use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, soon};

#[tokio::test(start_paused = true)]
async fn a_choice_without_a_delta_has_no_first_delta() {
    let role = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\"}}]}\n\n";
    let completions = read([bytes(role), Step::Fail]);
    let choice = soon(completions.first()).await.unwrap();
    soon(choice.outcome()).await;
    let timing = choice.timing();
    assert!(timing.first_delta.is_none() && timing.end.is_some());
}

#[tokio::test(start_paused = true)]
async fn timing_counts_from_the_start() {
    let second = Duration::from_secs(1);
    let completions = read([
        Step::Pause(second),
        bytes(content(0, "a")),
        Step::Pause(second),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    assert_eq!(
        (choice.timing().first_delta, choice.timing().end),
        (Some(second), None)
    );
    soon(choice.finished()).await.unwrap();
    assert_eq!(choice.timing().end, Some(2 * second));
}
