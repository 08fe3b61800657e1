//! The recordings of every provider, at the provider's own paths.

use serde_json::{Value, json};
use unbraid_core::{Config, Demux};
use unbraid_testkit::fixture::{Fixture, workspace_root};

use super::{Replay, Response, record};

const ANTHROPIC: &str = "anthropic/anthropic-a02-a05-a15-thinking-text-call";
const RESPONSES: &str = "responses/codex-p10-empty-final-output";
const GEMINI: &str = "gemini/gemini-g04-g05-candidates";
const OLLAMA: &str = "ollama/ollama-o04-o05-o06-parallel-calls";
const COHERE: &str = "cohere/cohere-h02-h03-h04-plan-and-calls";
const BEDROCK: &str = "bedrock/bedrock-b01-b08-b09-converse";
const CHAT_FIXTURE: &str = "openai_chat/azure-three-choices";

const GEMINI_PATH: &str = "/v1beta/models/gemini-x:streamGenerateContent";
const BEDROCK_PATH: &str = "/model/m/converse-stream";

/// A replay of one recording of each provider.
fn replay(options: &str) -> Replay {
    let names = [
        ANTHROPIC,
        RESPONSES,
        GEMINI,
        OLLAMA,
        COHERE,
        BEDROCK,
        CHAT_FIXTURE,
    ];
    let files = names.map(path);
    Replay::of_files(&files, options)
}

fn path(name: &str) -> String {
    let path = Fixture::named(name).path;
    let relative = path.strip_prefix(workspace_root()).unwrap_or(&path);
    relative.to_str().unwrap().to_owned()
}

fn demux(bytes: &[u8]) -> Demux {
    let mut demux = Demux::new(Config::default());
    demux.feed(bytes);
    demux.finish();
    demux
}

/// The texts, calls and reasons of an answer.
fn answer(bytes: &[u8]) -> Value {
    let demux = demux(bytes);
    let choices = demux.choices().map(|choice| {
        let message = choice.message();
        let calls = message.tool_calls.iter().map(|call| {
            let arguments: Value =
                serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
            json!([call.id.as_deref(), &*call.name, arguments])
        });
        json!({
            "index": choice.index().0,
            "content": message.content,
            "reasoning": message.reasoning,
            "calls": calls.collect::<Vec<_>>(),
            "reason": choice.finish_reason().map(|reason| reason.as_str()),
        })
    });
    let dialect = demux.metadata().dialect();
    json!([
        dialect.map(|dialect| dialect.as_str()),
        choices.collect::<Vec<_>>()
    ])
}

#[test]
fn each_recording_is_served_at_the_paths_of_its_provider() {
    let replay = replay("");
    let check = |name, path: &str, body: &str, content_type: &str| {
        let response = replay.send("POST", path, body);
        assert_eq!((response.status, response.error), (200, None), "{path}");
        let header = format!("content-type: {content_type}\r\n");
        assert!(response.head.contains(&header), "{path}: {}", response.head);
        assert_eq!(response.body(), Fixture::named(name).bytes, "{path}");
    };
    let stream = r#"{"stream":true}"#;
    check(ANTHROPIC, "/v1/messages", stream, "text/event-stream");
    check(RESPONSES, "/v1/responses", stream, "text/event-stream");
    check(COHERE, "/v2/chat", stream, "text/event-stream");
    check(OLLAMA, "/api/chat", "{}", "application/x-ndjson");
    check(OLLAMA, "/api/generate", stream, "application/x-ndjson");
    let events = format!("{GEMINI_PATH}?key=x&alt=sse");
    check(GEMINI, &events, "{}", "text/event-stream");
    let binary = "application/vnd.amazon.eventstream";
    check(BEDROCK, BEDROCK_PATH, "{}", binary);
    check(
        BEDROCK,
        "/model/m/invoke-with-response-stream",
        "{}",
        binary,
    );
    check(
        CHAT_FIXTURE,
        "/v1/chat/completions",
        stream,
        "text/event-stream",
    );
}

#[test]
fn each_recording_is_served_without_streaming() {
    let replay = replay("");
    let check = |name, path: &str, body: &str| {
        let response = replay.send("POST", path, body);
        assert_eq!((response.status, response.error), (200, None), "{path}");
        assert!(response.head.contains("content-type: application/json"));
        let whole = response.body();
        assert!(serde_json::from_slice::<Value>(&whole).is_ok(), "{path}");
        assert_eq!(
            answer(&whole),
            answer(&Fixture::named(name).bytes),
            "{path}"
        );
    };
    check(ANTHROPIC, "/v1/messages", "{}");
    check(RESPONSES, "/v1/responses", r#"{"stream":false}"#);
    check(COHERE, "/v2/chat", "{}");
    check(OLLAMA, "/api/chat", r#"{"stream":false}"#);
    check(GEMINI, "/v1/models/gemini-x:generateContent", "{}");
    check(BEDROCK, "/model/m/converse", "{}");
    check(CHAT_FIXTURE, "/v1/chat/completions", "{}");
}

#[test]
fn a_stream_of_gemini_has_the_framing_of_the_request() {
    let replay = replay("");
    let array = replay.send("POST", GEMINI_PATH, "{}");
    assert!(array.head.contains("content-type: application/json"));
    assert!(array.json().is_array());
    assert_eq!(answer(&array.body()), answer(&Fixture::named(GEMINI).bytes));
    let recorded_array = "gemini/gemini-g02-array";
    let replay = Replay::of_files(&[path(recorded_array)], "");
    let recorded = Fixture::named(recorded_array).bytes;
    assert_eq!(replay.send("POST", GEMINI_PATH, "{}").body(), recorded);
    let events = replay.send("POST", &format!("{GEMINI_PATH}?alt=sse"), "{}");
    assert!(events.head.contains("content-type: text/event-stream"));
    assert!(events.body().starts_with(b"data: {"));
    assert_eq!(answer(&events.body()), answer(&recorded));
}

#[test]
fn a_body_that_was_not_streamed_is_served_unchanged() {
    for (name, path_of_api) in [
        ("anthropic/anthropic-body", "/v1/messages"),
        ("gemini/gemini-body", "/v1beta/models/m:generateContent"),
        ("cohere/cohere-body", "/v2/chat"),
        ("bedrock/bedrock-body", "/model/m/converse"),
        ("responses/openai-body", "/v1/responses"),
        ("ollama/ollama-o13-not-streamed", "/api/chat"),
    ] {
        let replay = Replay::of_files(&[path(name)], "");
        let response = replay.send("POST", path_of_api, r#"{"stream":false}"#);
        assert!(response.head.contains("content-type: application/json"));
        assert_eq!(response.body(), Fixture::named(name).bytes, "{name}");
    }
}

#[test]
fn binary_messages_are_the_events_of_a_recording() {
    let replay = replay("");
    let response = replay.send("POST", BEDROCK_PATH, "{}");
    assert!(response.chunks.len() > 5, "{}", response.chunks.len());
    for chunk in &response.chunks {
        let length = u32::from_be_bytes(*chunk.first_chunk().unwrap());
        assert_eq!(length as usize, chunk.len());
    }
}

#[test]
fn a_path_gets_recordings_of_its_own_dialect_and_errors_in_its_form() {
    let replay = Replay::of_files(&[path(ANTHROPIC)], "");
    let error = |path: &str| {
        let response = replay.send("POST", path, r#"{"stream":true}"#);
        assert_eq!(response.status, 404, "{path}");
        response.json()
    };
    let openai = error("/v1/chat/completions");
    assert_eq!(openai["error"]["type"], "invalid_request_error");
    assert_eq!(
        error("/api/chat")["error"],
        "no recording is left for this request"
    );
    assert!(error("/v2/chat")["message"].is_string());
    assert_eq!(error(GEMINI_PATH)["error"]["status"], "NOT_FOUND");
    let replay = Replay::of_files(&[path(ANTHROPIC)], "--fault status:529");
    let response = replay.send("POST", "/v1/messages", "{}");
    assert_eq!(response.status, 529);
    let expected = json!({ "type": "overloaded_error", "message": "this replay is set to fail" });
    assert_eq!(
        response.json(),
        json!({ "type": "error", "error": expected })
    );
}

#[test]
fn an_answer_without_a_native_form_is_only_streamed() {
    let replay = Replay::of_files(&[path("bedrock/bedrock-b13-two-generations")], "");
    assert_eq!(replay.send("POST", BEDROCK_PATH, "{}").status, 200);
    let response = replay.send("POST", "/model/m/converse", "{}");
    assert_eq!(response.status, 501);
    let message = response.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("2 choices"), "{message}");
}

#[test]
fn a_stream_of_another_provider_is_recorded_at_its_path() {
    let fixture = Fixture::named(GEMINI).bytes;
    let body = fixture.clone();
    let provider = crate::chat::server::Server::start(move |_, request| {
        let path = "/models/gemini-x:streamGenerateContent?alt=sse";
        assert!(request.head.contains(path), "{}", request.head);
        crate::chat::server::Reply::new(200, "text/event-stream", &body)
    });
    let (_dir, files) = record::missing(&["a.sse"]);
    let replay = record::record(&provider, &files, "");
    let path = format!("{GEMINI_PATH}?alt=sse");
    let ask = || {
        let key = "x-goog-api-key: a-key-that-is-not-recorded\r\n";
        Response::read(replay.connect_with("POST", &path, key, "{}"))
    };
    assert_eq!(ask().body(), fixture);
    assert_eq!(ask().body(), fixture, "from the file");
    assert_eq!(std::fs::read(&files[0]).unwrap(), fixture);
    let exchange = std::fs::read_to_string(format!("{}.exchange.json", files[0])).unwrap();
    assert!(!exchange.contains("a-key-that"), "{exchange}");
}
