//! Usage: as the server reported it, and as a tokenizer counts it. No choice's end waits for it.

#[cfg(feature = "tokens")]
mod counted;

use std::time::Duration;

use unbraid_testkit::script::{DONE, Step, bytes, content, finish};

use super::{outcome, read, read_with, soon};
use crate::{Completions, CompletionsBuilder, UsageSource};

const REPORT: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4,\"total_tokens\":7}}\n\n";

#[tokio::test(start_paused = true)]
async fn u14_waiting_for_usage_delays_no_choice() {
    let completions = read([
        bytes(content(0, "Hi")),
        bytes(finish(0, "stop")),
        bytes(": now the server thinks\n\n"),
        Step::Pause(Duration::from_secs(60)),
        bytes(REPORT),
        bytes(DONE),
    ]);
    let started = tokio::time::Instant::now();
    let waiting = completions.clone();
    let usage = tokio::spawn(async move { waiting.usage().await });
    let choice = soon(completions.first()).await.unwrap();
    outcome(&choice).await;
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "the choice ends by idle time, not by usage"
    );
    assert!(!usage.is_finished());
    assert_eq!(soon(usage).await.unwrap().total_tokens, Some(7));
    assert!(started.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_complete_report_is_left_unchanged() {
    let completions = read([bytes(content(0, "Hi")), bytes(REPORT), bytes(DONE)]);
    let usage = soon(completions.usage()).await;
    let reported = [
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.total_tokens,
    ];
    assert_eq!(reported, [Some(3), Some(4), Some(7)]);
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

/// A completion that was cancelled in the middle of its text.
async fn cancelled(builder: CompletionsBuilder, text: &str) -> Completions {
    let completions = read_with(builder, [bytes(content(0, text)), Step::Stall]);
    let choice = soon(completions.first()).await.unwrap();
    completions.cancel();
    assert_eq!(outcome(&choice).await.end.as_str(), "cancelled");
    completions
}

#[tokio::test(start_paused = true)]
async fn without_a_tokenizer_usage_that_was_not_reported_is_unknown() {
    let completions = cancelled(Completions::builder(), "Hi").await;
    assert_eq!(soon(completions.usage()).await, crate::Usage::default());
}

#[tokio::test(start_paused = true)]
async fn a_tokenizer_counts_what_was_not_reported() {
    let words = |text: &str| text.split_whitespace().count() as u64;
    let completions = cancelled(Completions::builder().tokenizer(words), "three short words").await;
    let usage = soon(completions.usage()).await;
    assert_eq!(usage.completion_tokens, Some(3));
    assert_eq!(usage.source, UsageSource::Estimated);
}

#[tokio::test(start_paused = true)]
async fn a_tokenizer_is_selected_by_the_response_and_the_request() {
    type Count = fn(&str) -> u64;
    let select = |response: &crate::Metadata, request: &crate::Prompt| -> Count {
        match response.model.as_deref().or_else(|| request.model()) {
            Some("bytes") => |text| text.len() as u64,
            _ => |_| 1,
        }
    };
    let chunk =
        |model| format!("data: {{{model}\"choices\":[{{\"index\":0,\"text\":\"four\"}}]}}\n\n");
    let request = serde_json::json!({ "model": "bytes" });
    for (model, request, expected) in [
        ("", None, 1),
        ("\"model\":\"bytes\",", None, 4),
        ("\"model\":\"other\",", Some(&request), 1),
        ("", Some(&request), 4),
    ] {
        let mut builder = Completions::builder().tokenizer_for(select);
        if let Some(request) = request {
            builder = builder.request(request);
        }
        let completions = read_with(builder, [bytes(chunk(model)), bytes(DONE)]);
        let usage = soon(completions.usage()).await;
        assert_eq!(usage.completion_tokens, Some(expected), "{model}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_tokenizer_that_panics_leaves_the_report() {
    let panics = |_: &str| -> u64 { panic!("on purpose") };
    let completions = cancelled(Completions::builder().tokenizer(panics), "Hi").await;
    let usage = soon(completions.usage()).await;
    assert_eq!(usage.source, UsageSource::Absent);
}
