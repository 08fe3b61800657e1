//! Decoding: the short way reads what the parser reads, and takes nothing that it refuses.

use serde_json::Value;
use unbraid_core::{
    Config, Demux, StreamError, Update,
    internal::{Decoder, Frame},
    limits::MAX_JSON_DEPTH,
};

/// Decodes every line of the input as one event of a stream. The first byte chooses strict mode.
///
/// # Panics
///
/// Panics where the short way and the parser differ.
pub fn decode(input: &[u8]) {
    let Some((flags, lines)) = input.split_first() else {
        return;
    };
    let events: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    let _hits = compare(&events, flags & 1 == 1);
}

/// How many events there were, and which of them took the short way.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Hits {
    /// For each event, whether it took the short way.
    pub taken: Vec<bool>,
    /// For each event, whether it was read by the scanner.
    pub scanned: Vec<bool>,
}

/// Decodes events by a decoder, by one that has the parser read each of them, and by one that reads all field by field.
///
/// What took the short way is also compared with what `serde_json` makes of it, by itself; and what a `Demux` tells of all
/// of them with what it tells of the parser's updates.
///
/// # Panics
///
/// Panics where they differ.
pub fn compare(events: &[&[u8]], strict: bool) -> Hits {
    let mut decoder = Decoder::new(strict, MAX_JSON_DEPTH);
    let mut reference = Decoder::reference(strict, MAX_JSON_DEPTH);
    let mut by_field = Decoder::by_field(strict, MAX_JSON_DEPTH);
    let mut hits = Hits::default();
    for data in events {
        let before = (decoder.fitted(), decoder.scanned());
        let (given, error) = read(&mut decoder, data);
        let shown = || String::from_utf8_lossy(data);
        for other in [&mut reference, &mut by_field] {
            let (expected, refused) = read(other, data);
            assert_eq!(error, refused, "{}", shown());
            assert_eq!(given, expected, "{}", shown());
            assert_eq!(decoder.events(), other.events(), "{}", shown());
        }
        hits.scanned.push(decoder.scanned() > before.1);
        let taken = decoder.fitted() > before.0;
        if taken {
            let [update] = given.as_slice() else {
                panic!("{} updates: {}", given.len(), shown());
            };
            check(update, data);
        }
        hits.taken.push(taken);
        if error.is_some() {
            break;
        }
    }
    assert_eq!(reference.fitted() + reference.scanned(), 0);
    for expect_choices in [None, Some(1)] {
        let options = Config::default()
            .with_strict(strict)
            .with_expect_choices(expect_choices);
        compare_told(events, options);
    }
    hits
}

/// A `Demux` of bytes against one that is given the parser's updates.
fn compare_told(events: &[&[u8]], options: Config) {
    if events.iter().any(|data| data.contains(&b'\r')) {
        return; // it would end a line
    }
    let strict = options.strict;
    let mut given = Demux::new(options.clone());
    let mut expected = Demux::new(options);
    let mut reference = Decoder::reference(strict, MAX_JSON_DEPTH);
    let mut offset = 0;
    for data in events {
        let event = [b"data: ", *data, b"\n\n"].concat();
        given.feed(&event);
        let told = reference.decode(Frame::of_data(data, offset), &mut |update| {
            expected.feed_update(update)
        });
        told.unwrap_or_else(|error| expected.abort(error));
        offset += event.len() as u64;
    }
    given.finish();
    expected.finish();
    if given.choices().next().is_some() {
        assert_eq!(lines(&mut given), lines(&mut expected), "a demux of bytes");
        assert_eq!(given.aggregate(), expected.aggregate(), "a demux of bytes");
        let (given, expected) = (given.aggregate_json(), expected.aggregate_json());
        assert_eq!(given, expected, "a demux of bytes");
    }
}

fn lines(demux: &mut Demux) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = demux.next_event() {
        lines.push(event.to_string());
    }
    lines
}

fn read(decoder: &mut Decoder, data: &[u8]) -> (Vec<Update<'static>>, Option<String>) {
    let mut updates = Vec::new();
    let told: Result<(), StreamError> = decoder.decode(Frame::of_data(data, 0), &mut |update| {
        updates.push(update.clone().into_owned())
    });
    (updates, told.err().map(|error| error.to_string()))
}

/// The update against a plain reading of the chunk, which shares no code with the library.
fn check(update: &Update<'_>, data: &[u8]) {
    let shown = String::from_utf8_lossy(data);
    let chunk: Value = match serde_json::from_slice(data) {
        Ok(chunk) => chunk,
        // Raw fields keep numbers that a `Value` has no room for.
        Err(error) if error.to_string().starts_with("number out of range") => return,
        Err(error) => panic!("taken, but serde_json says {error}: {shown}"),
    };
    let [choice] = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice) else {
        panic!("taken, but it has not one choice: {shown}");
    };
    assert_eq!(
        update.choice.map(|index| u64::from(index.0)),
        choice["index"].as_u64(),
        "{shown}"
    );
    let delta = &choice["delta"];
    let arguments = &delta["tool_calls"][0]["function"]["arguments"];
    let reasoning = REASONING.iter().find_map(|name| text(&delta[name]));
    let call = update.tool_calls.first();
    let told = [
        update.content.as_ref(),
        update.reasoning.as_ref(),
        update.refusal.as_ref(),
        call.and_then(|call| call.arguments.as_ref()),
    ]
    .map(|piece| piece.map(|piece| &*piece.text));
    let plain = [
        text(&delta["content"]).or_else(|| text(&choice["text"])),
        reasoning,
        text(&delta["refusal"]),
        text(arguments),
    ];
    assert_eq!(told, plain, "{shown}");
    assert_eq!(update.id.as_deref(), chunk["id"].as_str(), "{shown}");
    assert_eq!(update.model.as_deref(), chunk["model"].as_str(), "{shown}");
    assert_eq!(update.created, chunk["created"].as_u64(), "{shown}");
    assert_eq!(update.role.as_deref(), text(&delta["role"]), "{shown}");
    assert!(choice["finish_reason"].as_str().is_none(), "{shown}");
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

const REASONING: [&str; 5] = [
    "reasoning_content",
    "reasoning",
    "thinking",
    "thinking_content",
    "thought",
];
