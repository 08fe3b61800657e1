//! Templates of other dialects: which events match one, after a comparison with a decoder that parses them all.

use unbraid_testkit::cut::every_cut_in_two;

use super::{check_fast_paths, updates};
use crate::{
    Config, Demux, Limits,
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

/// A chunk of one part, with these fields beside its text, beside its index, and of its usage.
fn part(text: &str, beside: &str, candidate: &str, usage: &str) -> String {
    let part = format!("{{\"text\": \"{text}\"{beside}}}");
    format!(
        "{{\"candidates\": [{{\"content\": {{\"parts\": [{part}],\"role\": \"model\"}},\"index\": 0{candidate}}}],\"usageMetadata\": {{{usage}}},\"responseId\": \"g\"}}"
    )
}

fn framed(data: &str) -> String {
    format!("data: {data}\r\n\r\n")
}

#[test]
fn g13_a_signature_beside_a_text_makes_a_template() {
    let signed = |text: &str, signature: &str| {
        let signature = format!(", \"thoughtSignature\": {signature}");
        framed(&part(text, &signature, "", "\"totalTokenCount\": 3"))
    };
    let start = framed(&part("a", "", "", "\"totalTokenCount\": 1"));
    let events = [
        signed("a", "\"s\""),
        signed("b \\u00e9 \\\" \\ud83d\\ude00", "\"t t\""),
        signed("c", "\"CiQB/+8=\""),
        signed("d", "\"\""),
        signed("e", "\"\\n\""),
        signed("f", "null"),
        signed("g", "{}"),
        signed("", "\"s\""),
        signed("h", "\"s\""),
    ];
    // The signature becomes a hole when it differs for the first time.
    assert_eq!(
        hits(&start, &events),
        [false, false, true, false, false, false, false, false, true]
    );
    let stream = [&*start, &events.concat()].concat();
    let decoder = Decoder::new(false, MAX_JSON_DEPTH);
    let all = updates(stream.as_bytes(), decoder);
    let entries = all.iter().flat_map(|update| &update.metadata);
    let entries: Vec<&str> = entries.map(|(_, raw)| &**raw).collect();
    assert_eq!(
        entries[2],
        "[{\"text\":\"c\",\"thoughtSignature\":\"CiQB/+8=\"}]"
    );
}

#[test]
fn g13_a_signature_without_usage_is_kept_by_a_demux() {
    let signed = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\",\"thoughtSignature\":\"s\"}]}}]}\n\n";
    let mut demux = Demux::new(Config::default());
    demux.feed(signed.repeat(5).as_bytes());
    demux.finish();
    let choice = demux.choices().next().unwrap();
    let (_, details) = &choice.message().extra[0];
    assert_eq!(details.matches("thoughtSignature").count(), 5, "{details}");
    assert_eq!(demux.template_hits(), (5, 3));
}

#[test]
fn g17_empty_metadata_beside_a_text_makes_a_template() {
    let grounded = |metadata: &str| {
        let metadata = format!(",\"groundingMetadata\": {metadata},\"citationMetadata\": null");
        framed(&part("a", "", &metadata, "\"totalTokenCount\": 3"))
    };
    let events = [
        "{}",
        "{}",
        "{\"webSearchQueries\": []}",
        "{}",
        "{ }",
        "null",
    ]
    .map(grounded);
    assert_eq!(
        hits(&grounded("{}"), &events),
        [false, true, false, true, false, false]
    );
}

#[test]
fn g02_the_chunks_of_an_array_make_a_template() {
    let chunk = |tokens: u32| {
        let usage = format!("\"totalTokenCount\": {tokens}");
        part("a", "", "", &usage).replace(", ", ",\n    ")
    };
    let next = |tokens| format!("\n,\n  {}", chunk(tokens));
    let events = [next(2), next(3), next(400), "\n]".to_owned()];
    assert_eq!(
        hits(&format!("[{}", chunk(1)), &events),
        [false, true, true, false]
    );
}

#[test]
fn g01_a_chunk_of_several_lines_makes_a_template() {
    let chunk = |tokens: u32| {
        let usage = format!("\"totalTokenCount\": {tokens}");
        framed(&part("a", "", "", &usage).replace(',', ",\r\ndata:   "))
    };
    let events = [chunk(2), chunk(3), chunk(400)];
    assert_eq!(hits(&chunk(1), &events), [false, true, true]);
}

#[test]
fn g12_usage_of_alternating_forms_is_merged_at_every_cut() {
    let thought = |tokens: u32| {
        let usage = format!("\"promptTokenCount\": 7,\"thoughtsTokenCount\": {tokens}");
        framed(&part("a", ",\"thought\": true", "", &usage))
    };
    let text = |tokens: u32| {
        let usage = format!(
            "\"candidatesTokenCount\": {tokens},\"promptTokenCount\": 8,\"promptTokensDetails\": [{{\"tokenCount\": {tokens}}}]"
        );
        framed(&part("b", "", "", &usage))
    };
    let last = framed(&part(
        "",
        "",
        ",\"finishReason\": \"STOP\"",
        "\"totalTokenCount\": 99",
    ));
    let events = [
        thought(1),
        thought(2),
        text(3),
        text(4),
        thought(5),
        text(600),
        thought(70),
        last.clone(),
        text(8),
        last,
    ];
    let stream = events.concat();
    let expected = r#"{"promptTokenCount":8,"thoughtsTokenCount":70,"candidatesTokenCount":8,"promptTokensDetails":[{"tokenCount":8}],"totalTokenCount":99}"#;
    for (one, other) in every_cut_in_two(stream.as_bytes()) {
        let mut demux = Demux::new(Config::default());
        demux.feed(one);
        demux.feed(other);
        demux.finish();
        assert_eq!(demux.usage().raw_json().as_deref(), Some(expected));
    }
    let mut demux = Demux::new(Config::default());
    let mut decoder = Decoder::reference(false, MAX_JSON_DEPTH);
    let mut framer = Framer::new(FrameLimits::new(MAX_LINE_BYTES, MAX_EVENT_BYTES), false);
    let mut input = stream.as_bytes();
    while let Some(Ok(frame)) = framer.next(&mut input) {
        decoder
            .decode(frame, &mut |update| demux.feed_update(update))
            .unwrap();
    }
    demux.finish();
    assert_eq!(demux.usage().raw_json().as_deref(), Some(expected));
}

#[test]
fn g12_the_usage_of_a_match_costs_as_much_as_that_of_its_update() {
    let start = framed(&part("a", "", "", "\"totalTokenCount\": 1"));
    let stream = start.repeat(40);
    let end = |bytes: u64, by_update: bool| {
        let limits = Limits::default().with_completion_bytes(bytes);
        let mut demux = Demux::new(Config::default().with_limits(limits));
        if by_update {
            for update in updates(stream.as_bytes(), Decoder::reference(false, MAX_JSON_DEPTH)) {
                demux.feed_update(&update);
            }
        } else {
            demux.feed(stream.as_bytes());
        }
        demux.finish();
        let text = demux
            .choices()
            .next()
            .map(|choice| choice.content().count());
        (text, demux.closed().map(Result::is_ok))
    };
    for bytes in 3_000..3_500 {
        assert_eq!(end(bytes, false), end(bytes, true), "{bytes}");
    }
    assert_ne!(end(3_000, true), end(3_499, true));
}
