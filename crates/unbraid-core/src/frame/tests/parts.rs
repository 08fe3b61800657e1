//! Events that are returned in parts.

use super::*;

#[test]
fn s10_a_value_followed_by_more_data_is_a_frame_of_its_own() {
    let (a, b) = (r#"{"a":1}"#, r#"{"b":[{}]}"#);
    check(
        format!("data: {a}\ndata: {b}\ndata: [DONE]\n\ndata: {a}\n\n"),
        &[
            r#"Line@0 {\"a\":1}"#,
            r#"Line@14 {\"b\":[{}]}"#,
            "Line@31 [DONE]",
            r#"Event@45 {\"a\":1}"#,
        ],
    );
    // Values of several lines, and data that no value can begin with.
    check(
        "data: {\ndata: }\ndata: [\ndata: ]\ndata: : c\n\n",
        &[r"Line@0 {\n}", r"Line@16 [\n]", "Line@32 : c"],
    );
    // A line that makes the data invalid is a frame of its own. So is a line that ends one value and begins another.
    check(
        "data: {\"broken\ndata: {\"b\":1}\n\n",
        &[r#"Line@0 {\"broken"#, r#"Line@15 {\"b\":1}"#],
    );
    check(
        "data: {\"b\":\ndata: 1}{}\n\n",
        &[r#"Line@0 {\"b\":\n1}{}"#],
    );
    check(
        "data: {\"a\ndata: [DONE]\n\n",
        &[r#"Line@0 {\"a"#, "Line@10 [DONE]"],
    );
}

#[test]
fn s10_a_part_is_returned_as_soon_as_it_is_known() {
    let mut framer = Framer::new(AMPLE, false);
    let mut next = |line: &str| {
        let mut read = line.as_bytes();
        let mut data = Vec::new();
        while let Some(Ok(frame)) = framer.next(&mut read) {
            data.push(String::from_utf8_lossy(frame.data).into_owned());
        }
        data
    };
    assert!(
        next("data: {\"a\":1}\n").is_empty(),
        "more of it may follow"
    );
    assert_eq!(next("data: {\"b\":1}\n"), ["{\"a\":1}", "{\"b\":1}"]);
    assert_eq!(next("data: {\"c\":1}\n"), ["{\"c\":1}"]);
    assert!(next("data: {\"d\":\n").is_empty());
    assert_eq!(next("data: 1}\n"), ["{\"d\":\n1}"]);
    assert_eq!(next("data: oops\n"), ["oops"]);
}

#[test]
fn s10_a_part_shows_whether_it_is_the_first_of_its_event() {
    let body = concat!(
        "event: e\ndata: {\ndata: }\ndata: {}\ndata: [\ndata: 1\n\n",
        "data: 2\n\ndata: {}\ndata: {}\n\ndata: 3\n\ndata: 4\n\ndata: 5\ndata: 6",
    );
    let expected = [
        ("{\n}", false),
        ("{}", true),
        ("[\n1", true),
        ("2", false),
        ("{}", false),
        ("{}", true),
        ("3", false),
        ("4", false),
        ("5", false),
        ("6", true),
    ];
    for size in [1, 7, body.len()] {
        let mut framer = Framer::new(AMPLE, false);
        let mut seen = Vec::new();
        let mut see = |frame: Frame<'_>| {
            let data = String::from_utf8_lossy(frame.data).into_owned();
            seen.push((data, frame.is_later_part));
        };
        for mut read in body.as_bytes().chunks(size) {
            while let Some(frame) = framer.next(&mut read) {
                see(frame.unwrap());
            }
        }
        while let Some(frame) = framer.finish() {
            see(frame.unwrap());
        }
        let seen: Vec<_> = seen.iter().map(|(data, is)| (data.as_str(), *is)).collect();
        assert_eq!(seen, expected, "{size}");
    }
}

#[test]
fn s10_a_second_name_begins_the_next_event() {
    check(
        "event: a\ndata: {}\nevent: b\ndata: {\nevent: c\ndata: }\nevent: ping\ndata: 1\n\n",
        &["Line@0 <a> {}", r"Line@18 <c> {\n}", "Line@52 <ping> 1"],
    );
    check(
        "event: ping\ndata: null\nevent: a\ndata: [1\nevent: c\ndata: {}\n\n",
        &["Line@0 <ping> null", "Line@23 <a> [1", "Line@41 <c> {}"],
    );
    // Without data it is that of the event (WHATWG), but not a ping (S16).
    check("data: {}\nevent: a\n\n", &["Event@0 <a> {}"]);
    check(
        "event: a\ndata: {}\nevent: error\n\nevent: a\ndata: {}\nevent: ping\n\n",
        &["Event@0 <error> {}", "Event@32 <a> {}"],
    );
    check(
        "event: a\ndata: {}\nevent: b\ndata:\n",
        &[r"Truncated@0 <b> {}\n"],
    );
    check(
        "event: a\ndata: {}\nevent: error\ndata: e\ndata: f\n\n",
        &["Line@0 <a> {}", r"Event@18 <error> e\nf"],
    );
    check(
        "event: error\ndata: {\ndata: }\nevent: a\ndata: 1",
        &[r"Line@0 <error> {\n}", "Truncated@29 <a> 1"],
    );
}

#[test]
fn s15_s32_an_event_named_error_is_not_split() {
    check(
        "data: {\"par\nevent: error\ndata: {\"e\":1}\n\n",
        &[r#"Event@0 <error> {\"par\n{\"e\":1}"#],
    );
    check(
        "data: {}\ndata: {}\nevent: error\ndata: {}\ndata: e\n\n",
        &["Line@0 {}", "Line@9 {}", r"Event@18 <error> {}\ne"],
    );
}

#[test]
fn s16_a_ping_contains_only_its_own_data() {
    check(
        "data: {}\nevent: ping\ndata: 1\nevent: ping\ndata: 2\ndata: 3\n\n",
        &["Line@0 {}", "Line@21 1", "Line@29 <ping> 2", "Line@49 3"],
    );
}

#[test]
fn s12_empty_data_lines_do_not_end_a_value_after_an_event_in_parts() {
    check(
        "data\ndata: data:\n\ndata: {\ndata\ndata",
        &[r"Line@0 \ndata:", r"Truncated@18 {\n\n"],
    );
}
