//! X4: an error and a finish reason in one event: the choice has failed, and is not a winner.

use unbraid_testkit::script::{Step, bytes, content, finish};

use super::{all_choices, ends, read_with, soon};
use crate::{Completions, FinishPolicy, StreamError};

const POLICIES: [FinishPolicy; 3] = [
    FinishPolicy::NextEvent,
    FinishPolicy::AtFinish,
    FinishPolicy::AtStreamEnd,
];

const FAILS: &str = "data: {\"error\":{\"code\":502},\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}\n\n";

fn steps(first: impl IntoIterator<Item = Step>) -> Vec<Step> {
    first
        .into_iter()
        .chain([bytes(FAILS), Step::Stall])
        .collect()
}

#[tokio::test(start_paused = true)]
async fn x04_the_choice_that_finished_in_the_event_of_the_error_has_failed() {
    for policy in POLICIES {
        let both = steps([bytes(content(0, "a")), bytes(content(1, "b"))]);
        let completions = read_with(Completions::builder().finish_policy(policy), both);
        assert_eq!(
            ends(&completions).await,
            ["0 server_error \"a\"", "1 server_error \"b\""],
            "{policy:?}"
        );
        let (_, error) = all_choices(&completions).await;
        assert!(matches!(error, Some(StreamError::Server(_))), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn x04_the_choices_report_the_error_if_it_ended_only_that_choice() {
    for policy in POLICIES {
        let first = [
            bytes(content(1, "b")),
            bytes(finish(1, "stop")),
            bytes(content(0, "a")),
        ];
        let completions = read_with(Completions::builder().finish_policy(policy), steps(first));
        assert_eq!(
            ends(&completions).await,
            ["1 finished \"b\"", "0 server_error \"a\""],
            "{policy:?}"
        );
        let (_, error) = all_choices(&completions).await;
        assert!(matches!(error, Some(StreamError::Server(_))), "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn x04_such_a_choice_is_never_among_the_first_that_finished() {
    for policy in POLICIES {
        let builder = || Completions::builder().finish_policy(policy);
        let alone = read_with(builder(), steps([bytes(content(0, "a"))]));
        assert!(soon(alone.first_finished(1)).await.is_empty(), "{policy:?}");
        let first = [
            bytes(content(1, "b")),
            bytes(finish(1, "stop")),
            bytes(content(0, "a")),
        ];
        let both = read_with(builder(), steps(first));
        let winners = soon(both.first_finished(2)).await;
        let winners: Vec<u32> = winners.iter().map(|winner| winner.choice.0).collect();
        assert_eq!(winners, [1], "{policy:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_ended_no_choice_is_reported_by_closed_only() {
    let error = "data: {\"error\":{\"code\":502}}\n\n";
    let done = [
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        bytes(error),
    ];
    for policy in POLICIES {
        let completions = read_with(Completions::builder().finish_policy(policy), done.clone());
        let (choices, error) = all_choices(&completions).await;
        assert_eq!((choices.len(), error.is_none()), (1, true), "{policy:?}");
        assert!(matches!(
            soon(completions.closed()).await,
            Err(StreamError::Server(_))
        ));
    }
}
