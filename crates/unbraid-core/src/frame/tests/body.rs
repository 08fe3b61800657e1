//! Bodies that are not event streams: JSON lines, arrays, and other documents.

use super::{AMPLE, check, check_strict, every_cut};
use crate::frame::Mode;

#[test]
fn s29_json_lines_and_arrays_are_split_into_objects() {
    check(
        "{\"a\":1}\n{\"b\":2}\r\n",
        &[r#"Json@0 {\"a\":1}"#, r#"Json@8 {\"b\":2}"#],
    );
    check("\u{feff}\n \r\n[{},\n{}]\n", &["Json@8 {}", "Json@12 {}"]);
    check(
        "{\"}\\\"{\":{\"\\\\\":{}}}{}",
        &[r#"Json@0 {\"}\\\"{\":{\"\\\\\":{}}}"#, "Json@18 {}"],
    );
    check("{\n \"a\": {\n }\n}", &[r#"Json@0 {\n \"a\": {\n }\n}"#]);
    check("[]", &[]);
    let run = every_cut(AMPLE, false, b"{}\n");
    assert!(run.mode == Mode::Json && !run.seen_field);
}

#[test]
fn s29_garbage_between_values_is_a_frame() {
    check(
        "{}\noops {}\r\n{}",
        &["Json@0 {}", "Garbage@3 oops {}", "Json@12 {}"],
    );
    check(
        "[1, 2]\n{}, x",
        &["Garbage@1 1, 2]", "Json@7 {}", "Garbage@11 x"],
    );
    check("{}} {}", &["Json@0 {}", "Garbage@2 } {}"]);
    check("{}\ndata\n", &["Json@0 {}", "Garbage@3 data"]);
    check("[{}DONE]", &["Json@1 {}", "Garbage@3 DONE]"]);
    check(
        "{}\n data: a\n{} data: b",
        &[
            "Json@0 {}",
            "Garbage@4 data: a",
            "Json@12 {}",
            "Garbage@15 data: b",
        ],
    );
}

#[test]
fn s29_done_after_json_lines_is_a_frame() {
    check("{}\n[DONE]\n", &["Json@0 {}", "BareDone@3 [DONE]"]);
    check("[DONE]  ", &["BareDone@0 [DONE]"]);
    check("[ DONE]\n[DONE", &["Garbage@2 DONE]", "Garbage@9 DONE"]);
}

#[test]
fn s29_events_after_a_stray_json_line_are_read() {
    check(
        "{}\ndata: a\r\n\r\n{}\n\ndata: b\n\n",
        &["Json@0 {}", "Event@3 a", "Event@18 b", "BareJson@14 {}\\n"],
    );
    check(
        "{}\r\nevent: e\rdata: a\r\r",
        &["Json@0 {}", "Event@4 <e> a"],
    );
    check(
        "{}\nx\n: c\ndata: a",
        &["Json@0 {}", "Garbage@3 x", "Truncated@9 a"],
    );
    check("{}\ndata: a", &["Json@0 {}", "Truncated@3 a"]);
    let run = every_cut(AMPLE, false, b"{}\n:");
    assert!(run.mode == Mode::Sse && run.seen_field);
}

#[test]
fn s22_s29_an_object_cut_by_the_end_is_truncated() {
    check(
        "{}\n{\"a\": \"}",
        &["Json@0 {}", r#"Truncated@3 {\"a\": \"}"#],
    );
    check("[{\"a\\", &[r#"Truncated@1 {\"a\\"#]);
}

/// Without a brace or a line end in the last read, the start of the next object still ends the line before it.
#[test]
fn o09_a_line_that_was_cut_ends_where_another_object_starts() {
    check(
        "{\"a\": \"x\n{\"b\": 2}\n",
        &[r#"Garbage@0 {\"a\": \"x"#, r#"Json@9 {\"b\": 2}"#],
    );
    check(
        "{\"a\": \"x\r\n{\"",
        &[r#"Garbage@0 {\"a\": \"x"#, r#"Truncated@10 {\""#],
    );
}

#[test]
fn s30_a_body_of_another_kind_has_no_fields() {
    let run = every_cut(AMPLE, false, b"<html>\n<body>502</body>\n");
    assert!(run.trace.is_empty() && run.mode == Mode::Sse && !run.seen_field);
    let run = every_cut(AMPLE, false, b" \r\n\t");
    assert!(run.trace.is_empty() && run.mode == Mode::Undecided && !run.seen_field);
}

#[test]
fn s29_strict_refuses_json_without_event_stream_framing() {
    check_strict("{}", &["NotSse { offset: 0 }"]);
    check_strict("\u{feff}\n [1]", &["NotSse { offset: 5 }"]);
}
