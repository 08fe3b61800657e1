//! Chunks of a fan-out, chunks without cancelled choices, and chunks of the gateway's own.

use serde_json::{Value, json};
use unbraid_core::{ChoiceIndex, CompletionKind, Config, Demux, Metadata};
use unbraid_log::End;

use super::{SyntheticChunks, before_failure, set_index, without_choices};

#[track_caller]
fn check(given: Option<Vec<u8>>, expected: Option<&str>) {
    let given = given.map(|given| String::from_utf8(given).unwrap());
    assert_eq!(given.as_deref(), expected);
}

#[test]
fn the_index_is_set_and_nothing_else_changes() {
    let index = ChoiceIndex(12);
    check(
        set_index(
            br#"{ "choices" : [ {"delta":{"content":"\u00e9"}, "index" : 0 } ] , "x":1.0}"#,
            index,
        ),
        Some(r#"{ "choices" : [ {"delta":{"content":"\u00e9"}, "index" : 12 } ] , "x":1.0}"#),
    );
    check(
        set_index(br#"{"choices":[{"text":"a"}]}"#, index),
        Some(r#"{"choices":[{"index":12,"text":"a"}]}"#),
    );
    check(set_index(br#"{"choices":[],"usage":{}}"#, index), None);
    check(set_index(b"[DONE]", index), None);
}

#[test]
fn entries_of_cancelled_choices_are_removed() {
    let payload = br#"{"choices":[{"index":0,"text":"a"},{"index":1,"text":"b"}],"x":1}"#;
    let dropped = [ChoiceIndex(0), ChoiceIndex(1)];
    check(
        without_choices(payload, &dropped[1..]),
        Some(r#"{"choices":[{"index":0,"text":"a"}],"x":1}"#),
    );
    check(without_choices(payload, &dropped), None);
    // Entries that are known by their position keep their choice.
    let payload = br#"{"choices":[{"text":"a"},{"text":"b"}]}"#;
    check(
        without_choices(payload, &dropped[..1]),
        Some(r#"{"choices":[{"index":1,"text":"b"}]}"#),
    );
    check(
        without_choices(payload, &[ChoiceIndex(2)]),
        Some(str::from_utf8(payload).unwrap()),
    );
    check(
        without_choices(br#"{"choices":{"index":1,"text":"b"}}"#, &dropped),
        None,
    );
}

#[test]
fn the_chunk_before_the_failure_of_a_choice_has_no_finish_reason_and_is_not_empty() {
    for (payload, expected) in [
        (
            r#"{"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"error"}],"error":{}}"#,
            Some(
                r#"{"id":"c","choices":[{"index":0,"delta":{"content":"b"},"finish_reason":null}]}"#,
            ),
        ),
        (
            r#"{"choices":[{"index":0,"text":"b"}],"error":{},"x":1.0}"#,
            Some(r#"{"choices":[{"index":0,"text":"b"}],"x":1.0}"#),
        ),
        (
            r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{}}"#,
            None,
        ),
        (r#"{"choices":[{"index":0,"delta":{}}],"error":{}}"#, None),
        (r#"{"choices":[],"error":{}}"#, None),
        (r#"{"error":{}}"#, None),
    ] {
        check(before_failure(payload.as_bytes()), expected);
    }
}

#[test]
fn the_last_chunk_of_a_choice_has_the_streams_envelope() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"id\":\"c1\",\"created\":7,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{}}]}\n\n");
    let chunks = SyntheticChunks::new(demux.metadata(), "/v1/chat/completions");
    assert_eq!(
        chunks.cancelled(ChoiceIndex(3)),
        r#"{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":3,"delta":{},"finish_reason":"cancelled"}]}"#
    );
    let failed: Value =
        serde_json::from_str(&chunks.failed(ChoiceIndex(3), End::TimedOut, None)).unwrap();
    let entry = &failed["choices"][0];
    assert_eq!(
        (&entry["delta"], &entry["finish_reason"]),
        (&json!({}), &json!("error"))
    );
    assert_eq!(
        (&entry["error"]["code"], &entry["error"]["type"]),
        (&json!("timed_out"), &json!("stream_error"))
    );
}

#[test]
fn the_endpoint_decides_the_kind_of_an_empty_stream() {
    let empty = Metadata::default();
    let text = SyntheticChunks::new(&empty, "/v1/completions").cancelled(ChoiceIndex(0));
    assert!(
        text.contains(r#""object":"text_completion""#) && text.contains(r#""text":"""#),
        "{text}"
    );
    let mut known = Metadata::default();
    known.kind = Some(CompletionKind::Chat);
    let chat = SyntheticChunks::new(&known, "/v1/completions").cancelled(ChoiceIndex(0));
    assert!(chat.contains("chat.completion.chunk"), "{chat}");
}
