use super::*;

mod json;
mod parts;
mod reference;

use reference::reference;

const ROOM: FrameLimits = FrameLimits {
    line: 1 << 20,
    event: 1 << 20,
};

/// What one run over a body gives; frames and the error as a trace one can read.
#[derive(Debug, PartialEq)]
struct Run {
    trace: Vec<String>,
    mode: Mode,
    seen_field: bool,
}

fn run<'a>(limits: FrameLimits, strict: bool, reads: impl IntoIterator<Item = &'a [u8]>) -> Run {
    let mut framer = Framer::new(limits, strict);
    let mut trace = Vec::new();
    let mut total = 0;
    for mut read in reads {
        total += read.len() as u64;
        loop {
            let may_end = framer.may_end(read);
            let Some(frame) = framer.next(&mut read) else {
                break;
            };
            assert!(may_end || frame.is_err(), "its end was not foreseen");
            trace.push(show(frame));
        }
        assert!(read.is_empty(), "None means that the read is used up");
        assert_eq!(framer.bytes(), total);
    }
    while let Some(frame) = framer.finish() {
        trace.push(show(frame));
    }
    assert!(framer.next(&mut &b"data: late\n\n"[..]).is_none(), "fused");
    Run {
        trace,
        mode: framer.mode(),
        seen_field: framer.seen_field(),
    }
}

fn show(frame: Result<Frame<'_>, FrameError>) -> String {
    match frame {
        Ok(frame) => line(
            frame.kind,
            frame.event.unwrap_or_default(),
            frame.data,
            frame.offset,
        ),
        Err(error) => format!("{error:?}"),
    }
}

fn line(kind: FrameKind, name: &[u8], data: &[u8], offset: u64) -> String {
    let name = if name.is_empty() {
        String::new()
    } else {
        format!(" <{}>", name.escape_ascii())
    };
    format!("{kind:?}@{offset}{name} {}", data.escape_ascii())
}

#[test]
fn what_is_kept_of_an_event_is_counted_until_it_ends() {
    for (body, kept) in [
        ("data: abc", 9),
        ("data: abc\ndata: d", 10),
        ("event: error\ndata: a\ndata: b\n", 8),
        ("{\"a\":\"b\"", 8),
        ("data: abc\n\n", 0),
        ("", 0),
    ] {
        let mut framer = Framer::new(ROOM, false);
        let mut read = body.as_bytes();
        while framer.next(&mut read).is_some() {}
        assert_eq!(framer.buffered_bytes(), kept, "{body}");
    }
}

/// Runs the body whole, in two reads at every cut, and byte by byte.
#[track_caller]
fn every_cut(limits: FrameLimits, strict: bool, body: &[u8]) -> Run {
    let whole = run(limits, strict, [body]);
    assert_eq!(whole, run(limits, strict, body.chunks(1)), "byte by byte");
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(whole, run(limits, strict, [head, tail]), "cut at {cut}");
    }
    whole
}

#[track_caller]
fn check(body: impl AsRef<[u8]>, expected: &[&str]) {
    assert_eq!(every_cut(ROOM, false, body.as_ref()).trace, expected);
    assert_eq!(
        reference(body.as_ref(), ROOM, false),
        expected,
        "the reference"
    );
}

#[track_caller]
fn check_strict(body: &str, expected: &[&str]) {
    assert_eq!(every_cut(ROOM, true, body.as_bytes()).trace, expected);
    assert_eq!(
        reference(body.as_bytes(), ROOM, true),
        expected,
        "the reference"
    );
}

#[test]
fn s01_all_three_line_ends() {
    check("data: a\n\ndata: b\n\n", &["Event@0 a", "Event@9 b"]);
    check(
        "data: a\r\n\r\ndata: b\r\n\r\n",
        &["Event@0 a", "Event@11 b"],
    );
    check("data: a\r\rdata: b\n\r\n", &["Event@0 a", "Event@9 b"]);
}

#[test]
fn s02_crlf_split_over_reads() {
    check("data: [1,\r\ndata: 2]\r\n\r\n", &[r"Event@0 [1,\n2]"]);
    let run = run(
        ROOM,
        false,
        [&b"data: [\r"[..], b"", b"\ndata: ]\r\n\r", b"\n\n"],
    );
    assert_eq!(run.trace, [r"Event@0 [\n]"]);
}

#[test]
fn s03_lone_cr_dispatches_at_once() {
    for end in ["\r\r", "\n\r", "\r\n\r"] {
        let mut framer = Framer::new(ROOM, false);
        let body = format!("data: a{end}");
        assert!(framer.next(&mut body.as_bytes()).is_some(), "{end:?}");
        assert!(framer.next(&mut &b"\n"[..]).is_none());
        assert!(framer.finish().is_none());
    }
}

#[test]
fn s04_comments_are_activity_only() {
    check(
        ": PROCESSING\n\n:\n\ndata: [\n:mid\ndata: ]\n\n",
        &[r"Event@17 [\n]"],
    );
    let run = every_cut(ROOM, false, b": keep-alive\n\n");
    assert!(run.trace.is_empty() && run.seen_field);
}

#[test]
fn s06_s07_one_space_is_dropped() {
    check(
        "data:a\n\ndata:  b \n\ndata:\tc\n\n",
        &["Event@0 a", r"Event@8  b ", r"Event@19 \tc"],
    );
    check(" data: a\ndata : a\nDATA: a\n\n", &[]);
}

#[test]
fn s09_bare_done() {
    check(
        "data: a\n\n [DONE] \t\r\n\n",
        &["Event@0 a", "BareDone@9 [DONE]"],
    );
    check("data: a\n[DONE]\n\n", &["Line@0 a", "BareDone@8 [DONE]"]);
    check("data: a\n\n[DONE]", &["Event@0 a", "BareDone@9 [DONE]"]);
    check("data: a\n[DONE]", &["Line@0 a", "BareDone@8 [DONE]"]);
    check(
        "event: e\n[DONE]\ndata: a\n\n",
        &["BareDone@9 [DONE]", "Event@0 <e> a"],
    );
    check("x\n[DONE]:\n[DONE] x\n\n", &[]);
    check("\n [DONE]\n\n", &["BareDone@2 [DONE]"]);
    check("data:\n[DONE]\n\n", &["Line@0 ", "BareDone@6 [DONE]"]);
}

#[test]
fn s11_multi_line_data_is_joined() {
    check(
        "data: {\ndata:  \"a\":1\ndata\ndata: }\n\n",
        &[r#"Event@0 {\n \"a\":1\n\n}"#],
    );
    check(
        "data: [\ndata: {},\ndata: {}\ndata: ]\ndata:\n\n",
        &[r"Event@0 [\n{},\n{}\n]\n"],
    );
}

#[test]
fn s12_no_data_no_frame() {
    check("retry: 3000\n\nid: 1\n\nevent: e\n\n\n", &[]);
    check(
        "data:\n\ndata\n\ndata: \n\n",
        &["Event@0 ", "Event@7 ", "Event@13 "],
    );
}

#[test]
fn s14_s15_names() {
    check(
        "event: error\ndata: a\n\ndata: b\n\n",
        &["Event@0 <error> a", "Event@22 b"],
    );
    check(
        "id: 7\ndata: a\nretry: 1\nevent:e\nevent: f\n\n",
        &["Event@0 <f> a"],
    );
    check("event: e\nevent\ndata: a\n\n", &["Event@0 a"]);
    check("event: e\n\ndata: a\n\n", &["Event@10 a"]);
}

#[test]
fn s17_bom_is_dropped_once() {
    check("\u{feff}data: a\n\n\u{feff}data: b\n\n", &["Event@3 a"]);
    check("\u{feff}\u{feff}data: a\n\n", &[]);
    check(
        b"\xEF\xBBdata: a\n\n\xEFdata: b\n\ndata: c\n\n",
        &["Event@21 c"],
    );
    check(b"\xEF\xBB\n\xEF\xBB\xBFdata: a\n\n", &[]);
    check(b"\xEF\xBB", &[]);
    check("\u{feff}{}", &["Json@3 {}"]);
    check(b"\xEF{}", &[]);
}

#[test]
fn s18_s19_s20_bytes_pass_unchanged() {
    check(
        "data: \u{2028}\u{85}é\n\n",
        &[r"Event@0 \xe2\x80\xa8\xc2\x85\xc3\xa9"],
    );
    check(b"data: \xFF\0\n\n", &[r"Event@0 \xff\x00"]);
}

#[test]
fn s21_last_event_without_blank_line() {
    check(
        "data: a\n\ndata: [DONE]",
        &["Event@0 a", "Truncated@9 [DONE]"],
    );
    check("event: e\ndata: a\n", &["Truncated@0 <e> a"]);
    check("data: a\r\ndata: b\r", &["Line@0 a", "Line@9 b"]);
    check("data: {}\ndata: {}", &["Line@0 {}", "Truncated@9 {}"]);
    check(
        "data: {}\ndata: {\"a",
        &["Line@0 {}", r#"Truncated@9 {\"a"#],
    );
    check("data: {}\ndata: {}{", &["Line@0 {}", "Truncated@9 {}{"]);
    check("data: {\ndata: \"a", &[r#"Truncated@0 {\n\"a"#]);
    check("data: a\ndat", &["Truncated@0 a"]);
    check("event: e\nid: 1", &[]);
    check("data", &["Truncated@0 "]);
}

#[test]
fn s29_json_lines_and_arrays() {
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
    let run = every_cut(ROOM, false, b"{}\n");
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
fn s29_done_ends_json_lines() {
    check("{}\n[DONE]\n", &["Json@0 {}", "BareDone@3 [DONE]"]);
    check("[DONE]  ", &["BareDone@0 [DONE]"]);
    check("[ DONE]\n[DONE", &["Garbage@2 DONE]", "Garbage@9 DONE"]);
}

#[test]
fn s29_events_after_a_stray_json_line() {
    check(
        "{}\ndata: a\r\n\r\n{}\n\ndata: b\n\n",
        &["Json@0 {}", "Event@3 a", "Event@18 b"],
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
    let run = every_cut(ROOM, false, b"{}\n:");
    assert!(run.mode == Mode::Sse && run.seen_field);
}

#[test]
fn s22_s29_object_cut_off() {
    check(
        "{}\n{\"a\": \"}",
        &["Json@0 {}", r#"Truncated@3 {\"a\": \"}"#],
    );
    check("[{\"a\\", &[r#"Truncated@1 {\"a\\"#]);
}

#[test]
fn s30_other_bodies_have_no_fields() {
    let run = every_cut(ROOM, false, b"<html>\n<body>502</body>\n");
    assert!(run.trace.is_empty() && run.mode == Mode::Sse && !run.seen_field);
    let run = every_cut(ROOM, false, b" \r\n\t");
    assert!(run.trace.is_empty() && run.mode == Mode::Undecided && !run.seen_field);
}

#[test]
fn s31_long_line_in_small_reads() {
    let long = "x".repeat((1 << 20) - 6);
    let body = format!("data: {long}\n\n");
    let run = run(ROOM, false, body.as_bytes().chunks(64));
    assert_eq!(run.trace, [format!("Event@0 {long}")]);
}

#[test]
fn r03_r04_strict_takes_data_lines_comments_and_blank_lines_only() {
    check_strict(
        "\u{feff}\r\ndata: a\ndata:b\n\ndata: [DONE]\n\n",
        &[r"Event@5 a\nb", "Event@21 [DONE]"],
    );
    check_strict("data: a", &["Truncated@0 a"]);
    for line in [": c", ":", " ", "\t \t"] {
        let body = format!("{line}\ndata: a\n\n{line}\n\ndata: b\n{line}\n\n");
        let after = body.find("data: b").expect("it is there");
        check_strict(
            &body,
            &[
                &format!("Event@{} a", line.len() + 1),
                &format!("Event@{after} b"),
            ],
        );
    }
    for line in ["event: e", "id: 1", "data", "[DONE]", "x", " x", " : c"] {
        let body = format!("data: a\n\n{line}\ndata: b\n\n");
        check_strict(&body, &["Event@0 a", "NotData { offset: 9 }"]);
        check_strict(&format!("data: a\n{line}"), &["NotData { offset: 8 }"]);
    }
    check_strict(" \r\ndata: a\n\n", &["Event@3 a"]);
    check_strict(" \n{}", &["NotSse { offset: 2 }"]);
}

#[test]
fn s29_strict_names_json_as_no_event_stream() {
    check_strict("{}", &["NotSse { offset: 0 }"]);
    check_strict("\u{feff}\n [1]", &["NotSse { offset: 5 }"]);
}

#[test]
fn limits_hold_at_the_bound_and_strike_one_past_it() {
    let limits = FrameLimits {
        line: 16,
        event: 12,
    };
    let cases: &[(&str, &[&str])] = &[
        ("data:0123456789\n\n", &["Event@0 0123456789"]),
        (":123456789abcdef\n\n", &[]),
        (
            ":123456789abcdef0\n\n",
            &["LineTooLong { offset: 0, limit: 16 }"],
        ),
        ("\n:123456789abcdef", &[]),
        (
            "\n:123456789abcdef0",
            &["LineTooLong { offset: 1, limit: 16 }"],
        ),
        ("data:[1,2,\ndata:12345]\n\n", &[r"Event@0 [1,2,\n12345]"]),
        (
            "data:[1,2,\ndata:123456]\n\n",
            &["EventTooLong { offset: 0, limit: 12 }"],
        ),
        (
            ": c\ndata:[1,2,\ndata:1234567",
            &["EventTooLong { offset: 4, limit: 12 }"],
        ),
        ("data:12345678901\n\n", &["Event@0 12345678901"]),
        (
            "data:123456789012\n\n",
            &["LineTooLong { offset: 0, limit: 16 }"],
        ),
        (
            "event:error\ndata:1\ndata:2\ndata:345\n[DONE]\n\n",
            &["EventTooLong { offset: 0, limit: 12 }"],
        ),
        (
            "event:error\ndata:1\ndata:23\n[DONE]\n\n",
            &[r"Event@0 <error> 1\n23\n[DONE]"],
        ),
        ("               \n{}", &["Json@16 {}"]),
        ("                {}", &["Json@16 {}"]),
        (
            "                 {}",
            &["LineTooLong { offset: 0, limit: 16 }"],
        ),
        (
            "{\"123456789\"}",
            &["EventTooLong { offset: 0, limit: 12 }"],
        ),
        ("[{\"12345678\"}", &[r#"Json@1 {\"12345678\"}"#]),
        ("[{\"123456789", &[r#"Truncated@1 {\"123456789"#]),
        (
            "{},{\"1234567890",
            &["Json@0 {}", r#"Truncated@3 {\"1234567890"#],
        ),
        (
            "{},{\"12345678901",
            &["Json@0 {}", "EventTooLong { offset: 3, limit: 12 }"],
        ),
        (
            "{}0123456789abcdef",
            &["Json@0 {}", "Garbage@2 0123456789abcdef"],
        ),
        (
            "{}0123456789abcdefg",
            &["Json@0 {}", "LineTooLong { offset: 2, limit: 16 }"],
        ),
    ];
    for (body, expected) in cases {
        assert_eq!(
            every_cut(limits, false, body.as_bytes()).trace,
            *expected,
            "{body:?}"
        );
        assert_eq!(
            reference(body.as_bytes(), limits, false),
            *expected,
            "{body:?}"
        );
    }
    let limits = FrameLimits {
        line: 100,
        event: 4,
    };
    assert_eq!(
        every_cut(limits, false, b"data:1234\n\n").trace,
        ["Event@0 1234"]
    );
    let past = every_cut(limits, false, b"data:12345\n\n").trace;
    assert_eq!(past, ["EventTooLong { offset: 0, limit: 4 }"]);
}

#[test]
fn an_event_within_one_read_is_lent_out_of_it() {
    let read = b"event: e\nid: 1\ndata: abc\n: c\n\ndata: d\n\n{";
    let mut rest = &read[..];
    let mut framer = Framer::new(ROOM, false);
    for _ in 0..2 {
        let frame = framer.next(&mut rest);
        let data = frame.and_then(Result::ok).map(|frame| frame.data.as_ptr());
        assert!(data.is_some_and(|data| read.as_ptr_range().contains(&data)));
    }
}

#[test]
fn errors_and_debug_say_where_and_never_what() {
    let error = FrameError::LineTooLong {
        offset: 7,
        limit: 8,
    };
    assert_eq!(error.to_string(), "line at byte 7 is longer than 8 bytes");
    let mut framer = Framer::new(ROOM, false);
    assert!(framer.next(&mut &b"data: secret"[..]).is_none());
    assert!(!format!("{framer:?}").contains(&format!("{:?}", b'c')));
}

#[test]
fn public_types_are_send_and_debug() {
    fn holds<T: Send + Sync + fmt::Debug>() {}
    holds::<(Framer, Frame<'_>, FrameError)>();
    holds::<(FrameLimits, FrameKind, Mode)>();
}
