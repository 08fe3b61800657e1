//! The token counts that `collect` prints.

use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use crate::unbraid;

fn collect(name: &str) -> Value {
    unbraid("collect", &Fixture::named(name).bytes).json()
}

#[test]
fn u15_a_report_below_the_received_tokens_gets_an_estimate() {
    let response = collect("openai_chat/mistralrs-u15-usage-of-the-last-choice");
    assert_eq!(response["usage"]["completion_tokens"], 7);
    let usage = &response["unbraid"]["usage"];
    assert_eq!(usage["source"], "mixed");
    assert_eq!(usage["completion_tokens"], 7, "the reported figure is kept");
    assert!(usage["completion_tokens_counted"].as_u64() >= Some(18));
    assert_eq!(usage["estimated"], json!([]));
    assert_eq!(response["unbraid"]["warnings"][0]["code"], "U15");
    let last = json!({ "index": 2, "completion_tokens": 7, "estimated": false });
    assert_eq!(usage["choices"][2], last);
}

#[test]
fn a_complete_report_gets_no_estimate() {
    let response = collect("openai_chat/gateway-u07-u08-envelope-with-the-prompt-alone");
    let usage = json!({
        "source": "reported",
        "prompt_tokens": 7,
        "completion_tokens": 30,
        "total_tokens": 37,
        "estimated": [],
        "choices": [
            { "index": 0, "completion_tokens": 10, "estimated": false },
            { "index": 1, "completion_tokens": 20, "estimated": false },
        ],
        "encoding": null,
        "reasoning_tokens": 4,
    });
    assert_eq!(response["unbraid"]["usage"], usage);
}

#[test]
fn e15_each_prompt_of_a_request_is_counted() {
    let end = |index: u32, completion: u64| {
        let choice = json!({ "index": index, "text": "a", "finish_reason": "stop" });
        let usage = json!({ "prompt_tokens": 3, "completion_tokens": completion });
        format!(
            "data: {}\n\n",
            json!({ "choices": [choice], "usage": usage })
        )
    };
    let stream = end(0, 2) + &end(1, 4) + "data: [DONE]\n\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("request.json");
    std::fs::write(&path, json!({ "prompt": ["a b c", "d e f"] }).to_string()).unwrap();
    let args = format!("collect --request {}", path.display());
    let response = unbraid(&args, stream.as_bytes()).json();
    assert_eq!(response["usage"]["prompt_tokens"], 6);
    assert_eq!(response["unbraid"]["usage"]["total_tokens"], 12);
    let without_request = unbraid("collect", stream.as_bytes()).json();
    assert_eq!(without_request["usage"]["prompt_tokens"], 3);
}
