//! Templates of other dialects: which events match one, after a comparison with a decoder that parses them all.

use super::{check_fast_paths, updates};
use crate::{
    decode::Decoder,
    frame::{FrameLimits, Framer},
    limits::{MAX_EVENT_BYTES, MAX_JSON_DEPTH, MAX_LINE_BYTES},
};

/// Which of the events match a template.
#[track_caller]
fn hits(start: &str, events: &[String]) -> Vec<bool> {
    let stream = [start, &events.concat()].concat();
    check_fast_paths(stream.as_bytes(), &stream);
    let mut decoder = Decoder::new(false, MAX_JSON_DEPTH);
    let mut framer = Framer::new(FrameLimits::new(MAX_LINE_BYTES, MAX_EVENT_BYTES), false);
    let mut decode = |mut input: &[u8]| {
        let before = decoder.template_hits();
        while let Some(Ok(frame)) = framer.next(&mut input) {
            decoder.decode(frame, &mut |_| {}).unwrap();
        }
        decoder.template_hits() > before
    };
    assert!(!decode(start.as_bytes()));
    events
        .iter()
        .map(|event| decode(event.as_bytes()))
        .collect()
}

fn named(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

const MESSAGE: &str = concat!(
    "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"role\":\"assistant\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\"}}\n\n",
);

fn block_delta(index: u32, kind: &str, key: &str, text: &str) -> String {
    let delta = format!("{{\"type\":\"{kind}\",\"{key}\":\"{text}\"}}");
    let data = format!("{{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{delta}}}");
    named("content_block_delta", &data)
}

#[test]
fn a01_a_delta_of_a_block_makes_a_template() {
    let text = |text: &str| block_delta(1, "text_delta", "text", text);
    let thinking = |text: &str| block_delta(0, "thinking_delta", "thinking", text);
    let input = |text: &str| block_delta(2, "input_json_delta", "partial_json", text);
    for delta in [&text as &dyn Fn(&str) -> String, &thinking, &input] {
        let events = ["a", "b", "c\\n\\u00e9", "", "\\ud83d", "\\ude00", "d"].map(delta);
        assert_eq!(
            hits(MESSAGE, &events),
            [false, true, true, false, false, false, true]
        );
    }
    let mixed = [
        text("a"),
        thinking("b"),
        text("c"),
        thinking("d"),
        input("{"),
        input("}"),
    ];
    assert_eq!(
        hits(MESSAGE, &mixed),
        [false, false, true, true, false, true]
    );
}

#[test]
fn a01_spaces_before_the_last_brace_are_padding() {
    let padded = |padding: &str| {
        block_delta(1, "text_delta", "text", "a").replace("}\n\n", &format!("{padding}}}\n\n"))
    };
    let events = ["", "   ", " ", "", "\t", "x"].map(padded);
    assert_eq!(
        hits(MESSAGE, &events),
        [false, true, true, true, false, false]
    );
}

#[test]
fn a09_a_delta_that_its_block_does_not_expect_is_parsed() {
    let text = |index| block_delta(index, "text_delta", "text", "a");
    assert_eq!(hits(MESSAGE, &[text(2), text(2)]), [false, false]);
    assert_eq!(
        hits(MESSAGE, &[text(7), text(7), text(7)]),
        [false, false, true]
    );
    let stop = "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n".to_owned();
    assert_eq!(
        hits(MESSAGE, &[text(1), text(1), stop, text(1)]),
        [false, true, false, false]
    );
    let other_name =
        named("other", "{}").replace("{}", &text(1)["event: content_block_delta\ndata: ".len()..]);
    assert_eq!(
        hits(MESSAGE, &[text(1), text(1), other_name]),
        [false, true, false]
    );
}

#[test]
fn p05_a_delta_of_an_item_makes_a_template() {
    let start = concat!(
        "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n",
        "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"i\"}}\n\n",
        "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\"}}\n\n",
    );
    let delta = |kind: &str, index: u32, number: u32, id: &str| {
        let kind = format!("response.{kind}.delta");
        named(
            &kind,
            &format!(
                "{{\"type\":\"{kind}\",\"sequence_number\":{number},\"item_id\":\"{id}\",\"output_index\":{index},\"delta\":\"a\",\"obfuscation\":\"{}\"}}",
                "x".repeat(number as usize)
            ),
        )
    };
    let text = |number| delta("output_text", 0, number, "i");
    // The padding becomes a hole when it differs for the first time.
    assert_eq!(
        hits(start, &[text(1), text(2), text(3), text(40)]),
        [false, false, true, true]
    );
    let rotating = [1, 2, 3].map(|n| delta("output_text", 0, n, &format!("i{n}")));
    assert_eq!(hits(start, &rotating), [false, false, true]);
    let arguments = [1, 2, 3].map(|n| delta("function_call_arguments", 1, n, "j"));
    assert_eq!(hits(start, &arguments), [false, false, true]);
    let unknown_item = [1, 2, 3].map(|n| delta("refusal", 5, n, "k"));
    assert_eq!(hits(start, &unknown_item), [false, false, true]);
}

#[test]
fn p13_only_the_first_kind_of_reasoning_counts_in_templates() {
    let start = "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n";
    let delta = |kind: &str| {
        format!(
            "data: {{\"type\":\"response.{kind}.delta\",\"output_index\":0,\"delta\":\"a\"}}\n\n"
        )
    };
    let (summary, text) = (delta("reasoning_summary_text"), delta("reasoning_text"));
    let events = [
        summary.clone(),
        summary.clone(),
        text.clone(),
        text,
        summary,
    ];
    assert_eq!(hits(start, &events), [false, true, false, false, true]);
}

fn chunk(index: u32, id: &str, tokens: u32, rest: &str) -> String {
    let content = "{\"parts\": [{\"text\": \"a\"}],\"role\": \"model\"}";
    format!(
        "data: {{\"candidates\": [{{\"content\": {content},\"index\": {index}{rest}}}],\"usageMetadata\": {{\"promptTokenCount\": 7,\"totalTokenCount\": {tokens}}},\"responseId\": \"{id}\"}}\r\n\r\n"
    )
}

#[test]
fn g12_chunks_with_usage_make_a_template() {
    let start = chunk(0, "g", 1, "");
    let events = [
        chunk(0, "g", 2, ""),
        chunk(0, "g", 300, ""),
        chunk(1, "g", 4, ""),
        chunk(1, "g", 5, ""),
        chunk(0, "g", 6, ",\"finishReason\": \"STOP\""),
        chunk(0, "g", 7, ""),
    ];
    // The first chunk of a candidate opens its choice.
    assert_eq!(
        hits(&start, &events),
        [false, true, false, true, false, true]
    );
    let decoder = Decoder::new(false, MAX_JSON_DEPTH);
    let stream = [&*start, &events.concat()].concat();
    let all = updates(stream.as_bytes(), decoder);
    let usage = all
        .iter()
        .filter_map(|update| update.usage.as_deref())
        .nth(2);
    assert_eq!(
        usage,
        Some("{\"promptTokenCount\":7,\"totalTokenCount\":300}")
    );
}
