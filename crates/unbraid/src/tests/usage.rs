//! What a stream cost: as reported, and with the feature `tokens` as counted. Nobody's end waits for it.

#[cfg(feature = "tokens")]
mod counted;

use std::time::Duration;

use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{outcome, read, soon};
use crate::{Completions, UsageSource};

const REPORT: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n";

#[tokio::test(start_paused = true)]
async fn u14_who_waits_for_usage_delays_no_choice() {
    let completions = read([
        bytes(content(0, "Hi")),
        bytes(finish(0, "stop")),
        bytes(": now the server thinks\n\n"),
        Step::Pause(Duration::from_secs(60)),
        bytes(REPORT),
        bytes(DONE),
    ]);
    let started = tokio::time::Instant::now();
    let asked = completions.clone();
    let usage = tokio::spawn(async move { asked.usage().await });
    let choice = soon(completions.first()).await.unwrap();
    outcome(&choice).await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "by silence, not by usage"
    );
    assert!(!usage.is_finished());
    assert_eq!(soon(usage).await.unwrap().total_tokens, Some(7));
    assert!(started.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn what_is_reported_in_full_is_left_alone() {
    let completions = read([bytes(content(0, "Hi")), bytes(REPORT), bytes(DONE)]);
    let usage = soon(completions.usage()).await;
    let figures = [
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
    ];
    assert_eq!(figures, [Some(3), Some(4), Some(7)]);
    assert_eq!(usage.source, UsageSource::Reported);
    let response = soon(completions.aggregate()).await;
    assert_eq!(response["usage"], usage.raw);
}

#[tokio::test(start_paused = true)]
async fn the_response_never_holds_an_estimate() {
    let completions = read([bytes(content(0, "Hi")), bytes(finish(0, "stop"))]);
    soon(completions.usage()).await;
    let response = soon(completions.aggregate()).await;
    assert!(response["usage"].is_null(), "{response}");
}

/// Ends the reader of a stream that stalls, in the middle of its text.
async fn cancelled(text: &str) -> Completions {
    let completions = read([bytes(content(0, text)), Step::Stall]);
    let choice = soon(completions.first()).await.unwrap();
    completions.cancel();
    assert_eq!(outcome(&choice).await.end.as_str(), "cancelled");
    completions
}

#[cfg(not(feature = "tokens"))]
#[tokio::test(start_paused = true)]
async fn without_the_feature_what_is_not_reported_is_unknown() {
    let usage = soon(cancelled("Hi").await.usage()).await;
    assert_eq!(usage, crate::Usage::default());
}
