//! The fixtures, and the streams of engines where the corpus is available.

use super::format_outcome;
use crate::fixture::{Corpus, Fixture, Options, corpus};
use crate::reference::accumulate;

#[test]
fn every_fixture_reads_the_same_with_other_line_ends() {
    for fixture in Fixture::all() {
        let Ok(text) = String::from_utf8(fixture.bytes.clone()) else {
            continue;
        };
        let lf = text.replace("\r\n", "\n").replace('\r', "\n");
        let expected = accumulate(&fixture.bytes, &fixture.options);
        for end in ["\n", "\r\n", "\r"] {
            let outcome = accumulate(lf.replace('\n', end).as_bytes(), &fixture.options);
            assert_eq!(
                format_outcome(&outcome),
                format_outcome(&expected),
                "{} with {end:?}",
                fixture.name
            );
        }
    }
}

#[test]
fn a_cut_short_fixture_does_not_panic() {
    for fixture in Fixture::all()
        .iter()
        .filter(|fixture| fixture.bytes.len() < 3000)
    {
        for length in (0..fixture.bytes.len()).step_by(17) {
            accumulate(&fixture.bytes[..length], &fixture.options);
        }
    }
}

#[test]
fn streams_of_engines_accumulate() {
    let streams = match corpus() {
        Corpus::Streams(streams) => streams,
        Corpus::NotSet(_) => return,
        Corpus::Missing(path) => panic!("{}: no streams", path.display()),
    };
    let ours = streams
        .iter()
        .filter(|(path, _)| path.iter().any(|part| part == "engines"))
        // Beside some streams lies the request.
        .filter(|(path, _)| path.extension().is_some_and(|extension| extension == "sse"));
    for (path, bytes) in ours {
        let outcome = accumulate(bytes, &Options::default());
        let has_choices =
            !outcome.choices.is_empty() || outcome.error.is_some() || outcome.lost > 0;
        assert!(has_choices, "{}: no choices", path.display());
        if path.ends_with("xllamacpp__n4-usage.sse") {
            let usage = outcome.usage.expect("each choice reported its usage");
            assert_eq!(usage["completion_tokens"], 33);
        }
    }
}
