//! Numbers of the server are printed digit by digit, and bodies of other APIs are recognized.

use super::{collect, run_fixture, unbraid};
use unbraid_testkit::fixture::Fixture;

const NUMBERS: &str = "openai_chat/gateway-j15-numbers-as-they-came";

#[test]
fn collect_prints_numbers_unchanged() {
    let run = collect(NUMBERS);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in [
        "\"request\": 98765432109876543210987",
        "\"seed\": 12345678901234567890123",
        "\"logprob\": -0.10",
        "\"logprob\": -0.30E1",
        "\"at\": 1E2",
        "\"cost\": 0.00012345678901234567890",
        "\"price\": 1.50",
        r#"{\"id\":12345678901234567890123,\"scale\":1.50,\"far\":1e400,\"text\":\"\\u00e9 \\/\",\"id\":2}"#,
    ] {
        assert!(run.stdout.contains(line), "{line}\n{}", run.stdout);
    }
    assert!(
        run.stdout
            .starts_with("{\n  \"id\": null,\n  \"object\": \"chat.completion\"")
    );
    assert!(run.stdout.ends_with("}\n"));
}

#[test]
fn events_prints_numbers_unchanged() {
    let run = run_fixture("events", &Fixture::named(NUMBERS));
    for part in [
        r#""seed":12345678901234567890123"#,
        r#""logprob":-0.30E1"#,
        r#""cost":0.00012345678901234567890"#,
    ] {
        assert!(run.stdout.contains(part), "{part}\n{}", run.stdout);
    }
}

#[test]
fn a_number_beyond_the_range_of_floats_is_printed() {
    let stream = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"seed\":1e400,\"finish_reason\":\"stop\"}]}\n\n";
    for (command, part) in [("collect", "\"seed\": 1e400"), ("events", "\"seed\":1e400")] {
        let run = unbraid(command, stream);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains(part), "{command}: {}", run.stdout);
    }
}

#[test]
fn the_numbers_of_a_server_error_are_printed_unchanged() {
    let error = r#"{"message":"quota","limit":9007199254740993.0,"used":1e400,"share":1.50}"#;
    let start = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    let stream_error = format!("{start}data: {{\"error\":{error}}}\n\n");
    let choice_error = format!(
        "{start}data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"error\":{error}}}]}}\n\ndata: [DONE]\n\n"
    );
    for stream in [stream_error, choice_error] {
        for command in ["collect", "events"] {
            let run = unbraid(command, stream.as_bytes());
            let printed = run.stdout.replace("\": ", "\":");
            for number in ["9007199254740993.0", "1e400", "1.50"] {
                assert!(
                    printed.contains(&format!(":{number}")),
                    "{command} {number}: {}",
                    run.stdout
                );
            }
        }
    }
}

#[test]
fn an_answer_of_another_api_is_never_a_success() {
    for (name, format) in [
        ("cohere/cohere-h09-v1", "a stream of Cohere's /v1/chat"),
        ("bedrock/bedrock-b19-agents", "a stream of Bedrock Agents"),
        ("broken/cloudflare-s30-html-body", "an error page (HTML)"),
    ] {
        for command in ["collect", "events", "watch"] {
            let run = run_fixture(command, &Fixture::named(name));
            assert_eq!(run.code, 1, "{command} {name}");
            assert!(
                run.stderr.contains(format),
                "{command} {name}: {}",
                run.stderr
            );
        }
        let response = collect(name).json();
        assert_eq!(response["unbraid"]["end"], "not_a_stream", "{name}");
        assert_eq!(response["choices"], serde_json::json!([]), "{name}");
    }
}

#[test]
fn the_reasoning_keys_are_an_option() {
    let stream = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"deliberation\":\"Hm\",\"reasoning\":\"no\"},\"finish_reason\":\"stop\"}]}\n\n";
    let reasoning = |args: &str| {
        let response = unbraid(args, stream).json();
        response["choices"][0]["message"]["reasoning"].clone()
    };
    assert_eq!(reasoning("collect"), "no");
    assert_eq!(
        reasoning("collect --reasoning-keys deliberation,reasoning"),
        "Hm"
    );
    assert_eq!(reasoning("--reasoning-keys reasoning collect"), "no");
}
