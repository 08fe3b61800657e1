//! Checks of any server that gives the same answer to the same request.

use bytes::Bytes;
use serde_json::{Value, json};
use unbraid::{Usage, UsageSource};
use unbraid_core::{Config, Demux};
use unbraid_http::Request;

use crate::{
    answer::{self, Answer},
    case::Case,
    client, http,
};

/// Requests one response that is not streamed and two streams, and checks that their choices are equal.
pub(crate) async fn check(base_url: &str, case: &Case) -> (Answer, Bytes) {
    let response = http::post(base_url, case.path(), &case.request).await;
    let expected = answer::from_response(&response.json());
    assert_eq!(expected.len() as u64, case.n(), "{}", case.name);

    check_handles(base_url, case, &expected).await;
    let bytes = stream(base_url, case).await;
    let mut demux = Demux::new(Config::default());
    demux.feed(&bytes);
    demux.finish();
    let found = answer::from_response(&demux.aggregate());
    assert_eq!(found, expected, "{}", case.name);
    assert!(matches!(demux.closed(), Some(Ok(()))), "{}", case.name);
    assert_eq!(demux.warnings(), [], "{}", case.name);
    check_usage(case, &demux.usage(), &bytes);
    (expected, bytes)
}

async fn check_handles(base_url: &str, case: &Case, expected: &Answer) {
    let request = Request::from_value(case.request.clone()).unwrap();
    let completions = client(base_url).send(&request).await.unwrap();
    let found = answer::from_handles(&completions).await;
    assert_eq!(&found, expected, "{}", case.name);
    completions.closed().await.unwrap();
    assert_eq!(completions.warnings(), [], "{}", case.name);
}

/// The bytes of the stream.
async fn stream(base_url: &str, case: &Case) -> Bytes {
    let request = Request::from_value(case.request.clone()).unwrap();
    let answer = http::post(base_url, case.path(), &request.body()).await;
    assert_eq!(answer.status, 200, "{}", case.name);
    answer.bytes
}

/// Checks the usage against the events of the stream. This engine reports each choice in a separate event.
fn check_usage(case: &Case, usage: &Usage, bytes: &[u8]) {
    let reported: Vec<u64> = events(bytes)
        .iter()
        .filter_map(|event| event["usage"]["completion_tokens"].as_u64())
        .collect();
    if !case.counts() {
        assert_eq!(
            (usage.source, reported.len()),
            (UsageSource::Absent, 0),
            "{}",
            case.name
        );
        return;
    }
    let sum: u64 = reported.iter().sum();
    assert_eq!(reported.len() as u64, case.n(), "{}", case.name);
    assert_eq!(usage.completion_tokens, Some(sum), "{}", case.name);
    if case.n() > 1 {
        let mut per_choice: Vec<u64> = usage.per_choice.iter().map(|(_, tokens)| *tokens).collect();
        let mut reported = reported;
        per_choice.sort_unstable();
        reported.sort_unstable();
        assert_eq!(per_choice, reported, "{}", case.name);
    }
}

fn events(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("servers send UTF-8");
    text.lines()
        .filter_map(|line| line.strip_prefix("data: {"))
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap_or(json!(null)))
        .collect()
}
