//! Dialects: any bytes, read as any provider's stream, give the same events at every cut, and an end.

use unbraid_core::{
    Config, Demux, Dialect, Sequenced, Text, Update,
    internal::{Decoder, FrameLimits, Framer},
    limits::{MAX_EVENT_BYTES, MAX_JSON_DEPTH, MAX_LINE_BYTES},
};
use unbraid_testkit::cut::random_cuts;

/// Reads a body in one read and in small ones, with the dialect that the first byte selects, or with none.
///
/// # Panics
///
/// Panics if the events depend on the reads, if anything stays open, or if the response is not JSON.
pub fn dialects(input: &[u8]) {
    let [select, seed, body @ ..] = input else {
        return;
    };
    let dialect = Dialect::ALL.get(usize::from(*select) % (Dialect::ALL.len() + 1));
    let config = Config::default()
        .with_dialect(dialect.copied())
        .with_strict(select & 0x80 != 0);
    let _hits = compare_paths(body, &config);
    let (whole, expected) = read([body], &config);
    let (_, small) = read(random_cuts(body, u64::from(*seed), 9), &config);
    assert_eq!(small, expected, "small reads change the events");
    assert!(whole.closed().is_some(), "the stream is closed");
    assert!(
        whole.choices().all(|choice| choice.end().is_some()),
        "every choice has ended"
    );
    let response = whole.aggregate_json();
    let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&response).is_ok();
    assert!(is_json, "the response is JSON");
    for choice in whole.choices() {
        for (_, raw) in choice.message().extra {
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&raw).is_ok();
            assert!(is_json, "a field of the message is JSON");
        }
    }
}

fn read<'r>(reads: impl IntoIterator<Item = &'r [u8]>, config: &Config) -> (Demux, Vec<String>) {
    let mut demux = Demux::new(config.clone());
    let mut lines = Vec::new();
    let mut drain = |demux: &mut Demux| {
        while let Some(event) = demux.next_event() {
            let event: Sequenced<Text> = event.map(Text::from);
            lines.push(event.to_string());
        }
    };
    for read in reads {
        demux.feed(read);
        drain(&mut demux);
    }
    demux.finish();
    drain(&mut demux);
    (demux, lines)
}

/// Decodes a body with a decoder, and with one that parses every event. Returns which events matched a template.
///
/// # Panics
///
/// Panics if their updates differ.
pub fn compare_paths(body: &[u8], config: &Config) -> Vec<bool> {
    let limits = FrameLimits::new(MAX_LINE_BYTES, MAX_EVENT_BYTES);
    let mut framer = Framer::new(limits, config.strict);
    let new = |decoder: Decoder| decoder.with_dialect(config.dialect);
    let mut decoder = new(Decoder::new(config.strict, MAX_JSON_DEPTH));
    let mut reference = new(Decoder::reference(config.strict, MAX_JSON_DEPTH));
    let mut hits = Vec::new();
    let mut input = body;
    let mut is_over = false;
    while !is_over {
        let frame = match framer.next(&mut input) {
            Some(frame) => frame,
            None => match framer.finish() {
                Some(frame) => frame,
                None => break,
            },
        };
        let Ok(frame) = frame else { break };
        let display = || String::from_utf8_lossy(frame.data).into_owned();
        let before = decoder.template_hits();
        let [mut actual, mut expected] = [Vec::new(), Vec::new()];
        let decoded = decoder.decode(frame, &mut |update| actual.push(owned(update)));
        let parsed = reference.decode(frame, &mut |update| expected.push(owned(update)));
        assert_eq!(actual, expected, "{}", display());
        assert_eq!(
            decoded.as_ref().err().map(ToString::to_string),
            parsed.err().map(|error| error.to_string()),
            "{}",
            display()
        );
        is_over = decoded.is_err();
        hits.push(decoder.template_hits() > before);
    }
    let [mut actual, mut expected] = [Vec::new(), Vec::new()];
    decoder.finish_updates(true, &mut |update| actual.push(owned(update)));
    reference.finish_updates(true, &mut |update| expected.push(owned(update)));
    assert_eq!(actual, expected, "at the end");
    hits
}

fn owned(update: &Update<'_>) -> Update<'static> {
    update.clone().into_owned()
}

/// Compares a `Demux` that is fed a body in small reads with one that is fed the updates of a parser.
///
/// # Panics
///
/// Panics if their events differ.
pub fn compare_demux(body: &[u8], seed: u64, config: &Config) {
    let limits = FrameLimits::new(MAX_LINE_BYTES, MAX_EVENT_BYTES);
    let mut framer = Framer::new(limits, config.strict);
    let mut reference = Decoder::reference(config.strict, MAX_JSON_DEPTH);
    let mut expected = Demux::new(config.clone());
    let mut input = body;
    while let Some(Ok(frame)) = framer.next(&mut input) {
        let decoded = reference.decode(frame, &mut |update| expected.feed_update(update));
        if let Err(error) = decoded {
            // What the dialect has held back comes first.
            reference.finish_updates(false, &mut |update| expected.feed_update(update));
            expected.abort(error);
        }
    }
    if framer.finish().is_none() && framer.ends_inside() {
        reference.cut_before_data();
    }
    reference.finish_updates(true, &mut |update| expected.feed_update(update));
    expected.finish();
    let mut lines = Vec::new();
    while let Some(event) = expected.next_event() {
        lines.push(event.to_string());
    }
    let (actual, actual_lines) = read(random_cuts(body, seed, 400), config);
    assert_eq!(actual_lines, lines, "a demux of bytes");
    assert_eq!(actual.aggregate(), expected.aggregate(), "a demux of bytes");
}
