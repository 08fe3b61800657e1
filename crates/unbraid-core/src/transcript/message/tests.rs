use crate::{ChoiceIndex, Config, Demux, ReasoningSource, ThinkTags};

/// The source of the reasoning of choice 0, after each delta was fed twice: the second time it may match a template.
#[track_caller]
fn check(deltas: &[&str], expected: Option<ReasoningSource>) {
    let config = Config::default().with_think_tags(ThinkTags::Split);
    let mut demux = Demux::new(config);
    for delta in deltas {
        let event = format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
        demux.feed(event.as_bytes());
        demux.feed(event.as_bytes());
    }
    let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    assert_eq!(message.reasoning_source, expected, "{deltas:?}");
}

fn field(name: &str) -> Option<ReasoningSource> {
    Some(ReasoningSource::Field(name.into()))
}

#[test]
fn r01_r02_reasoning_has_the_name_of_its_field() {
    check(
        &[r#"{"reasoning_content":"a"}"#],
        field("reasoning_content"),
    );
    check(&[r#"{"reasoning":"a"}"#], field("reasoning"));
    check(
        &[r#"{"content":"b"}"#, r#"{"thinking":"a"}"#],
        field("thinking"),
    );
    // R3: the text counts under the first name in the order of R5.
    check(
        &[r#"{"reasoning":"a","reasoning_content":"a"}"#],
        field("reasoning_content"),
    );
    check(
        &[r#"{"reasoning":"a"}"#, r#"{"reasoning_content":"b"}"#],
        field("reasoning"),
    );
    check(&[r#"{"reasoning_content":"","content":"b"}"#], None);
    check(&[r#"{"content":"b"}"#], None);
}

#[test]
fn r04_details_are_the_source_until_a_text_arrives() {
    let details = r#"{"reasoning_details":[{"type":"reasoning.text","text":"a"}]}"#;
    check(&[details], Some(ReasoningSource::Details));
    check(&[details, r#"{"reasoning":"b"}"#], field("reasoning"));
    check(&[r#"{"reasoning":"b"}"#, details], field("reasoning"));
}

#[test]
fn c11_c18_parts_and_tags_are_sources() {
    check(
        &[r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#],
        Some(ReasoningSource::ContentParts),
    );
    check(
        &[r#"{"content":"<think>a</think>b"}"#],
        Some(ReasoningSource::ThinkTags),
    );
    check(
        &[r#"{"content":"<think>"}"#, r#"{"content":"a"}"#],
        Some(ReasoningSource::ThinkTags),
    );
}

#[test]
fn e21_the_source_of_a_repeated_message_has_no_text() {
    let mut demux = Demux::new(Config::default());
    demux.feed(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"b\"}}]}\n\n");
    demux.feed(b"data: {\"choices\":[{\"index\":0,\"message\":{\"content\":\"b\",\"reasoning\":\"a\"}}]}\n\n");
    let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    assert_eq!((&*message.reasoning, message.reasoning_source), ("", None));
}

#[test]
fn thinking_blocks_and_executed_tools_are_concatenated() {
    concatenates("thinking_blocks");
    concatenates("executed_tools"); // of Groq: one entry for each step of a tool, with its index
}

fn concatenates(list: &str) {
    let mut demux = Demux::new(Config::default());
    for block in [r#"{"thinking":"a"}"#, r#"{"signature":"s"}"#] {
        let delta = format!("{{\"{list}\":[{block}]}}");
        demux.feed(
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n").as_bytes(),
        );
    }
    let message = demux.choice(ChoiceIndex(0)).unwrap().message();
    assert_eq!(
        &*message.extra[0].1,
        r#"[{"thinking":"a"},{"signature":"s"}]"#
    );
}
