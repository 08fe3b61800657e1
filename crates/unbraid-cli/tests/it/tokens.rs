//! The token counts that `collect` prints.

use serde_json::{Value, json};
use unbraid_testkit::fixture::Fixture;

use crate::unbraid;

fn collect(args: &str, name: &str) -> Value {
    unbraid(&format!("collect {args}"), &Fixture::named(name).bytes).json()
}

#[test]
fn u15_a_report_below_the_received_tokens_gets_an_estimate() {
    let name = "openai_chat/mistralrs-u15-usage-of-the-last-choice";
    let reported = &collect("", name)["unbraid"];
    assert_eq!(reported["usage"]["source"], "reported");
    assert_eq!(reported["usage"].get("completion_tokens_counted"), None);
    assert_eq!(reported["warnings"][0]["code"], "U15");
    let response = collect("--usage estimate", name);
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
    let response = collect(
        "--usage estimate",
        "openai_chat/gateway-u07-u08-envelope-with-the-prompt-alone",
    );
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
    let reported = collect(
        "",
        "openai_chat/gateway-u07-u08-envelope-with-the-prompt-alone",
    );
    assert_eq!(reported["unbraid"]["usage"], usage);
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

#[test]
fn u12_nothing_is_counted_unless_it_is_requested() {
    let chunk = |index: u32| {
        let choice =
            json!({ "index": index, "delta": { "content": "a b" }, "finish_reason": "stop" });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 4 });
    let sum = format!("data: {}\n\n", json!({ "choices": [], "usage": usage }));
    let absent = json!({
        "source": "absent",
        "prompt_tokens": null,
        "completion_tokens": null,
        "total_tokens": null,
        "estimated": [],
        "choices": [],
        "encoding": null,
    });
    let sums = json!({
        "source": "reported",
        "prompt_tokens": 3,
        "completion_tokens": 4,
        "total_tokens": 7,
        "estimated": [],
        "choices": [],
        "encoding": null,
    });
    let mut one_choice = sums.clone();
    one_choice["choices"] = json!([{ "index": 0, "completion_tokens": 4, "estimated": false }]);
    for args in ["collect", "collect --usage reported"] {
        let usage =
            |stream: String| unbraid(args, stream.as_bytes()).json()["unbraid"]["usage"].clone();
        assert_eq!(usage(chunk(0) + &chunk(1)), absent);
        assert_eq!(usage(chunk(0) + &chunk(1) + &sum), sums);
        assert_eq!(usage(chunk(0) + &sum), one_choice);
    }
    let stream = chunk(0) + &chunk(1) + &sum;
    let estimated = &unbraid("collect --usage estimate", stream.as_bytes()).json()["unbraid"];
    assert_eq!(estimated["usage"]["source"], "mixed");
    assert_eq!(estimated["usage"]["choices"][1]["estimated"], true);
}
