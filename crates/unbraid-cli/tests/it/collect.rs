//! `unbraid collect`: the JSON object.

use serde_json::{Value, json};

use crate::{collect, unbraid};

#[track_caller]
fn keys(value: &Value, expected: &[&str]) {
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, expected);
}

#[test]
fn a_chat_has_the_shape_of_the_non_streaming_response() {
    let run = collect("openai_chat/openai-c01-u01-one-choice");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let response = run.json();
    for key in ["id", "object", "created", "model", "choices", "usage"] {
        assert!(!response[key].is_null(), "{key}");
    }
    assert_eq!(response["object"], "chat.completion");
    let choice = &response["choices"][0];
    let message = [
        "role",
        "content",
        "refusal",
        "reasoning",
        "tool_calls",
        "function_call",
    ];
    keys(&choice["message"], &message);
    keys(choice, &["index", "message", "finish_reason", "logprobs"]);
    keys(
        &response["unbraid"],
        &["dialect", "end", "error", "warnings", "choices", "usage"],
    );
    let details = json!({
        "dialect": "chat",
        "end": "finished",
        "error": null,
        "warnings": [],
        "choices": [{ "index": 0, "end": "finished", "error": null, "tool_calls": [] }],
        "usage": {
            "source": "reported",
            "prompt_tokens": 9,
            "completion_tokens": 42,
            "total_tokens": 51,
            "estimated": [],
            "choices": [{ "index": 0, "completion_tokens": 42, "estimated": false }],
            "encoding": null,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
        },
    });
    assert_eq!(response["unbraid"], details);
    assert!(run.stdout.ends_with("}\n"));
}

#[test]
fn a_text_completion_has_text_instead_of_a_message() {
    let response = collect("openai_text/openai-m01-two-choices").json();
    assert_eq!(response["object"], "text_completion");
    assert_eq!(response["choices"].as_array().unwrap().len(), 2);
    for choice in response["choices"].as_array().unwrap() {
        keys(choice, &["index", "text", "finish_reason", "logprobs"]);
        assert!(!choice["text"].as_str().unwrap().is_empty());
    }
}

#[test]
fn choices_are_sorted_by_index() {
    let response = collect("openai_chat/openai-e06-out-of-order-first").json();
    let indices = |choices: &Value| -> Vec<u64> {
        let choices = choices.as_array().unwrap().iter();
        choices.map(|c| c["index"].as_u64().unwrap()).collect()
    };
    let sorted = indices(&response["choices"]);
    assert!(sorted.len() > 1 && sorted.is_sorted(), "{sorted:?}");
    assert_eq!(indices(&response["unbraid"]["choices"]), sorted);
}

#[test]
fn calls_are_in_order_of_appearance_with_their_status() {
    let response = collect("openai_chat/openai-t28-t43-parallel-tools-two-choices").json();
    let calls = &response["choices"][0]["message"]["tool_calls"];
    assert_eq!(calls.as_array().unwrap().len(), 2);
    assert_eq!(
        calls[0],
        json!({
            "id": "call_a1",
            "type": "function",
            "function": { "name": "get_wind", "arguments": "{\"harbour\":\"Skagen\",\"unit\":\"knots\"}" },
        })
    );
    assert_eq!(calls[1]["id"], "call_a0");
    assert_eq!(response["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(
        response["unbraid"]["choices"][0]["tool_calls"],
        json!([{ "status": "complete", "error": null }, { "status": "complete", "error": null }])
    );
}

#[test]
fn the_printed_arguments_are_never_repaired() {
    let run = collect("openai_chat/openai-j01-j05-control-characters-in-arguments");
    let response = run.json();
    let details = response["unbraid"]["choices"].as_array().unwrap().iter();
    let statuses: Vec<&Value> = details
        .flat_map(|c| c["tool_calls"].as_array().unwrap())
        .map(|call| &call["status"])
        .collect();
    assert!(statuses.contains(&&json!("repaired")), "{statuses:?}");
    let arguments = response["choices"].as_array().unwrap().iter();
    let arguments: Vec<&str> = arguments
        .flat_map(|c| c["message"]["tool_calls"].as_array().unwrap())
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert!(arguments.iter().any(|text| text.contains('\n')));
    assert!(arguments.iter().any(|text| {
        let parsed: Result<Value, _> = serde_json::from_str(text);
        parsed.is_err()
    }));
}

#[test]
fn a_truncated_call_is_kept_with_its_status() {
    let run = collect("broken/openai-f07-cut-in-tool-arguments");
    assert_eq!(run.code, 3);
    let response = run.json();
    let calls = &response["unbraid"]["choices"][0]["tool_calls"];
    assert_eq!(
        calls.as_array().unwrap().last().unwrap()["status"],
        "truncated"
    );
    assert_eq!(response["unbraid"]["end"], "interrupted");
    assert_eq!(response["unbraid"]["error"], Value::Null);
    assert_eq!(response["choices"][0]["finish_reason"], Value::Null);
    assert!(run.stderr.contains("choice 0 (interrupted)"));
}

#[test]
fn a_legacy_call_is_only_in_function_call() {
    let response = collect("openai_chat/openai-t36-legacy-function-call").json();
    let choices = response["choices"].as_array().unwrap();
    let with_call = choices
        .iter()
        .position(|c| !c["message"]["function_call"].is_null())
        .unwrap();
    let message = &choices[with_call]["message"];
    keys(&message["function_call"], &["name", "arguments"]);
    assert_eq!(message["tool_calls"], Value::Null);
    let details = &response["unbraid"]["choices"][with_call];
    assert_eq!(details["tool_calls"].as_array().unwrap().len(), 1);
}

#[test]
fn the_first_raw_finish_reason_is_printed_and_none_is_derived() {
    let response = collect("openai_chat/openai-f15-four-finish-reasons").json();
    let choices = response["choices"].as_array().unwrap().iter();
    let reasons: Vec<&Value> = choices.map(|c| &c["finish_reason"]).collect();
    for reason in ["stop", "length", "content_filter"] {
        assert!(reasons.contains(&&json!(reason)), "{reasons:?}");
    }
    let disagreeing = collect("openai_chat/vllm-f08-f09-reason-and-calls-disagree").json();
    let stop_beside_calls = disagreeing["choices"]
        .as_array()
        .unwrap()
        .iter()
        .any(|c| c["finish_reason"] == "stop" && !c["message"]["tool_calls"].is_null());
    assert!(stop_beside_calls, "{disagreeing:#}");
}

#[test]
fn the_error_of_a_call_names_every_missing_field() {
    let stream = br#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1"}}]},"finish_reason":"length"}]}

data: [DONE]

"#;
    let response = unbraid("collect", stream).json();
    let call = &response["unbraid"]["choices"][0]["tool_calls"][0];
    assert_eq!(call["status"], "missing_name");
    assert_eq!(call["error"]["missing"], json!(["name", "id"]));
    assert_eq!(call["error"]["offset"], 6);
}

#[test]
fn e12_with_one_expected_choice_every_index_is_0() {
    let folded = collect("openai_chat/tgi-e12-index-counts-tokens");
    assert_eq!(folded.code, 0, "{}", folded.stderr);
    assert_eq!(folded.json()["choices"].as_array().unwrap().len(), 1);
    let apart = collect("openai_chat/tgi-e12-index-counts-tokens-unasked");
    assert!(apart.json()["choices"].as_array().unwrap().len() > 1);
    assert_eq!(apart.json()["unbraid"]["warnings"][0]["code"], "E12");
}

#[test]
fn strict_ends_at_the_first_deviation_and_prints_the_data_before_it() {
    let stream = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {oops\n\ndata: [DONE]\n\n";
    let run = unbraid("collect --strict", stream);
    assert_eq!(run.code, 3);
    let response = run.json();
    assert_eq!(response["choices"][0]["message"]["content"], "Hi");
    assert_eq!(response["unbraid"]["end"], "malformed");
    assert_eq!(response["unbraid"]["error"]["event"], 1);
    assert!(run.stderr.contains("event 1"), "{}", run.stderr);
    let lenient = unbraid("collect", stream).json();
    assert_eq!(lenient["unbraid"]["warnings"][0]["code"], "X13");
}

#[test]
fn the_report_of_a_printed_report_has_each_key_once() {
    let stream =
        b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let printed = unbraid("collect", stream).stdout;
    let again = unbraid("collect", printed.as_bytes());
    assert_eq!(again.code, 0);
    let keys = again.stdout.matches("\"unbraid\"").count();
    assert_eq!(keys, 1, "{}", again.stdout);
    assert_eq!(again.json()["choices"][0]["message"]["content"], "Hi");
}

#[test]
fn a_server_error_is_reported_with_its_message() {
    let run = collect("broken/openai-x01-x11-error-mid-stream");
    assert_eq!(run.code, 3);
    let response = run.json();
    assert_eq!(response["unbraid"]["end"], "server_error");
    assert_eq!(response["unbraid"]["error"]["type"], "server_error");
    assert_eq!(response["unbraid"]["choices"][0]["end"], "finished");
    assert_eq!(response["unbraid"]["choices"][1]["end"], "server_error");
    let messages: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].starts_with("unbraid: standard input: the server reported an error"));
    assert!(messages[1].starts_with("unbraid: the server reported: The server had an error"));
}

#[test]
fn a_server_error_cannot_control_the_terminal() {
    let run = unbraid(
        "collect",
        b"data: {\"error\":{\"message\":\"\\u001b[31mred\\u0007\\nunbraid: all is well\"}}\n\n",
    );
    assert_eq!(run.code, 3);
    assert!(!run.stderr.contains(['\u{1b}', '\u{7}']));
    assert_eq!(run.stderr.lines().count(), 2);
}

#[test]
fn an_error_inside_a_choice_ends_that_choice_only() {
    let run = collect("broken/openrouter-f12-error-inside-a-choice");
    assert_eq!(run.code, 3);
    let details = &run.json()["unbraid"];
    assert_eq!(details["error"], Value::Null);
    assert_eq!(details["end"], "server_error");
    assert_eq!(details["choices"][1]["error"]["type"], "server_error");
    assert_eq!(details["choices"][2]["end"], "finished");
}

const CUT: &str = "data: {\"model\":\"gpt-4o\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"tiktoken is great!\"}}]}\n\n";

#[test]
fn u12_a_cut_stream_is_counted_and_the_reported_usage_stays() {
    let response = unbraid("collect --usage estimate", CUT.as_bytes()).json();
    assert_eq!(response["usage"], Value::Null);
    let usage = json!({
        "source": "estimated",
        "prompt_tokens": null,
        "completion_tokens": 6,
        "total_tokens": null,
        "estimated": ["completion_tokens"],
        "choices": [{ "index": 0, "completion_tokens": 6, "estimated": true }],
        "encoding": "o200k_base",
    });
    assert_eq!(response["unbraid"]["usage"], usage);
    let reported = json!({ "choices": [], "usage": { "prompt_tokens": 5 } });
    let stream = format!("{CUT}data: {reported}\n\n");
    let response = unbraid("collect --usage estimate", stream.as_bytes()).json();
    assert_eq!(response["usage"], reported["usage"]);
    let usage = &response["unbraid"]["usage"];
    assert_eq!(
        (&usage["source"], &usage["total_tokens"]),
        (&json!("mixed"), &json!(11))
    );
    assert_eq!(
        usage["estimated"],
        json!(["completion_tokens", "total_tokens"])
    );
}

#[test]
fn the_prompt_of_the_request_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("request.json");
    let args = format!("collect --request {}", path.display());
    let check_failure = |message: &str| {
        let run = unbraid(&args, CUT.as_bytes());
        assert_eq!((run.code, run.stdout.as_str()), (1, ""));
        assert!(
            run.stderr.contains("request.json") && run.stderr.contains(message),
            "{}",
            run.stderr
        );
    };
    check_failure("unbraid: ");
    std::fs::write(&path, "{\"messages\": [").unwrap();
    check_failure("line 1");
    let messages = json!([{ "role": "user", "content": "tiktoken is great!" }]);
    std::fs::write(&path, json!({ "messages": messages }).to_string()).unwrap();
    let usage = &unbraid(&args, CUT.as_bytes()).json()["unbraid"]["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["total_tokens"]),
        (&json!(13), &json!(19))
    );
    assert_eq!(
        usage["estimated"],
        json!(["prompt_tokens", "completion_tokens", "total_tokens"])
    );
}
