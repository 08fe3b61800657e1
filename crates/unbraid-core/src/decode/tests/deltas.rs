//! Which chunks become text deltas, without an envelope.

use super::{check_fast_paths, template_hits, updates};
use crate::{
    Update,
    decode::Decoder,
    frame::Frame,
    limits::MAX_JSON_DEPTH,
    text_delta::{DeltaUsage, TextDelta, UpdateSink},
};

/// What a sink receives of these chunks: `u` for an update, `d` for a text delta.
fn kinds(chunks: &[&str]) -> String {
    struct Kinds(String);

    impl UpdateSink for Kinds {
        fn update(&mut self, _: &Update<'_>) {
            self.0.push('u');
        }
        fn text_delta(&mut self, _: &TextDelta<'_>) {
            self.0.push('d');
        }
        fn delta_usage(&mut self, _: &DeltaUsage<'_>) {}
    }

    let (mut decoder, mut kinds) = (Decoder::new(false, MAX_JSON_DEPTH), Kinds(String::new()));
    for chunk in chunks {
        let frame = Frame::of_data(chunk.as_bytes(), 0);
        decoder.decode_to(frame, &mut kinds).expect("lenient");
    }
    kinds.0
}

#[test]
fn e16_the_chunk_after_a_learned_one_is_a_text_delta_unless_its_envelope_differs() {
    let chunk = |fields: &str| {
        format!("{{{fields},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}]}}")
    };
    let check = |fields: [&str; 4], expected: &str| {
        let chunks = fields.map(chunk);
        let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
        assert_eq!(kinds(&chunks), expected, "{fields:?}");
    };
    let [a, b] = ["\"id\":\"a\"", "\"id\":\"b\""];
    check([a, a, a, a], "uddd");
    // A delta has no id, so a chunk that may have another one is always an update.
    check([a, a, b, b], "uduu");
    check([a, b, a, b], "uuuu");
    let [one, two] = ["\"created\":1", "\"created\":2"];
    check([one, one, two, one], "udud");
    // The first time of creation that is not 0 counts.
    check(["\"created\":0", two, one, one], "uudd");
    // An unknown field of the envelope follows in an update of its own if it is new.
    check(["\"x\":1", "\"x\":1", "\"x\":2", "\"x\":3"], "uuduudu");
}

#[test]
fn e8_chunks_without_an_index_match_templates_after_the_first_which_is_warned_about() {
    for (first, text, other) in [
        (
            r#"{"id":"a","choices":[{"delta":{"role":"assistant","content":"a"}}]}"#,
            r#"{"id":"a","choices":[{"delta":{"content":"$"}}]}"#,
            r#"{"id":"a","choices":[{"index":0,"delta":{"content":"c"}}]}"#,
        ),
        (
            r#"{"choices":[{"index":null,"text":"a"}]}"#,
            r#"{"choices":[{"text":"$","index":null}]}"#,
            r#"{"choices":[{"text":"c","index":1}]}"#,
        ),
    ] {
        let chunks = [
            first,
            &text.replace('$', "b"),
            &text.replace('$', "\\n"),
            other,
            &text.replace('$', "d"),
        ];
        assert_eq!(template_hits(&chunks), [false, false, true, false, true]);
        let stream: Vec<String> = chunks
            .iter()
            .map(|chunk| format!("data: {chunk}\n\n"))
            .collect();
        check_fast_paths(stream.concat().as_bytes(), text);
        let updates = updates(
            stream.concat().as_bytes(),
            Decoder::new(false, MAX_JSON_DEPTH),
        );
        let codes =
            |update: &Update<'_>| update.warnings.iter().map(|w| w.code).collect::<Vec<_>>();
        let codes: Vec<_> = updates.iter().map(codes).collect();
        assert_eq!(codes, [vec!["E8"], vec![], vec![], vec![], vec![]]);
    }
    // A chunk with nothing but known values has no hole at all.
    let empty = r#"{"choices":[{"delta":{"content":""}}]}"#;
    assert_eq!(template_hits(&[empty, empty, empty]), [false, false, true]);
}
