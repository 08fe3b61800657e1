//! Streams that lost their blank lines in transit (S10) give the same events as with them.

use unbraid_testkit::{
    cut::Rng,
    dialects,
    fixture::{Corpus, Fixture, Options, corpus},
};

use crate::{
    corpus::check,
    support::{demux, lines, options},
};

/// The lines of a stream that has one data line per event and otherwise only comments.
fn simple_lines(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_simple = |event: &str| {
        let data = event.lines().filter(|line| line.starts_with("data:"));
        data.count() <= 1 && event.lines().all(|line| line.starts_with(['d', ':']))
    };
    let is_complete = !text.contains('\r') && text.ends_with("\n\n");
    (is_complete && text.split("\n\n").all(is_simple)).then(|| {
        let lines = text.lines().filter(|line| !line.is_empty());
        lines.map(|line| format!("{line}\n")).collect()
    })
}

fn streams() -> Vec<(String, Vec<u8>, Options)> {
    let fixtures = Fixture::all().into_iter();
    let fixtures = fixtures.filter(|fixture| !fixture.name.starts_with("broken"));
    let mut all: Vec<_> = fixtures.map(|f| (f.name, f.bytes, f.options)).collect();
    if let Corpus::Streams(recorded) = corpus() {
        let named = |(path, bytes): (std::path::PathBuf, Vec<u8>)| {
            (path.display().to_string(), bytes, Options::default())
        };
        all.extend(recorded.into_iter().map(named));
    }
    all.retain(|(_, _, options)| !options.strict);
    all
}

#[test]
fn s10_a_stream_without_blank_lines_gives_the_same_events_choice_events() {
    let mut count = 0;
    for (name, bytes, fixture_options) in streams() {
        let Some(bare) = simple_lines(&bytes) else {
            continue;
        };
        let choice_events = |body: &[u8]| -> Vec<String> {
            let (_, mut events) = demux([body], options(&fixture_options));
            events.retain(|event| event.choice.is_some()); // the stream's own events include the warning of S10
            lines(&events)
        };
        let bare = bare.concat();
        assert_eq!(
            choice_events(bare.as_bytes()),
            choice_events(&bytes),
            "{name}"
        );
        count += 1;
    }
    assert!(count > 100, "{count} streams");
}

#[test]
fn s10_an_invalid_line_does_not_affect_other_lines() {
    let bad = [
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"He",
        "{\"choices\":[",
        "{\"id\":",
        "{\"id",
        "<html>",
        "]",
        "\"",
    ];
    let mut rng = Rng::new(15);
    for (name, bytes, fixture_options) in streams() {
        // Without names another value of the line may identify the dialect.
        let Some(mut bare) =
            simple_lines(&bytes).filter(|_| dialects::accumulate(&bytes).is_none())
        else {
            continue;
        };
        let texts = |body: &[u8]| -> Vec<String> {
            let (demux, _) = demux([body], options(&fixture_options));
            let texts = demux
                .choices()
                .map(|choice| format!("{:?}", choice.message()));
            texts.collect()
        };
        let good = texts(&bytes);
        let line = rng.below(bare.len());
        bare.insert(line, format!("data: {}\n", bad[rng.below(bad.len())]));
        let broken = bare.concat();
        assert_eq!(texts(broken.as_bytes()), good, "{name}, line {line}");
        if let Err(report) = check(&name, broken.as_bytes(), &fixture_options) {
            panic!("line {line}: {report}");
        }
    }
}
