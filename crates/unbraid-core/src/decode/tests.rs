use unbraid_testkit::fixture::{Corpus, Fixture, corpus};

use super::{Decoder, chunk::Chunk, lenient, node, strict};
use crate::{
    Update,
    frame::{FrameLimits, Framer},
    limits::{MAX_EVENT_BYTES, MAX_JSON_DEPTH, MAX_LINE_BYTES},
};

/// Where the strict decoder takes an event, the lenient one reads the same from it; false where it takes none.
#[track_caller]
fn check(text: &str, context: &str) -> bool {
    let Some(strict) = strict::chunk(text) else {
        return false;
    };
    let node = node::read(text, MAX_JSON_DEPTH).expect("strict JSON is JSON");
    let lenient = lenient::chunk(&node, 0);
    assert_eq!(
        facts(strict.place(0)),
        facts(lenient.place(0)),
        "{context}: {text}"
    );
    true
}

fn facts(chunk: Chunk<'_>) -> (String, Vec<Update<'_>>) {
    let Chunk {
        id,
        created,
        model,
        has_choices,
        elements,
        usage,
        error,
        extra,
        warnings,
    } = chunk;
    let envelope = format!(
        "{id:?} {created:?} {model:?} {has_choices} {usage:?} {error:?} {extra:?} {warnings:?}"
    );
    let updates = elements.into_iter().map(|element| element.update);
    (envelope, updates.collect())
}

/// Every event's data of a stream.
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
fn strict_and_lenient_read_every_recorded_event_alike() {
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
    let (mut all, mut taken) = (0, 0);
    for (name, bytes) in fixtures.chain(recorded) {
        for event in events(&bytes) {
            all += 1;
            taken += usize::from(check(&event, &name));
        }
    }
    assert!(
        taken * 10 > all * 7,
        "the strict decoder takes {taken} of {all} events only"
    );
}

#[test]
fn e26_the_last_of_two_equal_keys_counts_in_both() {
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
        "{\"id\":\"a\",\"id\":\"b\",\"choices\":[],\"x\":1,\"x\":2}",
        "envelope"
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

/// The codes of an event's warnings, and its number of updates.
fn told(data: &str) -> (Vec<&'static str>, usize) {
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
fn s12_empty_data_is_no_event() {
    assert_eq!(told("data:"), (vec![], 0));
    assert_eq!(told("event: error\ndata:"), (vec![], 0));
    assert_eq!(told("data: null"), (vec!["S13"], 1));
    assert_eq!(told("data: : ping"), (vec!["S5"], 1));
}

#[test]
fn s27_damage_is_told_before_what_follows_it() {
    let (codes, updates) = told(
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
    assert_eq!(told(&nested(MAX_JSON_DEPTH - 1)), (vec![], 1));
    assert_eq!(told(&nested(MAX_JSON_DEPTH)), (vec!["X13"], 1));
}
