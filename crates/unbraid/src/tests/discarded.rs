//! A discarded choice ends with an error, and never with an empty answer.

use std::time::Duration;

use serde_json::Value;
use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{read, soon};
use crate::Choice;

const DISCARDED: &str = "choice 0: discarded after its end";

/// Checks that every method that waits for the text ends with the error.
async fn check(clone: &Choice) {
    assert_eq!(soon(clone.text()).await.unwrap_err().to_string(), DISCARDED);
    let error = soon(clone.finished()).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.end().as_str()),
        (DISCARDED, "finished")
    );
    let mut content = clone.content();
    let item = soon(content.next()).await;
    assert_eq!(
        item.map(|item| item.unwrap_err().to_string()).as_deref(),
        Some(DISCARDED)
    );
    assert!(soon(content.next()).await.is_none());
    let mut events = clone.events();
    assert_eq!(
        soon(events.next()).await.unwrap().unwrap_err().to_string(),
        DISCARDED
    );
    let mut calls = clone.tool_calls();
    assert!(soon(calls.next()).await.unwrap().is_err());
    let json = soon(clone.content_json().parse::<Value>()).await;
    assert_eq!(
        json.unwrap_err().to_string(),
        "choice 0: content: discarded after its end"
    );
    let ended = soon(clone.outcome()).await;
    assert!(ended.discarded && ended.message.content.is_empty());
    assert_eq!(ended.end.as_str(), "finished");
}

#[tokio::test(start_paused = true)]
async fn a_finished_choice_that_is_discarded_is_an_error_for_its_clones() {
    let completions = read([
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    assert_eq!(soon(choice.text()).await.unwrap(), "a");
    let clone = choice.clone();
    choice.discard();
    check(&clone).await;
    soon(completions.closed()).await.unwrap();
    check(&soon(completions.choice(0)).await.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn a_discarded_choice_that_has_its_reason_but_no_end_is_an_error_for_its_clones() {
    let second = Duration::from_secs(1);
    let steps = [
        bytes(content(0, "a")),
        bytes(finish(0, "stop")),
        Step::Pause(second / 10),
        bytes(content(1, "b")),
        Step::Pause(second),
        bytes(DONE),
    ];
    let completions = read(steps);
    let choice = soon(completions.choice(0)).await.unwrap();
    let clone = choice.clone();
    choice.discard();
    check(&clone).await;
    soon(completions.closed()).await.unwrap();
}
