//! Input that is not a stream, or a damaged one.

use serde_json::Value;

use crate::{Run, unbraid};

/// Collects an input, and checks the exit code, the end of the stream, and part of the message on the standard error.
#[track_caller]
fn check(input: &[u8], code: i32, end: &str, message: &str) -> Value {
    let run = unbraid("collect", input);
    let response = run.json();
    assert_eq!(run.code, code, "{response:#}{}", run.stderr);
    assert_eq!(response["unbraid"]["end"], end);
    assert!(run.stderr.contains(message), "{}", run.stderr);
    if code == 1 {
        assert_eq!(response["unbraid"]["error"]["type"], end);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    }
    response
}

const HI: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";
const STOP: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn input_that_is_not_a_stream_is_reported() {
    let response = check(b"", 1, "empty", "the stream held no answer");
    assert_eq!(response["choices"], serde_json::json!([]));
    check(b"Hello, world\n", 1, "not_a_stream", "13 bytes");
    check(
        b"\n  <!DOCTYPE html>\n<html></html>\n",
        1,
        "not_a_stream",
        "an error page (HTML)",
    );
    check(b"\x28\xb5\x2f\xfd\x24\x00", 1, "not_a_stream", "zstd");
    let utf16: Vec<u8> = "\u{feff}data: {}\n\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    check(&utf16, 1, "not_a_stream", "this is UTF-16");
}

#[test]
fn the_answer_of_another_api_is_never_a_success() {
    let cohere = r#"{"is_finished":false,"event_type":"text-generation","text":"Hi"}"#;
    let llama_cpp = r#"{"index":0,"content":"Hi","stop":true}"#;
    let completion = r#"{"type":"completion","completion":" Hi","stop_reason":"stop_sequence"}"#;
    let embeddings =
        r#"{"object":"list","data":[],"model":"m","usage":{"prompt_tokens":5,"total_tokens":5}}"#;
    let bare = r#"{"usage":{"prompt_tokens":5}}"#;
    for (body, name) in [
        (cohere, "Cohere's /v1/chat"),
        (llama_cpp, "llama.cpp"),
        (completion, "Anthropic"),
        (embeddings, ""),
        (bare, ""),
        (r#"{"choices":[],"usage":{"prompt_tokens":5}}"#, ""),
        ("{}", ""),
        ("[]", ""),
    ] {
        for body in [
            body.to_owned(),
            format!("data: {}\n\n", body.replace('\n', "")),
        ] {
            for command in ["collect", "events", "watch --plain"] {
                let run = unbraid(command, body.as_bytes());
                assert_eq!(run.code, 1, "{command}: {body}: {}", run.stderr);
                assert!(
                    run.stderr.contains(name),
                    "{command}: {body}: {}",
                    run.stderr
                );
            }
            let details = unbraid("collect", body.as_bytes()).json()["unbraid"].clone();
            assert_ne!(details["end"], "finished", "{body}");
            assert_eq!(details["error"]["type"], details["end"], "{body}");
        }
    }
}

#[test]
fn a_recording_of_another_api_without_choices_is_never_a_success() {
    let corpus = std::env::var_os("UNBRAID_CORPUS").map_or_else(
        || unbraid_testkit::fixture::workspace_root().join("../shared/corpus"),
        std::path::PathBuf::from,
    );
    let Ok(files) = std::fs::read_dir(corpus.join("dialects")) else {
        println!("skipped: no corpus");
        return;
    };
    // A sample, because each run starts a process.
    for file in files.step_by(9) {
        let file = file.unwrap().path();
        let run = unbraid("collect", &std::fs::read(&file).unwrap());
        let choices = run.json()["choices"].as_array().unwrap().len();
        assert!(choices > 0 || run.code != 0, "{}", file.display());
    }
}

#[test]
fn an_input_that_cannot_be_opened_prints_nothing() {
    let check = |run: Run, message: &str| {
        assert_eq!((run.code, run.stdout.as_str()), (1, ""));
        assert!(run.stderr.contains(message), "{}", run.stderr);
    };
    let dir = tempfile::tempdir().unwrap();
    for command in ["collect", "events"] {
        let run = unbraid(&format!("{command} {}", dir.path().display()), b"");
        check(run, ": is a directory");
        let run = unbraid(&format!("{command} nowhere.sse"), b"");
        check(run, "unbraid: nowhere.sse: ");
    }
}

#[cfg(unix)]
#[test]
fn an_input_that_fails_during_a_read_is_a_transport_error() {
    let dir = tempfile::tempdir().unwrap();
    let directory = std::fs::File::open(dir.path()).unwrap();
    let output = std::process::Command::new(crate::UNBRAID)
        .arg("collect")
        .stdin(directory)
        .output()
        .unwrap();
    let run = Run::from(output);
    assert_eq!(run.code, 1);
    assert_eq!(run.json()["unbraid"]["error"]["type"], "transport");
    assert!(
        run.stderr.contains("the source failed after 0 bytes: "),
        "{}",
        run.stderr
    );
}

#[test]
fn deeply_nested_json_is_skipped_and_the_rest_is_kept() {
    let deep = "[".repeat(200_000);
    let stream = format!("{HI}data: {{\"choices\":{deep}\n\n{STOP}");
    let response = check(stream.as_bytes(), 0, "finished", "");
    assert_eq!(response["choices"][0]["message"]["content"], "Hi");
    assert_eq!(response["unbraid"]["warnings"][0]["event"], 1);
    let balanced = format!(
        "{HI}data: {{\"x\":{deep}{},\"choices\":[]}}\n\n{STOP}",
        "]".repeat(200_000)
    );
    check(balanced.as_bytes(), 0, "finished", "");
}

#[test]
fn nan_is_tolerated() {
    let stream = format!(
        "{HI}data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"!\"}},\"logprobs\":{{\"content\":[{{\"logprob\":NaN}},{{\"logprob\":-Infinity}}]}}}}]}}\n\n{STOP}"
    );
    let response = check(stream.as_bytes(), 0, "finished", "");
    assert_eq!(response["choices"][0]["message"]["content"], "Hi!");
}

#[test]
fn invalid_utf8_is_replaced() {
    let mut stream = HI.replace("Hi", "H?i").into_bytes();
    let position = stream.iter().position(|&b| b == b'?').unwrap();
    stream[position] = 0xff;
    stream.extend(STOP.bytes());
    let response = check(&stream, 0, "finished", "");
    assert_eq!(response["choices"][0]["message"]["content"], "H\u{fffd}i");
}

#[test]
fn a_number_out_of_range_is_tolerated() {
    let stream =
        format!("{HI}data: {{\"choices\":[],\"usage\":{{\"completion_tokens\":1e999}}}}\n\n{STOP}");
    check(stream.as_bytes(), 0, "finished", "");
}
