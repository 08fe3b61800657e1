//! Dialects: any bytes, read as any provider's stream, give the same events at every cut, and an end.

use unbraid_core::{Config, Demux, Dialect, Sequenced, Text};
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
