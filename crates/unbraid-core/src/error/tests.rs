use super::{ServerError, StreamError};
use crate::{
    ChoiceError, Config, Demux,
    frame::{FrameLimits, Framer},
};

const SECRET: &str = "SECRET";

/// No error of this stream shows the secret in it, and there is one.
#[track_caller]
fn check(options: Config, stream: &str) {
    assert!(stream.contains(SECRET));
    let mut demux = Demux::new(options);
    demux.feed(stream.as_bytes());
    demux.finish();
    let stream_error = demux.closed().and_then(|closed| closed.as_ref().err());
    let outcomes = demux.choices().filter_map(|choice| choice.result()?.err());
    let shown: Vec<String> = outcomes
        .map(|error: ChoiceError| format!("{error} {error:?}"))
        .chain(stream_error.map(|error: &StreamError| format!("{error} {error:?}")))
        .chain(
            demux
                .warnings()
                .iter()
                .map(|warning| format!("{warning} {warning:?}")),
        )
        .collect();
    assert!(!shown.is_empty());
    assert!(!shown.concat().contains(SECRET), "{shown:?}");
}

#[test]
fn no_error_and_no_warning_shows_the_payload() {
    let strict = || Config {
        strict: true,
        ..Config::default()
    };
    check(
        Config::default(),
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"SECRET\"}}]}\n\n",
    );
    check(
        Config::default(),
        "data: {\"error\":{\"message\":\"SECRET\",\"type\":\"SECRET SECRET\"}}\n\n",
    );
    check(Config::default(), "event: error\ndata: SECRET\n\n");
    check(Config::default(), "<html>SECRET</html>");
    check(Config::default(), "data: {SECRET\n\ndata: [DONE]\n\n");
    check(Config::default(), "{SECRET");
    check(
        Config::default(),
        "data: {\"choices\":[{\"index\":\"SECRET\"}]}\n\n",
    );
    check(strict(), "data: {SECRET\n\n");
    check(strict(), "SECRET: 1\n\n");
}

#[test]
fn the_debug_text_of_a_frame_has_lengths_only() {
    let mut framer = Framer::new(
        FrameLimits {
            line: 100,
            event: 100,
        },
        false,
    );
    let mut input = &b"event: SECRET\ndata: SECRET\n\n"[..];
    let frame = framer.next(&mut input).map(|frame| format!("{frame:?}"));
    let expected = "Ok(Frame { kind: Event, event_bytes: Some(6), data_bytes: 6, offset: 0 })";
    assert_eq!(frame.as_deref(), Some(expected));
    assert!(!format!("{framer:?}").contains(SECRET));
}

#[test]
fn x9_the_numbers_of_an_error_keep_their_text() {
    for body in [
        r#"{"message":"quota","limit":9007199254740993}"#,
        r#"{"message":"quota","limit":9007199254740993.0,"used":1e400,"share":1.50}"#,
        r#"{"message":"quota","limit":12345678901234567890123,"of":[-0,{"x":1E2}]}"#,
    ] {
        let text = r#"data: {"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
        let of_stream = format!("{text}\n\ndata: {{\"error\":{body}}}\n\n");
        let of_choice = format!(
            "{text}\n\ndata: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"error\":{body}}}]}}\n\n"
        );
        for stream in [of_stream, of_choice] {
            let mut demux = Demux::new(Config::default());
            demux.feed(stream.as_bytes());
            demux.finish();
            // The error of a stream is the whole event, that of a choice its field.
            let part = format!("{body}}}");
            let mut printed = Vec::new();
            while let Some(event) = demux.next_event() {
                printed.push((
                    event.event.as_str(),
                    serde_json::to_string(&event).unwrap(),
                    event.to_string(),
                ));
            }
            let ends = printed
                .iter()
                .filter(|(name, ..)| matches!(*name, "end" | "error"));
            for (name, text, line) in ends {
                assert!(
                    text.contains(&part) && line.contains(&part),
                    "{name}: {text}"
                );
            }
            assert!(printed.iter().any(|(_, text, _)| text.contains(&part)));
            let result = demux.choices().find_map(|choice| choice.result());
            let Some(Err(error)) = result else {
                panic!("the choice has no error");
            };
            assert!(error.to_string().len() < 200);
        }
    }
}

#[test]
fn a_long_error_is_kept_once() {
    let long = |bytes| format!("{{\"message\":\"{}\",\"limit\":1.50}}", "a".repeat(bytes));
    let printed = |bytes| ServerError::new(&long(bytes), 0).body_json();
    assert_eq!(printed(1000), long(1000));
    assert_eq!(printed(1 << 20), long(1 << 20).replace("1.50", "1.5"));
    assert_eq!(
        ServerError::new("no JSON 1.50", 0).body_json(),
        "\"no JSON 1.50\""
    );
}

#[test]
fn x03_null_around_an_error_hides_none_of_its_fields() {
    for body in [
        r#"{"code":null,"type":null,"message":null,"error":{"code":429,"type":"quota","message":"m"}}"#,
        r#"{"error":{"code":null,"type":"quota","message":"m"},"base_resp":{"code":429}}"#,
    ] {
        let error = ServerError::new(body, 0);
        assert_eq!(error.code().as_deref(), Some("429"), "{body}");
        assert_eq!(error.kind(), Some("quota"), "{body}");
    }
}
