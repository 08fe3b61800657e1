//! Decoding: the template path gives the same updates as the parser, and accepts nothing that the parser rejects.

use serde_json::Value;
use unbraid_core::{
    Config, Demux, Dialect, StreamError, Update,
    internal::{Decoder, Frame},
    limits::MAX_JSON_DEPTH,
};

/// Decodes every line of the input as one event of a stream. The first byte selects strict mode.
///
/// # Panics
///
/// Panics if the template path and the parser differ.
pub fn decode(input: &[u8]) {
    let Some((flags, lines)) = input.split_first() else {
        return;
    };
    let events: Vec<&[u8]> = lines.split(|byte| *byte == b'\n').collect();
    let _hits = compare(&events, flags & 1 == 1);
}

/// The decode path of each event.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Hits {
    /// Whether each event matched a template.
    pub templates: Vec<bool>,
    /// Whether each event was read by the scanner.
    pub scanned: Vec<bool>,
}

/// Decodes events with a decoder, with one that uses only the parser, and with one that reads every event field by field.
///
/// Updates from the template path are also compared with a direct reading by `serde_json`, and the events of a `Demux` with
/// those of a `Demux` that is fed the parser's updates.
///
/// # Panics
///
/// Panics if they differ.
pub fn compare(events: &[&[u8]], strict: bool) -> Hits {
    let mut decoder = Decoder::new(strict, MAX_JSON_DEPTH);
    let mut reference = Decoder::reference(strict, MAX_JSON_DEPTH);
    let mut by_field = Decoder::by_field(strict, MAX_JSON_DEPTH);
    let mut hits = Hits::default();
    let mut dialect = None;
    for data in events {
        let before = (decoder.template_hits(), decoder.scanned());
        let (actual, error) = read(&mut decoder, data);
        let display = || String::from_utf8_lossy(data);
        for other in [&mut reference, &mut by_field] {
            let (expected, rejected) = read(other, data);
            assert_eq!(error, rejected, "{}", display());
            assert_eq!(actual, expected, "{}", display());
            assert_eq!(decoder.events(), other.events(), "{}", display());
        }
        dialect = dialect.or_else(|| actual.iter().find_map(|update| update.dialect));
        let is_chunk = dialect.is_none_or(|dialect| dialect == Dialect::Chat);
        hits.scanned.push(decoder.scanned() > before.1);
        let is_template = decoder.template_hits() > before.0;
        if is_template {
            match actual.as_slice() {
                // Those of other dialects were compared with the parser; the target `dialects` does so with names.
                [_] | [_, _] if !is_chunk => {}
                [update] => check(update, None, data),
                [update, envelope] => check(update, Some(envelope), data),
                _ => panic!("{} updates: {}", actual.len(), display()),
            }
        }
        hits.templates.push(is_template);
        if error.is_some() {
            break;
        }
    }
    assert_eq!(reference.template_hits() + reference.scanned(), 0);
    for expect_choices in [None, Some(1)] {
        let config = Config::default()
            .with_strict(strict)
            .with_expect_choices(expect_choices);
        compare_demux(events, config);
    }
    hits
}

/// Compares a `Demux` of bytes with one that is fed the parser's updates.
fn compare_demux(events: &[&[u8]], options: Config) {
    if events.iter().any(|data| data.contains(&b'\r')) {
        return; // a carriage return would end the line
    }
    let strict = options.strict;
    let folds = options.expect_choices == Some(1);
    let mut actual = Demux::new(options.clone());
    let mut expected = Demux::new(options);
    let mut reference = Decoder::reference(strict, MAX_JSON_DEPTH).fold_choices(folds);
    let mut offset = 0;
    for data in events {
        let event = [b"data: ", *data, b"\n\n"].concat();
        actual.feed(&event);
        let decoded = reference.decode(Frame::of_data(data, offset), &mut |update| {
            expected.feed_update(update)
        });
        if let Err(error) = decoded {
            // What the dialect has held back comes first.
            reference.finish_updates(false, &mut |update| expected.feed_update(update));
            expected.abort(error);
        }
        offset += event.len() as u64;
    }
    reference.finish_updates(true, &mut |update| expected.feed_update(update));
    actual.finish();
    expected.finish();
    if actual.choices().next().is_some() {
        assert_eq!(lines(&mut actual), lines(&mut expected), "a demux of bytes");
        assert_eq!(actual.aggregate(), expected.aggregate(), "a demux of bytes");
        let (actual, expected) = (actual.aggregate_json(), expected.aggregate_json());
        assert_eq!(actual, expected, "a demux of bytes");
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
    let decoded: Result<(), StreamError> = decoder.decode(Frame::of_data(data, 0), &mut |update| {
        updates.push(update.clone().into_owned())
    });
    (updates, decoded.err().map(|error| error.to_string()))
}

/// Compares the update with a simple reading of the chunk that shares no code with the library.
fn check(update: &Update<'_>, envelope: Option<&Update<'_>>, data: &[u8]) {
    let display = String::from_utf8_lossy(data);
    let chunk: Value = match serde_json::from_slice(data) {
        Ok(chunk) => chunk,
        // Raw fields keep numbers that a `Value` cannot represent.
        Err(error) if error.to_string().starts_with("number out of range") => return,
        Err(error) => panic!("matched a template, but serde_json fails with {error}: {display}"),
    };
    let [choice] = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice) else {
        panic!("matched a template, but does not have exactly one choice: {display}");
    };
    // E8, E9: without an index it is choice 0.
    let index = match &choice["index"] {
        Value::Null => Some(0),
        index => index.as_u64(),
    };
    assert_eq!(
        update.choice.map(|index| u64::from(index.0)),
        index,
        "{display}"
    );
    let delta = &choice["delta"];
    let arguments = &delta["tool_calls"][0]["function"]["arguments"];
    let thinking = &delta["content"][0]["thinking"];
    let reasoning = REASONING.iter().find_map(|name| text(&delta[name]));
    let reasoning = reasoning.or_else(|| text(thinking).or_else(|| text(&thinking[0]["text"])));
    let call = update.tool_calls.first();
    let actual = [
        update.content.as_ref(),
        update.reasoning.as_ref(),
        update.refusal.as_ref(),
        call.and_then(|call| call.arguments.as_ref()),
    ]
    .map(|delta| delta.map(|delta| &*delta.text));
    let expected = [
        text(&delta["content"])
            .or_else(|| text(&choice["text"]))
            .or_else(|| text(&delta["content"][0]["text"])),
        reasoning,
        text(&delta["refusal"]),
        text(arguments),
    ];
    assert_eq!(actual, expected, "{display}");
    assert_eq!(update.id.as_deref(), name(&chunk["id"]), "{display}");
    assert_eq!(update.model.as_deref(), name(&chunk["model"]), "{display}");
    assert_eq!(update.created, chunk["created"].as_u64(), "{display}");
    assert_eq!(update.role.as_deref(), text(&delta["role"]), "{display}");
    // An empty reason is none, as in the chunks of Ollama.
    assert_eq!(text(&choice["finish_reason"]), None, "{display}");
    for (n, (name, raw)) in update.metadata.iter().enumerate() {
        let object = if n < update.delta_field_count {
            delta
        } else {
            choice
        };
        assert_eq!(parsed(raw), Some(&object[&**name]).cloned(), "{display}");
    }
    if let Some(raw) = &update.logprobs {
        assert_eq!(parsed(raw), Some(choice["logprobs"].clone()), "{display}");
    }
    let usage = envelope.and_then(|envelope| envelope.usage.as_deref());
    let expected = Some(&chunk["usage"]).filter(|usage| !usage.is_null());
    assert_eq!(usage.and_then(parsed).as_ref(), expected, "{display}");
    for (name, raw) in envelope.iter().flat_map(|envelope| &envelope.metadata) {
        assert_eq!(parsed(raw), Some(chunk[&**name].clone()), "{display}");
    }
}

fn parsed(raw: &str) -> Option<Value> {
    serde_json::from_str(raw).ok()
}

fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// An id or the name of a model. A longer one than this counts as absent.
fn name(value: &Value) -> Option<&str> {
    const MAX_BYTES: usize = 4096;
    value.as_str().filter(|name| name.len() <= MAX_BYTES)
}

const REASONING: [&str; 6] = [
    "reasoning_content",
    "reasoning",
    "reasoning_text",
    "thinking",
    "thinking_content",
    "thought",
];
