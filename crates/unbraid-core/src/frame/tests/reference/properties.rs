//! Compares the framer with the reference, and with another crate.

use std::num::NonZeroUsize;

use proptest::collection::vec;
use proptest::prelude::*;
use sse_core::{SseDecoder, SseEvent};

use super::*;

/// Complete events as the decoder of another crate returns them.
fn sse_core_events(mut body: &[u8]) -> Vec<(String, String)> {
    let mut decoder = SseDecoder::with_limit(NonZeroUsize::MAX);
    std::iter::from_fn(|| decoder.next(&mut body))
        .filter_map(|event| match event {
            Ok(SseEvent::Message(message)) => Some((message.event.into_owned(), message.data)),
            Ok(SseEvent::Retry(_)) | Err(_) => None,
        })
        .collect()
}

fn own_events(body: &[u8]) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut framer = Framer::new(AMPLE, false);
    let mut events = Vec::new();
    for mut read in body.chunks(3) {
        while let Some(Ok(frame)) = framer.next(&mut read) {
            events.push((text(frame.event.unwrap_or(b"message")), text(frame.data)));
        }
    }
    events
}

/// Whether an event was returned in parts, which the standard does not define (S10).
fn in_parts(body: &[u8]) -> bool {
    let trace = reference(body, AMPLE, false);
    trace.iter().any(|frame| frame.starts_with("Line@"))
}

/// Bodies that consist mostly of fields, line ends and errors in them.
fn bodies() -> impl Strategy<Value = Vec<u8>> {
    const ENDS: [&[u8]; 3] = [b"\r", b"\n", b"\r\n"];
    const FIELDS: [&[u8]; 16] = [
        b"data",
        b"data:",
        b"data: ",
        b"data: x\n\n",
        b"event",
        b"event:",
        b"event: e",
        b"id: 1",
        b"retry: 5",
        b":",
        b": c",
        b"[DONE]",
        b"data: {\n",
        b"data: {\"a\":[]}\n",
        b"event: error",
        b"error: {}",
    ];
    const OTHERS: [&[u8]; 16] = [
        b"{",
        b"}",
        b"{}",
        b"[",
        b"]",
        b"DONE]",
        b",",
        b"\"",
        b"\\",
        b" ",
        b"\t",
        b"x",
        b"\xEF\xBB\xBF",
        b"\xEF\xBB",
        b"\xFF",
        b"\0",
    ];
    let word = prop_oneof![
        4 => proptest::sample::select(&FIELDS[..]).prop_map(<[u8]>::to_vec),
        4 => proptest::sample::select(&OTHERS[..]).prop_map(<[u8]>::to_vec),
        4 => proptest::sample::select(&ENDS[..]).prop_map(<[u8]>::to_vec),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    vec(word, 0..40)
        .prop_map(|words| words.concat())
        .prop_filter("binary messages (D01) have tests of their own", |body| {
            !begins_with_lengths_of_a_message(body)
        })
}

/// Whether the body begins with the two lengths of a binary message, which the reference does not read.
fn begins_with_lengths_of_a_message(body: &[u8]) -> bool {
    let Some([0, a, b, c, 0, d @ 0..=2, e, f, ..]) = body.get(..12) else {
        return false;
    };
    let total = u32::from_be_bytes([0, *a, *b, *c]);
    let headers = u32::from_be_bytes([0, *d, *e, *f]);
    total >= 16 + headers
}

/// Cuts a body at random positions, which may repeat.
fn split<'a>(mut body: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut reads = Vec::new();
    for size in sizes {
        let (read, rest) = body.split_at((*size).min(body.len()));
        reads.push(read);
        body = rest;
    }
    reads.push(body);
    reads
}

/// More cases than proptest's default. `PROPTEST_CASES` can still raise the number.
fn cases() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig {
        cases: config.cases.max(1024),
        ..config
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_split_into_reads_matches_the_reference(body in bodies(), sizes in vec(0_usize..12, 0..30), strict in any::<bool>()) {
        let cut = run(AMPLE, strict, split(&body, &sizes));
        prop_assert_eq!(&cut, &run(AMPLE, strict, [&body[..]]));
        prop_assert_eq!(cut.trace, reference(&body, AMPLE, strict));
    }

    #[test]
    fn limits_do_not_depend_on_the_split_into_reads(
        body in bodies(),
        sizes in vec(0_usize..12, 0..30),
        (line, event) in (0_usize..24, 0_usize..16),
        strict in any::<bool>(),
    ) {
        let limits = FrameLimits { line, event };
        let cut = run(limits, strict, split(&body, &sizes));
        prop_assert_eq!(cut.trace, reference(&body, limits, strict));
    }

    #[test]
    fn complete_events_match_sse_core(body in bodies()) {
        let text = body.strip_prefix(BOM).unwrap_or(&body);
        let is_own = |line: &[u8]| line.trim_ascii() == DONE || line.starts_with(b"error:");
        let own_shapes = text.trim_ascii_start().starts_with(b"{")
            || text.trim_ascii_start().starts_with(b"[")
            || lines_of(text, 0).iter().any(|(_, line, _)| is_own(line));
        if !own_shapes && !in_parts(&body) {
            prop_assert_eq!(own_events(&body), sse_core_events(&body));
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(body in vec(any::<u8>(), 0..200), size in 1_usize..9, strict in any::<bool>()) {
        let limits = FrameLimits { line: 64, event: 64 };
        prop_assert_eq!(run(limits, strict, body.chunks(size)), run(limits, strict, [&body[..]]));
    }
}
