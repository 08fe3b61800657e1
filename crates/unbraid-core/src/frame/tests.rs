use super::*;

mod body;
mod json;
mod limits;
mod parts;
mod reference;

use reference::reference;

const AMPLE: FrameLimits = FrameLimits {
    line: 1 << 20,
    event: 1 << 20,
};

/// The result of one run over a body, with the frames and the error as a readable trace.
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
            assert!(may_end || frame.is_err(), "`may_end` missed the end");
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
fn buffered_bytes_counts_an_event_until_it_ends() {
    for (body, kept) in [
        ("data: abc", 9),
        ("data: abc\ndata: d", 10),
        ("event: error\ndata: a\ndata: b\n", 8),
        ("{\"a\":\"b\"", 8),
        ("data: abc\n\n", 0),
        ("", 0),
    ] {
        let mut framer = Framer::new(AMPLE, false);
        let mut read = body.as_bytes();
        while framer.next(&mut read).is_some() {}
        assert_eq!(framer.buffered_bytes(), kept, "{body}");
    }
}

/// Runs the body in one read, in two reads at every cut, and byte by byte.
#[track_caller]
fn every_cut(limits: FrameLimits, strict: bool, body: &[u8]) -> Run {
    let in_one_read = run(limits, strict, [body]);
    assert_eq!(
        in_one_read,
        run(limits, strict, body.chunks(1)),
        "byte by byte"
    );
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(
            in_one_read,
            run(limits, strict, [head, tail]),
            "cut at {cut}"
        );
    }
    in_one_read
}

#[track_caller]
fn check(body: impl AsRef<[u8]>, expected: &[&str]) {
    assert_eq!(every_cut(AMPLE, false, body.as_ref()).trace, expected);
    assert_eq!(
        reference(body.as_ref(), AMPLE, false),
        expected,
        "the reference"
    );
}

#[track_caller]
fn check_strict(body: &str, expected: &[&str]) {
    assert_eq!(every_cut(AMPLE, true, body.as_bytes()).trace, expected);
    assert_eq!(
        reference(body.as_bytes(), AMPLE, true),
        expected,
        "the reference"
    );
}

#[test]
fn s01_lines_end_at_lf_cr_or_crlf() {
    check("data: a\n\ndata: b\n\n", &["Event@0 a", "Event@9 b"]);
    check(
        "data: a\r\n\r\ndata: b\r\n\r\n",
        &["Event@0 a", "Event@11 b"],
    );
    check("data: a\r\rdata: b\n\r\n", &["Event@0 a", "Event@9 b"]);
}

#[test]
fn s02_a_crlf_may_be_split_between_reads() {
    check("data: [1,\r\ndata: 2]\r\n\r\n", &[r"Event@0 [1,\n2]"]);
    let run = run(
        AMPLE,
        false,
        [&b"data: [\r"[..], b"", b"\ndata: ]\r\n\r", b"\n\n"],
    );
    assert_eq!(run.trace, [r"Event@0 [\n]"]);
}

#[test]
fn s03_a_lone_cr_ends_a_line_at_once() {
    for end in ["\r\r", "\n\r", "\r\n\r"] {
        let mut framer = Framer::new(AMPLE, false);
        let body = format!("data: a{end}");
        assert!(framer.next(&mut body.as_bytes()).is_some(), "{end:?}");
        assert!(framer.next(&mut &b"\n"[..]).is_none());
        assert!(framer.finish().is_none());
    }
}

#[test]
fn s04_comments_are_ignored() {
    check(
        ": PROCESSING\n\n:\n\ndata: [\n:mid\ndata: ]\n\n",
        &[r"Event@17 [\n]"],
    );
    let run = every_cut(AMPLE, false, b": keep-alive\n\n");
    assert!(run.trace.is_empty() && run.seen_field);
}

#[test]
fn s06_s07_only_one_space_after_the_colon_is_dropped() {
    check(
        "data:a\n\ndata:  b \n\ndata:\tc\n\n",
        &["Event@0 a", r"Event@8  b ", r"Event@19 \tc"],
    );
    check(" data: a\ndata : a\nDATA: a\n\n", &[]);
}

#[test]
fn s09_done_without_a_field_name_is_a_frame() {
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
fn s12_an_event_without_data_is_not_a_frame() {
    check("retry: 3000\n\nid: 1\n\nevent: e\n\n\n", &[]);
    check(
        "data:\n\ndata\n\ndata: \n\n",
        &["Event@0 ", "Event@7 ", "Event@13 "],
    );
}

#[test]
fn s14_s15_events_keep_their_names() {
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
fn s17_only_one_byte_order_mark_is_dropped() {
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
fn s18_s19_s20_invalid_bytes_pass_unchanged() {
    check(
        "data: \u{2028}\u{85}é\n\n",
        &[r"Event@0 \xe2\x80\xa8\xc2\x85\xc3\xa9"],
    );
    check(b"data: \xFF\0\n\n", &[r"Event@0 \xff\x00"]);
}

#[test]
fn s21_the_last_event_may_lack_its_blank_line() {
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
fn r03_r04_strict_accepts_only_data_lines_comments_and_blank_lines() {
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
fn s15_an_error_may_be_a_field_of_its_own() {
    check(
        "data: a\n\nerror: {}\n\n",
        &["Event@0 a", "Event@9 <error> {}"],
    );
    check("data: a\nerror: {}\n\n", &["Event@0 a"]);
    check("data: a\n\nerror: boom\n\n", &["Event@0 a"]);
}

#[test]
fn an_event_within_one_read_is_borrowed_from_it() {
    let read = b"event: e\nid: 1\ndata: abc\n: c\n\ndata: d\n\n{";
    let mut rest = &read[..];
    let mut framer = Framer::new(AMPLE, false);
    for _ in 0..2 {
        let frame = framer.next(&mut rest);
        let data = frame.and_then(Result::ok).map(|frame| frame.data.as_ptr());
        assert!(data.is_some_and(|data| read.as_ptr_range().contains(&data)));
    }
}

#[test]
fn errors_and_debug_show_positions_and_no_data() {
    let error = FrameError::LineTooLong {
        offset: 7,
        limit: 8,
    };
    assert_eq!(error.to_string(), "line at byte 7 is longer than 8 bytes");
    let mut framer = Framer::new(AMPLE, false);
    assert!(framer.next(&mut &b"data: secret"[..]).is_none());
    assert!(!format!("{framer:?}").contains(&format!("{:?}", b'c')));
}

#[test]
fn public_types_are_send_and_debug() {
    fn assert_bounds<T: Send + Sync + fmt::Debug>() {}
    assert_bounds::<(Framer, Frame<'_>, FrameError)>();
    assert_bounds::<(FrameLimits, FrameKind, Mode)>();
}
