use unbraid_testkit::{
    cut::Rng,
    fixture::{Corpus, Fixture, corpus},
};

use super::{Decoder, lenient, scan, strict};
use crate::{
    Update,
    chunk::Chunk,
    config::default_reasoning_keys,
    frame::{Frame, FrameLimits, Framer},
    limits::{MAX_EVENT_BYTES, MAX_JSON_DEPTH, MAX_LINE_BYTES},
    node,
};

mod deltas;
mod holes;
mod providers;
mod rules;

/// A chunk of one choice, with these fields beside its index.
fn choice_of(fields: &str) -> String {
    format!("{{\"choices\":[{{\"index\":0,{fields}}}]}}")
}

/// Checks that the scan and `serde_json` give the same chunk as the lenient decoder; false if `serde_json` declines.
#[track_caller]
fn check(text: &str, context: &str) -> bool {
    let lenient = || {
        let node = node::read(text, MAX_JSON_DEPTH).expect("other paths accept it, so it is JSON");
        facts(lenient::chunk(
            &node,
            None,
            0,
            &default_reasoning_keys(),
            false,
        ))
    };
    if let Some(scanned) = scan::chunk(
        text,
        MAX_JSON_DEPTH,
        &default_reasoning_keys(),
        &mut scan::Buffers::default(),
    ) {
        assert_eq!(facts(scanned), lenient(), "{context}: {text}");
    }
    let Some(strict) = strict::chunk(text, &default_reasoning_keys()) else {
        return false;
    };
    assert_eq!(facts(strict), lenient(), "{context}: {text}");
    true
}

fn facts(mut chunk: Chunk<'_>) -> (String, Vec<Update<'_>>) {
    chunk.assign_indices(0, &mut false);
    let Chunk {
        id,
        created,
        created_end: _,
        inner_usage: _,
        escapes: _,
        has_padding: _,
        has_alphabet: _,
        model,
        has_choices,
        elements,
        usage,
        error,
        extra,
        warnings,
        object,
        format,
    } = chunk;
    let envelope = format!(
        "{id:?} {created:?} {model:?} {has_choices} {usage:?} {error:?} {extra:?} {warnings:?} {object:?} {format:?}"
    );
    let updates = elements.into_iter().map(|element| element.update);
    (envelope, updates.collect())
}

/// The data of all events of a stream.
fn events(mut bytes: &[u8]) -> Vec<String> {
    let limits = FrameLimits {
        line: MAX_LINE_BYTES,
        event: MAX_EVENT_BYTES,
    };
    let mut framer = Framer::new(limits, false);
    let mut events = Vec::new();
    while let Some(Ok(frame)) = framer.next(&mut bytes) {
        events.push(String::from_utf8_lossy(frame.data).trim().to_owned());
    }
    events
}

#[test]
fn scan_strict_and_lenient_agree_on_every_recorded_event() {
    let fixtures = Fixture::all()
        .into_iter()
        .map(|fixture| (fixture.name, fixture.bytes));
    let recorded = match corpus() {
        Corpus::Streams(streams) => streams,
        Corpus::NotSet(_) => Vec::new(),
        Corpus::Missing(path) => panic!(
            "UNBRAID_CORPUS is set, but no stream lies at {}",
            path.display()
        ),
    };
    let recorded = recorded
        .into_iter()
        .map(|(path, bytes)| (path.display().to_string(), bytes));
    let (mut all, mut ordinary) = (0, 0);
    for (name, bytes) in fixtures.chain(recorded) {
        for event in events(&bytes) {
            let is_ordinary = check(&event, &name);
            // The events of other dialects are for their own readers.
            if event.contains("\"choices\"") {
                all += 1;
                ordinary += usize::from(is_ordinary);
            }
        }
    }
    assert!(
        ordinary * 10 > all * 7,
        "only {ordinary} of {all} events are ordinary"
    );
}

#[test]
fn e26_the_last_of_equal_keys_counts_on_the_fast_paths() {
    let choice = |fields: &str| format!("{{\"choices\":[{{\"index\":0,{fields}}}]}}");
    assert!(check(
        &choice("\"delta\":{\"content\":\"a\",\"content\":\"b\"}"),
        "content"
    ));
    assert!(check(
        &choice("\"delta\":{},\"finish_reason\":\"a\",\"finish_reason\":null"),
        "finish"
    ));
    assert!(!check(
        &choice("\"delta\":{\"content\":\"a\"},\"delta\":{\"role\":\"b\"}"),
        "delta"
    ));
    assert!(check(
        "{\"id\":\"a\",\"id\":\"b\",\"choices\":[],\"x\":2}",
        "envelope"
    ));
    assert!(!check(
        "{\"choices\":[],\"x\":1,\"x\":2}",
        "an unknown field"
    ));
    check(
        &choice(
            "\"delta\":{\"tool_calls\":[{\"id\":\"a\",\"function\":{\"name\":\"f\"},\"function\":{\"arguments\":\"{\"}}]}",
        ),
        "call",
    );
    check(
        &choice("\"delta\":{\"function_call\":{\"name\":\"f\"},\"function_call\":null}"),
        "function_call",
    );
    check(
        &choice("\"delta\":{\"content\":\"a\"},\"delta\":null"),
        "null delta",
    );
    check(&choice("\"text\":\"a\",\"text\":\"b\""), "text");
    check(
        "{\"choices\":[],\"choices\":[{\"index\":0,\"delta\":{}}],\"usage\":{\"a\":1},\"usage\":null}",
        "choices",
    );
}

/// The codes of an event's warnings, and the number of its updates.
fn decoded(data: &str) -> (Vec<&'static str>, usize) {
    let mut decoder = Decoder::new(false, MAX_JSON_DEPTH);
    let stream = format!("{data}\n\n");
    let (mut codes, mut updates) = (Vec::new(), 0);
    let limits = FrameLimits {
        line: 1 << 20,
        event: 1 << 20,
    };
    let mut framer = Framer::new(limits, false);
    let mut input = stream.as_bytes();
    while let Some(Ok(frame)) = framer.next(&mut input) {
        let mut sink = |update: &Update<'_>| {
            updates += 1;
            codes.extend(update.warnings.iter().map(|warning| warning.code));
        };
        decoder.decode(frame, &mut sink).expect("lenient");
    }
    (codes, updates)
}

#[test]
fn s12_empty_data_is_not_an_event() {
    assert_eq!(decoded("data:"), (vec![], 0));
    assert_eq!(decoded("event: error\ndata:"), (vec![], 0));
    assert_eq!(decoded("data: null"), (vec!["S13"], 1));
    assert_eq!(decoded("data: : ping"), (vec!["S5"], 1));
}

#[test]
fn s27_damage_is_reported_before_the_frame_after_it() {
    let (codes, updates) = decoded(
        "data: {\"choices\":[{\"index\":0data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}",
    );
    assert_eq!((codes, updates), (vec!["S27"], 1));
}

#[test]
fn x13_a_chunk_nested_too_deep_is_skipped() {
    let nested = |depth: usize| {
        format!(
            "data: {{\"choices\":[],\"x\":{}{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    assert_eq!(decoded(&nested(MAX_JSON_DEPTH - 1)), (vec![], 1));
    assert_eq!(decoded(&nested(MAX_JSON_DEPTH)), (vec!["X13"], 1));
}

/// A stream's updates.
fn updates(mut bytes: &[u8], mut decoder: Decoder) -> Vec<Update<'static>> {
    let limits = FrameLimits {
        line: MAX_LINE_BYTES,
        event: MAX_EVENT_BYTES,
    };
    let mut framer = Framer::new(limits, false);
    let mut all = Vec::new();
    while let Some(Ok(frame)) = framer.next(&mut bytes) {
        let mut sink = |update: &Update<'_>| all.push(update.clone().into_owned());
        // Only another message inside the first one ends a lenient stream (A11).
        if decoder.decode(frame, &mut sink).is_err() {
            break;
        }
    }
    all
}

#[track_caller]
fn check_fast_paths(bytes: &[u8], context: &str) -> usize {
    let fast = updates(bytes, Decoder::new(false, MAX_JSON_DEPTH));
    let reference = updates(bytes, Decoder::reference(false, MAX_JSON_DEPTH));
    for (fast, reference) in fast.iter().zip(&reference) {
        assert_eq!(fast, reference, "{context}");
    }
    assert_eq!(fast.len(), reference.len(), "{context}");
    fast.len()
}

#[test]
fn templates_and_scan_agree_with_serde_json() {
    let recorded = match corpus() {
        Corpus::Streams(streams) => streams,
        Corpus::NotSet(_) | Corpus::Missing(_) => Vec::new(),
    };
    for (path, bytes) in recorded {
        check_fast_paths(&bytes, &path.display().to_string());
    }
    let mut rng = Rng::new(7);
    for fixture in Fixture::all() {
        check_fast_paths(&fixture.bytes, &fixture.name);
        for _ in 0..if fixture.bytes.len() < 20_000 { 12 } else { 2 } {
            let bytes = mutated(&fixture.bytes, &mut rng);
            let context = format!("{}\n{}", fixture.name, String::from_utf8_lossy(&bytes));
            check_fast_paths(&bytes, &context);
        }
    }
}

/// The same stream with a few insertions that mean something to a decoder.
fn mutated(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    const PIECES: [&str; 20] = [
        "\\n",
        "\\",
        "\"",
        "\\ud83d",
        "\\ude00",
        "0",
        "1",
        "é",
        "{",
        "}",
        ",",
        " ",
        "\u{1}",
        "null",
        "\"index\":0,",
        "\"obfuscation\":\"x\",",
        "\"index\":",
        "\\u00e9",
        "9999999999",
        "\"delta\":{\"content\":\"x\"},",
    ];
    let mut bytes = bytes.to_vec();
    for _ in 0..1 + bytes.len() / 400 {
        let at = rng.below(bytes.len() + 1);
        let end = (at + rng.below(3)).min(bytes.len());
        bytes.splice(at..end, PIECES[rng.below(PIECES.len())].bytes());
    }
    bytes
}

/// For each of the chunks, which are decoded in sequence, whether a template matched it.
fn template_hits(chunks: &[&str]) -> Vec<bool> {
    let mut decoder = Decoder::new(false, MAX_JSON_DEPTH);
    let mut hits = Vec::new();
    for chunk in chunks {
        let frame = Frame::of_data(chunk.as_bytes(), 0);
        hits.push(decoder.decode_by_template(&frame, &mut crate::text_delta::Updates(&mut |_| ())));
        if !hits.last().is_some_and(|hit| *hit) {
            decoder.decode(frame, &mut |_| ()).expect("lenient");
        }
    }
    hits
}

#[test]
fn a_template_matches_where_only_index_text_and_padding_differ() {
    let chunk = |fields: &str| {
        format!("{{\"id\":\"a\",\"choices\":[{{{fields}}}],\"usage\":null,\"obfuscation\":\"xy\"}}")
    };
    let content = |index: &str, text: &str| {
        chunk(&format!(
            "\"index\":{index},\"delta\":{{\"content\":\"{text}\"}}"
        ))
    };
    let first = content("0", "a");
    let second = |other: &str| template_hits(&[&first, other])[1];
    assert!(second(&content("12", "b\\n\\\"")));
    assert!(second(&first.replace("xy", "")));
    assert!(!second(&content("01", "b")));
    assert!(!second(&content("1.0", "b")));
    assert!(!second(&content("99999999999", "b")));
    assert!(!second(&content("0", "")));
    assert!(!second(&content("0", "\\ud83d")));
    assert!(!second(&content("0", "\u{1}")));
    assert!(!second(&first.replace("\"a\"", "\"b\"")));
    assert!(!second(&(first.clone() + " ")));
    let index_last = chunk("\"delta\":{\"content\":\"a\"},\"index\":0");
    assert_eq!(
        template_hits(&[&index_last, &index_last.replace("0}", "5}")]),
        [false, true]
    );
    let call = chunk(
        "\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":3,\"function\":{\"arguments\":\"a\"}}]}",
    );
    assert_eq!(
        template_hits(&[
            &call,
            &call.replace("[{\"index\":0", "[{\"index\":1"),
            &call.replace(":3", ":4")
        ]),
        [false, true, false]
    );
    let extra = first.replace("\"id\"", "\"x\":1,\"id\"");
    assert_eq!(
        template_hits(&[&extra, &extra, &extra]),
        [false, true, true]
    );
    assert_eq!(
        template_hits(&[&first, &extra, &first]),
        [false, false, true]
    );
}
