//! A weak handle does not keep a completion alive.

use std::time::Duration;

use unbraid_testkit::script::{DONE, Script, Step, bytes, content, finish};

use super::{read, soon};
use crate::Completions;

#[tokio::test(start_paused = true)]
async fn a_weak_handle_does_not_keep_the_source_open() {
    let script = Script::new([bytes(content(0, "a")), Step::Stall]);
    let probe = script.probe();
    let completions = Completions::from_byte_stream(script);
    soon(completions.first()).await.unwrap();
    let weak = completions.downgrade();
    assert!(weak.upgrade().is_some());
    drop(completions);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert!(probe.closed());
    assert!(weak.upgrade().is_none());
    assert!(weak.clone().upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_upgraded_handle_is_a_handle_like_any_other() {
    let completions = read([
        bytes(content(0, "a")),
        Step::Pause(Duration::from_secs(1)),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let weak = completions.downgrade();
    let upgraded = weak.upgrade().unwrap();
    drop(completions);
    let choice = soon(upgraded.first()).await.unwrap();
    assert_eq!(soon(choice.text()).await.unwrap(), "a");
    soon(upgraded.closed()).await.unwrap();
    assert!(weak.upgrade().is_some(), "a closed completion can be read");
}

#[tokio::test(start_paused = true)]
async fn a_choice_keeps_the_completion_until_the_stream_has_closed() {
    let completions = read([
        bytes(content(0, "a")),
        Step::Pause(Duration::from_secs(1)),
        bytes(finish(0, "stop")),
        bytes(DONE),
    ]);
    let choice = soon(completions.first()).await.unwrap();
    let weak = completions.downgrade();
    drop(completions);
    assert!(weak.upgrade().is_some(), "the reader is still running");
    assert_eq!(soon(choice.text()).await.unwrap(), "a");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(weak.upgrade().is_none(), "only the choice is left");
    assert!(format!("{weak:?}").starts_with("WeakCompletions"));
}
