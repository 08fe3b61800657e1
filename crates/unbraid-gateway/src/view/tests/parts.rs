//! Views of one part of a message.

use unbraid_log::{Meta, Seq};

use super::script::{Script, part};
use crate::view::{Part, Start};

#[test]
fn a_part_keeps_the_role_and_itself_and_the_finish_chunk() {
    let mut script = Script::new(1);
    let delta = |delta: &str, finish: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}],"x":1}}"#)
    };
    for (given, finish) in [
        (
            r#"{"role":"assistant","content":"","reasoning_content":null}"#,
            "null",
        ),
        (r#"{"reasoning_content":"r", "content":""}"#, "null"),
        (r#"{"content":"a","annotations":[]}"#, "null"),
        (r#"{"refusal":"no"}"#, "null"),
        (
            r#"{"tool_calls":[{"index":0,"id":"x","function":{"name":"f"}},{"index":1,"id":"y","function":{"name":"g"}}]}"#,
            "null",
        ),
        (
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}"#,
            "null",
        ),
        ("{}", r#""stop""#),
    ] {
        script.chunk(&[0], &delta(given, finish));
    }
    let shown = |kind: Part| {
        let (text, _) = script.read(part(0, kind), Start::Beginning);
        let events = text
            .split("\n\n")
            .filter_map(|event| event.split_once("data: "));
        events.map(|(_, data)| data.to_owned()).collect::<Vec<_>>()
    };
    let finish = delta("{}", r#""stop""#);
    assert_eq!(
        shown(Part::Content),
        [
            delta(r#"{"role":"assistant","content":""}"#, "null"),
            delta(r#"{"content":"a"}"#, "null"),
            finish.clone()
        ]
    );
    assert_eq!(
        shown(Part::Reasoning),
        [
            delta(r#"{"role":"assistant","reasoning_content":null}"#, "null"),
            delta(r#"{"reasoning_content":"r"}"#, "null"),
            finish.clone()
        ]
    );
    assert_eq!(
        shown(Part::Refusal),
        [
            delta(r#"{"role":"assistant"}"#, "null"),
            delta(r#"{"refusal":"no"}"#, "null"),
            finish.clone()
        ]
    );
    assert_eq!(
        shown(Part::ToolCall(1)),
        [
            delta(r#"{"role":"assistant"}"#, "null"),
            delta(
                r#"{"tool_calls":[{"index":1,"id":"y","function":{"name":"g"}}]}"#,
                "null"
            ),
            delta(
                r#"{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]}"#,
                "null"
            ),
            finish
        ]
    );
}

#[test]
fn calls_without_an_index_are_numbered_by_their_order_from_any_cursor() {
    let mut script = Script::new(1);
    for call in [
        r#"{"id":"x","function":{"name":"f"}}"#,
        r#"{"function":{"arguments":"1"}}"#,
        r#"{"id":"y","function":{"name":"g"}}"#,
        r#"{"function":{"arguments":"2"}}"#,
        r#"{"id":"x","function":{"arguments":"3"}}"#,
    ] {
        script.chunk(
            &[0],
            &format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}"#),
        );
    }
    let ids = |call, after| {
        let (text, _) = script.read(part(0, Part::ToolCall(call)), Start::After(Seq(after)));
        let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
        ids.map(|id| id.parse::<u64>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((ids(0, 0), ids(1, 0)), (vec![1, 2, 5], vec![3, 4]));
    assert_eq!((ids(0, 3), ids(1, 3)), (vec![5], vec![4]));
}

#[test]
fn parts_of_text_completions_are_their_text() {
    let mut script = Script::of(Meta::new("/v1/completions", 7));
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#,
    );
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"text":"b","finish_reason":"stop"}]}"#,
    );
    let (content, _) = script.read(part(0, Part::Content), Start::Beginning);
    assert_eq!(content.matches("id: ").count(), 2);
    let (reasoning, _) = script.read(part(0, Part::Reasoning), Start::Beginning);
    assert!(
        reasoning.contains(r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#),
        "{reasoning}"
    );
    assert_eq!(reasoning.matches("id: ").count(), 1);
}

#[test]
fn a_text_completion_has_its_other_parts_beside_its_text() {
    let mut script = Script::of(Meta::new("/v1/completions", 7));
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"text":"a","reasoning":"r","finish_reason":null}]}"#,
    );
    script.chunk(
        &[0],
        r#"{"choices":[{"index":0,"text":"b","reasoning":null,"finish_reason":"stop"}]}"#,
    );
    let shows = |kind, expected: &[&str]| {
        let (text, _) = script.read(part(0, kind), Start::Beginning);
        let chunks = text.lines().filter_map(|line| line.strip_prefix("data: "));
        let entries: Vec<&str> = chunks
            .filter_map(|chunk| chunk.strip_prefix(r#"{"choices":[{"index":0,"#))
            .collect();
        assert_eq!(entries, expected, "{text}");
    };
    shows(
        Part::Content,
        &[
            r#""text":"a","reasoning":null,"finish_reason":null}]}"#,
            r#""text":"b","reasoning":null,"finish_reason":"stop"}]}"#,
        ],
    );
    shows(
        Part::Reasoning,
        &[
            r#""text":"","reasoning":"r","finish_reason":null}]}"#,
            r#""text":"","reasoning":null,"finish_reason":"stop"}]}"#,
        ],
    );
    shows(
        Part::Refusal,
        &[r#""text":"","reasoning":null,"finish_reason":"stop"}]}"#],
    );
}

#[test]
fn c19_a_text_completion_may_have_its_other_parts_without_a_text() {
    let chunks = [
        r#"{"choices":[{"index":0,"reasoning":"r","finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}"#,
    ];
    let mut script = Script::of(Meta::new("/v1/completions", 7));
    for chunk in chunks {
        script.chunk(&[0], chunk);
    }
    let shows = |kind, expected: &[&str]| {
        let (text, _) = script.read(part(0, kind), Start::Beginning);
        let shown: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|chunk| chunk.starts_with(r#"{"choices""#))
            .collect();
        assert_eq!(shown, expected, "{text}");
    };
    shows(Part::Content, &[chunks[1]]);
    let without_text = chunks[1].replace(r#""a""#, r#""""#);
    shows(Part::Reasoning, &[chunks[0], &without_text]);
}
