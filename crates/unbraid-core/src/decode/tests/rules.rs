//! Each test checks one rule on all decode paths.

mod reasoning;
mod usage;

use std::sync::Arc;

use super::{check, choice_of, updates};
use crate::{Update, decode::Decoder, limits::MAX_JSON_DEPTH};

/// The updates of chunks, which all paths have to agree on.
#[track_caller]
fn by_every_path(chunks: &[&str]) -> Vec<Update<'static>> {
    by_every_path_with(chunks, &crate::config::default_reasoning_keys())
}

#[track_caller]
fn by_every_path_with(chunks: &[&str], keys: &[Arc<str>]) -> Vec<Update<'static>> {
    let stream: String = chunks
        .iter()
        .map(|chunk| format!("data: {chunk}\n\n"))
        .collect();
    let read = |decoder: Decoder| updates(stream.as_bytes(), decoder.with_reasoning_keys(keys));
    let fast = read(Decoder::new(false, MAX_JSON_DEPTH));
    let parsed = read(Decoder::reference(false, MAX_JSON_DEPTH));
    let by_field = read(Decoder::by_field(false, MAX_JSON_DEPTH));
    assert_eq!(fast, parsed, "{stream}");
    assert_eq!(parsed, by_field, "{stream}");
    fast
}

fn arguments(update: &Update<'_>) -> String {
    let call = update.tool_calls.first().expect("a call");
    call.arguments
        .as_ref()
        .map(|arguments| arguments.text.to_string())
        .expect("arguments")
}

#[test]
fn t20_arguments_sent_as_a_value_keep_their_own_text() {
    let text = |value: &str| {
        let chunk = choice_of(&format!(
            "\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":{value}}}}}]}}"
        ));
        arguments(&by_every_path(&[&chunk])[0])
    };
    for value in [
        r#"{"id":12345678901234567890123}"#,
        r#"{"n":1e400,"m":-0.10,"k":1E+2}"#,
        r#"{"a":1,"a":2,"é":"\u00e9\/\ud83d"}"#,
        r#"{"b":[],"a":{}}"#,
        r#"{"a":NaN,"b":"\d"}"#,
        "[1.0]",
        "1.50",
        "true",
    ] {
        assert_eq!(text(value), value);
    }
    assert_eq!(
        text("{ \"a b\" : [ 1 ,\t2.0 ] , \"c\" : \" d \" }"),
        r#"{"a b":[1,2.0],"c":" d "}"#
    );
    assert_eq!(text("{\"a\":\"x\u{1}y\" }"), "{\"a\":\"x\u{1}y\"}");
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    assert_eq!(text(&deep), deep);
}

#[test]
fn t36_the_arguments_of_a_legacy_call_keep_their_own_text() {
    let chunk = choice_of(
        r#""delta":{"function_call":{"name":"f","arguments":{ "id": 12345678901234567890123 }}}"#,
    );
    let update = &by_every_path(&[&chunk])[0];
    let arguments = update.function_arguments.as_ref().expect("some");
    assert_eq!(arguments.text, r#"{"id":12345678901234567890123}"#);
}

#[test]
fn j15_raw_fields_keep_numbers_of_any_size_on_every_path() {
    for number in [
        "12345678901234567890123",
        "1e400",
        "-1E-400",
        "0.10",
        &"7".repeat(500),
    ] {
        let chunk = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"a","d":{number}}},"logprobs":{{"content":[{{"logprob":{number}}}]}},"c":[{number}]}}],"e":{{"f":{number}}}}}"#
        );
        assert!(check(&chunk, "the fast paths accept it"));
        let updates = by_every_path(&[&chunk]);
        let fields: Vec<&str> = updates
            .iter()
            .flat_map(|update| &update.metadata)
            .map(|(_, raw)| &**raw)
            .collect();
        let expected = [
            number.to_owned(),
            format!("[{number}]"),
            format!("{{\"f\":{number}}}"),
        ];
        assert_eq!(fields, expected);
        assert_eq!(
            updates[0].logprobs.as_deref(),
            Some(&*format!("{{\"content\":[{{\"logprob\":{number}}}]}}"))
        );
        assert!(updates.iter().all(|update| update.warnings.is_empty()));
    }
}

#[test]
fn e26_the_last_value_of_a_key_counts_on_every_path() {
    let same = |twice: &str, once: &str| {
        let (mut twice, once) = (by_every_path(&[twice]), by_every_path(&[once]));
        // The raw text of a value keeps both.
        for (twice, once) in twice.iter_mut().zip(&once) {
            if once.logprobs.is_some() && twice.logprobs.is_some() {
                twice.logprobs.clone_from(&once.logprobs);
            }
        }
        assert_eq!(twice, once);
    };
    let pairs = [
        (
            r#""delta":{"content":5,"content":"a"}"#,
            r#""delta":{"content":"a"}"#,
        ),
        (
            r#""delta":{"content":[{"type":"thinking","thinking":"t"},{"type":"image"}],"content":"a"}"#,
            r#""delta":{"content":"a"}"#,
        ),
        (r#""delta":{"content":"a","content":null}"#, r#""delta":{}"#),
        (
            r#""delta":{},"logprobs":{"content":null,"content":[{"token":"a"}]}"#,
            r#""delta":{},"logprobs":{"content":[{"token":"a"}]}"#,
        ),
        (
            r#""delta":{},"logprobs":{"content":[{"token":"a"}],"content":[]}"#,
            r#""delta":{},"logprobs":{"content":[]}"#,
        ),
        (
            r#""delta":{"content":"a","x":1,"x":null},"y":[1],"y":null"#,
            r#""delta":{"content":"a"}"#,
        ),
        (
            r#""delta":{"x":null,"z":2,"x":3,"content":"a"}"#,
            r#""delta":{"z":2,"x":3,"content":"a"}"#,
        ),
        (
            r#""delta":{"x":1,"z":2,"x":3,"content":"a"}"#,
            r#""delta":{"x":3,"z":2,"content":"a"}"#,
        ),
        (
            r#""delta":{"reasoning":"a","reasoning_content":"b","reasoning_content":""}"#,
            r#""delta":{"reasoning":"a"}"#,
        ),
        (
            r#""delta":{"tool_calls":[{"index":1,"index":0,"x":1,"x":null,"function":{"arguments":{"a":1},"arguments":"b"}}]}"#,
            r#""delta":{"tool_calls":[{"index":0,"function":{"arguments":"b"}}]}"#,
        ),
        (
            r#""delta":{"content":"a"},"delta":{"role":"b"}"#,
            r#""delta":{"role":"b"}"#,
        ),
        (r#""text":"a","text":"b""#, r#""text":"b""#),
        (
            r#""delta":{},"usage":{"prompt_tokens":1},"usage":null"#,
            r#""delta":{}"#,
        ),
        (
            r#""delta":{},"finish_reason":"stop","finish_reason":null"#,
            r#""delta":{}"#,
        ),
    ];
    for (twice, once) in pairs {
        same(&choice_of(twice), &choice_of(once));
    }
    same(
        r#"{"choices":[],"usage":{"prompt_tokens":1},"usage":null,"x":1,"x":null}"#,
        r#"{"choices":[]}"#,
    );
    same(
        r#"{"error":{"message":"x"},"error":null,"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        &choice_of(r#""delta":{"content":"a"}"#),
    );
}

#[test]
fn e26_fields_beyond_the_limit_are_dropped_alike_on_every_path() {
    let fields: Vec<String> = (0..300).map(|key| format!("\"k{key}\":{key}")).collect();
    let chunk = format!(
        r#"{{"choices":[],{},"k3":null,"k7":"x"}}"#,
        fields.join(",")
    );
    let updates = by_every_path(&[&chunk]);
    assert_eq!(updates[0].metadata.len(), crate::limits::MAX_FIELDS);
}

#[test]
fn c14_halves_of_a_character_join_across_parts_and_deltas() {
    let content = |parts: &str| choice_of(&format!("\"delta\":{{\"content\":{parts}}}"));
    let text = |value: &str| format!(r#"{{"type":"text","text":{value}}}"#);
    let (high, low) = (r#""A\ud83d""#, r#""\ude42B""#);
    let one = by_every_path(&[&content(&format!("[{},{}]", text(high), text(low)))]);
    let fragment = one[0].content.as_ref().expect("text");
    assert_eq!(
        (&*fragment.text, fragment.low, fragment.high),
        ("A🙂B", None, None)
    );
    assert!(one[0].warnings.is_empty());
    let two = by_every_path(&[
        &content(&format!("[{}]", text(high))),
        &content(&format!("[{}]", text(low))),
    ]);
    let fragments: Vec<_> = two.iter().flat_map(|update| &update.content).collect();
    assert_eq!(
        (&*fragments[0].text, fragments[0].high),
        ("A", Some(0xD83D))
    );
    assert_eq!((fragments[1].low, &*fragments[1].text), (Some(0xDE42), "B"));
    assert!(two.iter().all(|update| update.warnings.is_empty()));
    let nested = by_every_path(&[&content(&format!(
        r#"[{{"type":"thinking","thinking":[{},{}]}}]"#,
        text(high),
        text(low)
    ))]);
    let fragment = nested[0].reasoning.as_ref().expect("reasoning");
    assert_eq!(fragment.text, "A🙂B");
    let unmatched = by_every_path(&[&content(&format!("[{},{}]", text(high), text("\"B\"")))]);
    let fragment = unmatched[0].content.as_ref().expect("text");
    assert_eq!(fragment.text, "A\u{FFFD}B");
    let codes: Vec<&str> = unmatched[0].warnings.iter().map(|w| w.code).collect();
    assert_eq!(codes, ["C14"], "a half without its other half");
}

#[test]
fn foreign_json_has_the_same_format_on_every_path() {
    for chunk in [
        r#"{"content":"x","stop":false}"#,
        r#"{"token":{},"index":1,"generated_text":null}"#,
        r#"{"object":"thread.message.delta","id":"a"}"#,
        r#"{"object":"chat.completion.chunk"}"#,
        r#"{"type":"stream-start","x":1}"#,
        r#"{"usage":{"prompt_tokens":1}}"#,
        r#"{"a":1}"#,
        r#"{"id":null}"#,
    ] {
        let _checked = check(chunk, "foreign");
        assert_eq!(by_every_path(&[chunk]).len(), 1);
    }
}

#[test]
fn c19_an_entry_without_text_has_fields_beside_it_only_in_a_text_completion() {
    let reasoning = |chunks: &[&str]| -> Vec<Option<String>> {
        let updates = by_every_path(chunks).into_iter();
        updates
            .filter(|update| update.choice.is_some())
            .map(|update| update.reasoning.map(|text| text.text.to_string()))
            .collect()
    };
    let thought = r#"{"choices":[{"index":0,"reasoning":"a"}]}"#;
    let read = Some("a".to_owned());
    let own = r#"{"choices":[{"index":0,"reasoning":"a"}],"object":"text_completion"}"#;
    assert_eq!(reasoning(&[own]).first(), Some(&read));
    let text = r#"{"choices":[{"index":0,"text":""}]}"#;
    assert_eq!(
        reasoning(&[text, text, thought]),
        [None, None, read.clone()]
    );
    let both = r#"{"choices":[{"index":0,"reasoning":"a"},{"index":1,"text":""}]}"#;
    assert_eq!(reasoning(&[both]), [read, None]);
    // In a chat it is an unknown field.
    let chat = r#"{"choices":[{"index":0,"delta":{},"text":null}]}"#;
    let delta = r#"{"choices":[{"index":0,"delta":{"content":"b"},"text":"b"}]}"#;
    assert_eq!(reasoning(&[delta, thought]), [None, None]);
    assert_eq!(reasoning(&[chat, chat]), [None, None]);
    let message = r#"{"object":"text_completion","choices":[{"index":0,"reasoning":"a","message":{"content":"b"}}]}"#;
    let [update] = &*by_every_path(&[message]) else {
        panic!("one update");
    };
    assert!(update.reasoning.is_none() && update.content.is_some());
}
