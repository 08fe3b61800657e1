//! The limits on lines and events.

use super::{AMPLE, every_cut, reference, run};
use crate::frame::FrameLimits;

#[test]
fn s31_a_long_line_may_arrive_in_small_reads() {
    let long = "x".repeat((1 << 20) - 6);
    let body = format!("data: {long}\n\n");
    let run = run(AMPLE, false, body.as_bytes().chunks(64));
    assert_eq!(run.trace, [format!("Event@0 {long}")]);
}

#[test]
fn limits_allow_the_maximum_and_refuse_one_byte_more() {
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
    let trace = every_cut(limits, false, b"data:12345\n\n").trace;
    assert_eq!(trace, ["EventTooLong { offset: 0, limit: 4 }"]);
}
