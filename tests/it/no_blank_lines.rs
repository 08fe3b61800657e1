//! Streams whose blank lines were lost on the way (S10) give the same events as with them.

use unbraid_testkit::{
    cut::Rng,
    fixture::{Corpus, Fixture, Options, corpus},
};

use crate::{
    corpus::check,
    support::{demux, lines, options},
};

/// The lines of a stream that has one data line for each event and nothing else but comments.
fn plain_lines(bytes: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let plain = |event: &str| {
        let data = event.lines().filter(|line| line.starts_with("data:"));
        data.count() <= 1 && event.lines().all(|line| line.starts_with(['d', ':']))
    };
    let whole = !text.contains('\r') && text.ends_with("\n\n");
    (whole && text.split("\n\n").all(plain)).then(|| {
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
fn s10_without_its_blank_lines_a_stream_tells_the_same_of_its_choices() {
    let mut count = 0;
    for (name, bytes, told) in streams() {
        let Some(bare) = plain_lines(&bytes) else {
            continue;
        };
        let of_choices = |body: &[u8]| -> Vec<String> {
            let (_, mut events) = demux([body], options(&told));
            events.retain(|event| event.choice.is_some()); // the stream's own are counted with the warning
            lines(&events)
        };
        let bare = bare.concat();
        assert_eq!(of_choices(bare.as_bytes()), of_choices(&bytes), "{name}");
        count += 1;
    }
    assert!(count > 100, "{count} streams");
}

#[test]
fn s10_a_broken_line_costs_nothing_but_itself() {
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
    for (name, bytes, told) in streams() {
        let Some(mut bare) = plain_lines(&bytes) else {
            continue;
        };
        let texts = |body: &[u8]| -> Vec<String> {
            let (demux, _) = demux([body], options(&told));
            let texts = demux
                .choices()
                .map(|choice| format!("{:?}", choice.message()));
            texts.collect()
        };
        let good = texts(&bytes);
        let at = rng.below(bare.len());
        bare.insert(at, format!("data: {}\n", bad[rng.below(bad.len())]));
        let broken = bare.concat();
        assert_eq!(texts(broken.as_bytes()), good, "{name}, line {at}");
        if let Err(report) = check(&name, broken.as_bytes(), &told) {
            panic!("line {at}: {report}");
        }
    }
}
