use super::{MISMATCH, MergeCheck, NOT_TEXT, Refusal};
use crate::{decode::Decoder, frame::Frame, node};

/// The first refusal of deltas of one choice.
fn first_refusal(deltas: &[&str]) -> Option<Refusal> {
    let mut check = MergeCheck::default();
    deltas.iter().find_map(|delta| {
        let chunk = format!("{{\"choices\":[{{\"index\":3,\"delta\":{delta}}}]}}");
        let node = node::read_json(&chunk, 20).expect("JSON");
        check.merge(&node).err()
    })
}

#[track_caller]
fn assert_refusal(deltas: &[&str], expected: Option<Refusal>) {
    assert_eq!(first_refusal(deltas), expected, "{deltas:?}");
}

#[test]
fn r11_a_field_that_changes_its_type_is_refused() {
    assert_refusal(&[r#"{"content":"a"}"#, r#"{"content":5}"#], Some(MISMATCH));
    assert_refusal(&[r#"{"content":5}"#, r#"{"content":"a"}"#], Some(MISMATCH));
    assert_refusal(
        &[r#"{"content":"a"}"#, r#"{"content":["a"]}"#],
        Some(MISMATCH),
    );
    assert_refusal(&[r#"{"x":{}}"#, r#"{"x":[]}"#], Some(MISMATCH));
    assert_refusal(
        &[
            r#"{"function_call":{"name":"f","arguments":""}}"#,
            r#"{"function_call":{"arguments":{"a":1}}}"#,
        ],
        Some(MISMATCH),
    );
    assert_refusal(&[r#""text""#], Some(MISMATCH));
}

#[test]
fn r14_a_value_that_cannot_be_appended_is_refused_the_second_time() {
    assert_refusal(&[r#"{"x":1}"#], None);
    assert_refusal(&[r#"{"x":1}"#, r#"{"x":1}"#], Some(NOT_TEXT));
    assert_refusal(
        &[r#"{"x":{"y":true}}"#, r#"{"x":{"y":false}}"#],
        Some(NOT_TEXT),
    );
    assert_refusal(&[r#"{"x":[1]}"#, r#"{"x":[2]}"#], Some(NOT_TEXT));
    assert_refusal(&[r#"{"x":[1]}"#, "{}", r#"{"x":[]}"#], None);
}

#[test]
fn d3_null_is_absent() {
    assert_refusal(
        &[
            r#"{"content":null,"x":null}"#,
            r#"{"content":"a","x":1}"#,
            r#"{"content":null,"x":null}"#,
            "null",
        ],
        None,
    );
}

#[test]
fn d6_calls_are_merged_by_their_index() {
    assert_refusal(
        &[
            r#"{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"arguments":"{"}},{"index":0,"function":{"arguments":"{"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]}"#,
        ],
        None,
    );
    assert_refusal(
        &[
            r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":{}}}]}"#,
        ],
        Some(MISMATCH),
    );
    assert_refusal(
        &[
            r#"{"tool_calls":[{"index":0,"mark":1}]}"#,
            r#"{"tool_calls":[{"index":0,"mark":1}]}"#,
        ],
        Some(NOT_TEXT),
    );
}

#[test]
fn the_types_of_one_choice_do_not_affect_another() {
    let mut check = MergeCheck::default();
    for index in ["0", "1", "\"2\""] {
        let chunk = format!("{{\"choices\":[{{\"index\":{index},\"delta\":{{\"x\":1}}}}]}}");
        let node = node::read_json(&chunk, 20).expect("JSON");
        assert_eq!(check.merge(&node), Ok(()));
    }
    let chunk = r#"[{"choices":[{"delta":{}},{"index":null,"delta":{"x":1}}]}]"#;
    let node = node::read_json(chunk, 20).expect("JSON");
    assert_eq!(
        check.merge(&node),
        Err(NOT_TEXT),
        "the position is the index"
    );
}

#[test]
fn r11_r14_templates_decline_chunks_that_would_be_refused() {
    let chunk = |index: u32, delta: &str| {
        format!("{{\"choices\":[{{\"index\":{index},\"delta\":{delta}}}]}}")
    };
    let text = |index| chunk(index, r#"{"content":"a"}"#);
    let read = |chunks: &[String]| {
        let mut decoder = Decoder::new(true, 20);
        let mut last = Ok(());
        for data in chunks {
            let frame = Frame::of_data(data.as_bytes(), 0);
            last = last.and_then(|()| decoder.decode(frame, &mut |_| ()));
        }
        (last.is_ok(), decoder.template_hits())
    };
    let texts: Vec<String> = (0..10).map(|_| text(0)).collect();
    assert_eq!(
        read(&texts),
        (true, 7),
        "the first, and two that are merged"
    );
    let number = chunk(1, r#"{"content":5}"#);
    assert!(!read(&[&texts[..], &[number.clone(), text(1)]].concat()).0);
    assert!(!read(&[&texts[..], &[text(1), number]].concat()).0);
    let listed = chunk(0, r#"{"content":["a"]}"#);
    assert!(!read(&[&texts[..], &[listed]].concat()).0);
    assert!(read(&[&texts[..], &[text(1), text(1), text(1), text(1)]].concat()).0);
}

#[test]
fn the_number_of_remembered_fields_is_bounded() {
    let mut check = MergeCheck::default();
    for round in 0..400 {
        let fields: Vec<String> = (0..300)
            .map(|field| format!("\"{field}\":{{\"{round}\":1}}"))
            .collect();
        let chunk = format!(
            "{{\"choices\":[{{\"index\":0,\"delta\":{{{}}}}}]}}",
            fields.join(",")
        );
        let node = node::read_json(&chunk, 20).expect("JSON");
        assert_eq!(check.merge(&node), Ok(()));
    }
    assert!(
        check.field_count <= super::MAX_FIELD_COUNT,
        "{}",
        check.field_count
    );
}
