use super::{BodyFormat, Head};
use crate::{Config, Demux, Dialect, StreamError};

fn closed(body: &[u8]) -> Result<(), StreamError> {
    let mut demux = Demux::new(Config::default());
    demux.feed(body);
    demux.finish();
    demux.closed().cloned().unwrap_or(Ok(()))
}

/// Checks the format of a body that is one JSON value, one event, and one event with an end mark after it.
#[track_caller]
fn check(json: &str, expected: BodyFormat) {
    let event = format!("data: {json}\n\n");
    let pinged = format!("event: ping\ndata: {{}}\n\n{event}data: [DONE]\n\n");
    for body in [json, &event, &pinged] {
        match closed(body.as_bytes()) {
            Err(StreamError::UnsupportedFormat { format, .. }) => assert_eq!(format, expected),
            other => panic!("{other:?}: {body}"),
        }
    }
}

#[test]
fn a_foreign_body_without_a_choice_is_recognised() {
    check(
        r#"{"index":1,"token":{"id":5,"text":"Hi"},"generated_text":null}"#,
        BodyFormat::TextGenerationInference,
    );
    check(
        r#"{"index":0,"content":"Hi","stop":false}"#,
        BodyFormat::LlamaCpp,
    );
    check(
        r#"{"id":"m1","object":"thread.message.delta","delta":{"content":[]}}"#,
        BodyFormat::Assistants,
    );
    check(
        r#"{"id":"t1","object":"thread","metadata":{}}"#,
        BodyFormat::Assistants,
    );
}

#[test]
fn h09_b19_formats_that_no_dialect_reads_are_named() {
    check(
        r#"{"is_finished":false,"event_type":"text-generation","text":"Hi"}"#,
        BodyFormat::CohereV1,
    );
    check(
        r#"{"type":"completion","completion":" Hi","stop_reason":null}"#,
        BodyFormat::AnthropicCompletion,
    );
    check(
        r#"{"type":"conversation.response.started","conversation_id":"c"}"#,
        BodyFormat::MistralConversations,
    );
    check(
        r#"{"event_type":"interaction.start","interaction":{"id":"i"}}"#,
        BodyFormat::GeminiInteractions,
    );
    check(
        r#"{"event_type":"step.delta","index":0,"delta":{"type":"text","text":"Hi"}}"#,
        BodyFormat::GeminiInteractions,
    );
    check(
        r#"{"type":"text-delta","id":"0","delta":"Hi"}"#,
        BodyFormat::AiSdk,
    );
    check(
        r#"{"type":"stream-start","warnings":[]}"#,
        BodyFormat::AiSdk,
    );
    check(
        r#"{"type":"session.created","session":{}}"#,
        BodyFormat::Realtime,
    );
}

#[test]
fn the_answers_of_a_realtime_session_are_no_responses() {
    let events = [
        r#"{"type":"session.created","session":{}}"#,
        r#"{"type":"response.created","response":{"object":"realtime.response"}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"Hi"}"#,
        r#"{"type":"response.done","response":{"object":"realtime.response"}}"#,
    ];
    let body: String = events.map(|event| format!("data: {event}\n\n")).concat();
    let realtime = closed(body.as_bytes());
    assert!(
        matches!(
            realtime,
            Err(StreamError::UnsupportedFormat {
                format: BodyFormat::Realtime,
                ..
            })
        ),
        "{realtime:?}"
    );
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
    assert!(closed(format!("{body}data: {chunk}\n\n").as_bytes()).is_ok());
}

#[test]
fn d05_a_dialect_that_does_not_fit_is_an_error() {
    let body = br#"{"type":"message_start","message":{"role":"assistant","content":[]}}"#;
    for dialect in [Dialect::Chat, Dialect::Gemini, Dialect::Ollama] {
        let mut demux = Demux::new(Config::default().with_dialect(dialect));
        demux.feed(body);
        demux.finish();
        assert!(
            matches!(demux.closed(), Some(Err(_))),
            "{dialect}: {:?}",
            demux.closed()
        );
    }
}

#[test]
fn foreign_json_with_usage_is_never_a_success() {
    let body = b"data: {\"kind\":\"end\",\"usage\":{\"tokens\":5}}\n\ndata: [DONE]\n\n";
    assert!(matches!(
        closed(body),
        Err(StreamError::UnsupportedFormat {
            format: BodyFormat::Json,
            events: 2
        })
    ));
}

#[test]
fn e01_e03_a_completion_without_choices_is_not_foreign() {
    let with_done = |chunk: &str| closed(format!("data: {chunk}\n\ndata: [DONE]\n\n").as_bytes());
    let usage = r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}"#;
    for chunk in [
        format!(r#"{{"choices":[],{usage}}}"#),
        format!(r#"{{"choices":null,"type":"response.done",{usage}}}"#),
        format!(r#"{{{usage}}}"#),
        r#"{"object":"chat.completion.chunk","usage":{"cost":1}}"#.to_owned(),
    ] {
        assert!(with_done(&chunk).is_ok(), "{chunk}");
    }
    // The first chunk of Azure, with nothing after it.
    let filter =
        r#"{"choices":[],"created":0,"id":"","prompt_filter_results":[{"prompt_index":0}]}"#;
    assert!(matches!(with_done(filter), Err(StreamError::Empty { .. })));
    let mixed =
        format!("data: {{\"type\":\"message_start\"}}\n\ndata: {{\"choices\":[],{usage}}}\n\n");
    assert!(
        closed(mixed.as_bytes()).is_ok(),
        "some of it is a completion"
    );
}

#[test]
fn a_foreign_event_beside_choices_changes_nothing() {
    let body = b"data: {\"generated_text\":\"x\"}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n";
    assert!(closed(body).is_ok());
}

#[test]
fn a_server_error_is_not_replaced_by_a_format_error() {
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#;
    assert!(matches!(closed(body), Err(StreamError::Server(_))));
}

#[test]
fn s30_a_page_is_recognised_by_its_first_bytes() {
    let format = |body: &[u8]| {
        let mut head = Head::default();
        body.chunks(1).for_each(|byte| head.extend(byte));
        let mut complete = Head::default();
        complete.extend(body);
        assert_eq!(head.format(), complete.format());
        complete.format()
    };
    assert_eq!(
        format(b"\n <!DOCTYPE HTML>\n<html>"),
        Some(BodyFormat::Html)
    );
    assert_eq!(format(b"\xEF\xBB\xBF<html>"), Some(BodyFormat::Html));
    assert_eq!(format(b"<?xml version=\"1.0\"?>"), None);
    assert_eq!(format(b"data: <html>"), None);
    assert_eq!(
        format(b"\0\0\0\x8a\0\0\0\x52\x01\x02\x03\x04\x0b:event-type\x07"),
        Some(BodyFormat::Bedrock)
    );
    let error = closed(b"<html>Bad gateway</html>").unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a stream of completion chunks: it appears to be an error page (HTML)"
    );
    assert_eq!(error.as_str(), "not_a_stream");
    assert_eq!(serde_json::to_value(error).expect("JSON")["format"], "html");
}
