use unbraid_testkit::cut::{bytewise, every_cut_in_two};

use crate::frame::{Frame, FrameError, FrameLimits, Framer, Mode};

/// A message with string headers.
fn message(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(u8::try_from(name.len()).unwrap());
        block.extend(name.as_bytes());
        block.push(7);
        block.extend(u16::try_from(value.len()).unwrap().to_be_bytes());
        block.extend(value.as_bytes());
    }
    of_block(&block, payload)
}

fn of_block(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = u32::try_from(16 + headers.len() + payload.len()).unwrap();
    let mut message = total.to_be_bytes().to_vec();
    message.extend(u32::try_from(headers.len()).unwrap().to_be_bytes());
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message.extend(headers);
    message.extend(payload);
    message.extend(crc32fast::hash(&message).to_be_bytes());
    message
}

fn event(name: &str, payload: &str) -> Vec<u8> {
    let headers = [(":event-type", name), (":message-type", "event")];
    message(&headers, payload.as_bytes())
}

fn shown(frame: Result<Frame<'_>, FrameError>) -> String {
    match frame {
        Err(error) => format!("{error:?}"),
        Ok(frame) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let name = text(frame.event.unwrap_or_default());
            format!(
                "{:?} {name} {} {}",
                frame.kind,
                text(frame.data),
                frame.offset
            )
        }
    }
}

fn frames<'r>(reads: impl IntoIterator<Item = &'r [u8]>, expected: bool) -> Vec<String> {
    let limits = FrameLimits::new(1024, 1024);
    let expected = if expected {
        Mode::Messages
    } else {
        Mode::Undecided
    };
    let mut framer = Framer::new(limits, false).expect(expected);
    let (mut seen, mut total) = (Vec::new(), 0);
    for mut read in reads {
        total += read.len() as u64;
        while let Some(frame) = framer.next(&mut read) {
            seen.push(shown(frame));
        }
    }
    while let Some(frame) = framer.finish() {
        seen.push(shown(frame));
    }
    if !seen.iter().any(|frame| frame.contains("offset")) {
        assert_eq!(framer.bytes(), total);
    }
    seen
}

/// Checks the frames of a body, whatever its reads are.
#[track_caller]
fn check(body: &[u8], expected: &[&str]) {
    assert_eq!(frames([body], false), expected);
    assert_eq!(frames(bytewise(body), false), expected, "byte by byte");
    for (head, tail) in every_cut_in_two(body) {
        assert_eq!(
            frames([head, tail], false),
            expected,
            "cut at {}",
            head.len()
        );
    }
}

#[test]
fn b01_messages_are_read_at_every_cut() {
    let first = event("messageStart", "{\"role\":\"assistant\"}");
    let body = [first.as_slice(), &event("messageStop", "{}")].concat();
    check(
        &body,
        &[
            "Message messageStart {\"role\":\"assistant\"} 0",
            &format!("Message messageStop {{}} {}", first.len()),
        ],
    );
}

#[test]
fn b01_headers_of_every_type_are_skipped_by_their_length() {
    let mut headers = Vec::new();
    let mut header = |kind: u8, value: &[u8]| {
        headers.extend([1, b'x', kind]);
        headers.extend(value);
    };
    header(0, &[]);
    header(1, &[]);
    header(2, &[1]);
    header(3, &[1; 2]);
    header(4, &[1; 4]);
    header(5, &[1; 8]);
    header(6, &[0, 3, 1, 2, 3]);
    header(8, &[1; 8]);
    header(9, &[1; 16]);
    headers.extend(b"\x0b:event-type\x07\x00\x05chunk\x0d:message-type\x07\x00\x05event");
    check(&of_block(&headers, b"{}"), &["Message chunk {} 0"]);
}

#[test]
fn b02_lengths_that_contradict_each_other_are_an_error_before_anything_is_kept() {
    let prelude = |total: u32, headers: u32| {
        let mut bytes = total.to_be_bytes().to_vec();
        bytes.extend(headers.to_be_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_be_bytes());
        bytes
    };
    let good = event("chunk", "{}");
    let error = |bytes: Vec<u8>| frames([good.as_slice(), &bytes], false).pop().unwrap();
    let offset = good.len();
    let invalid = format!("InvalidMessage {{ offset: {offset} }}");
    assert_eq!(error(prelude(15, 0)), invalid);
    assert_eq!(error(prelude(100, 90)), invalid);
    assert_eq!(error(prelude(1 << 20, 129 * 1024)), invalid);
    let too_long = format!("EventTooLong {{ offset: {offset}, limit: 1024 }}");
    assert_eq!(error(prelude(u32::MAX, 0)), too_long, "4 GiB");
    assert_eq!(error(prelude(1024 + 16 + 1, 0)), too_long);
    assert_eq!(
        error(prelude(1024 + 16, 0)),
        format!(
            "TruncatedMessage  {} {offset}",
            String::from_utf8_lossy(&prelude(1024 + 16, 0))
        )
    );
}

#[test]
fn b02_headers_that_exceed_their_block_are_an_error() {
    for block in [
        &b"\x09:event"[..],
        b"\x01x",
        b"\x01x\x07\x00\x09a",
        b"\x01x\x0a",
        b"\x01x\x05a",
    ] {
        check(&of_block(block, b"{}"), &["InvalidMessage { offset: 0 }"]);
    }
}

#[test]
fn b03_b04_a_wrong_checksum_is_an_error() {
    let good = event("chunk", "{\"a\":1}");
    for at in 8..good.len() {
        let mut second = good.clone();
        second[at] ^= 1;
        let body = [good.as_slice(), &second].concat();
        let offset = good.len();
        check(
            &body,
            &[
                "Message chunk {\"a\":1} 0",
                &format!("Checksum {{ offset: {offset} }}"),
            ],
        );
        check(&second, &["Checksum { offset: 0 }"]);
    }
}

#[test]
fn b05_the_start_of_a_message_is_cut() {
    let good = event("chunk", "{}");
    let kept = |length: usize| String::from_utf8_lossy(&good[..length]).into_owned();
    for length in [1, 11, 12, 13, good.len() - 1] {
        let body = [good.as_slice(), &good[..length]].concat();
        let cut = format!("TruncatedMessage  {} {}", kept(length), good.len());
        check(&body, &["Message chunk {} 0", &cut]);
    }
}

#[test]
fn b06_exceptions_and_errors_are_frames_of_their_own() {
    let exception = [
        (":exception-type", "throttlingException"),
        (":message-type", "exception"),
    ];
    check(
        &message(&exception, b"{\"message\":\"slow\"}"),
        &["Exception throttlingException {\"message\":\"slow\"} 0"],
    );
    let error = [
        (":message-type", "error"),
        (":error-code", "E1"),
        (":error-message", "no"),
    ];
    check(&message(&error, b""), &["Exception E1 no 0"]);
}

#[test]
fn d01_other_bodies_that_begin_with_a_zero_are_event_streams() {
    for body in [
        &b"\0"[..],
        b"\0data: a\n\n",
        b"\0\n\ndata: a\n\n",
        b"\0\0\0\x0f\0\0\0\0abc\ndata: a\n\n",
    ] {
        let mut framer = Framer::new(FrameLimits::new(1024, 1024), false);
        let mut read = body;
        let mut expected = Vec::new();
        while let Some(frame) = framer.next(&mut read) {
            expected.push(shown(frame));
        }
        assert_ne!(framer.mode(), Mode::Messages);
        assert_eq!(
            expected.len(),
            usize::from(body.ends_with(b"\n\ndata: a\n\n") || body.ends_with(b"\ndata: a\n\n"))
        );
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(body, &expected);
    }
}

#[test]
fn d05_expected_messages_may_begin_with_any_byte_that_is_not_text() {
    let mut body = event("chunk", "{}");
    body[0] = 0xFF;
    assert_eq!(frames([body.as_slice()], true), ["Checksum { offset: 0 }"]);
    assert_eq!(frames(bytewise(&body), true), ["Checksum { offset: 0 }"]);
    let sse = b"data: a\n\n";
    assert_eq!(frames([&sse[..]], true), ["Event  a 0"]);
}
