//! Every fixture gives its expected trace, for every split of its bytes.
//!
//! `UNBRAID_BLESS=1 cargo test -p unbraid-tests traces` rewrites the expected traces. Read the diff.

use std::fs;

use unbraid_core::{Demux, Sequenced, Text};
use unbraid_testkit::{
    cut::{bytewise, random_cuts},
    fixture::Fixture,
};

use crate::support::{demux, lines, options, same, strided, trace};

#[track_caller]
fn check(fixture: &Fixture) -> Result<(), String> {
    let actual = trace(fixture).join("\n") + "\n";
    if std::env::var_os("UNBRAID_BLESS").is_some() {
        return fs::write(fixture.trace_path(), actual).map_err(|error| error.to_string());
    }
    let Some(expected) = fixture.expected_trace() else {
        return Err(format!(
            "{}: no expected trace; run with UNBRAID_BLESS=1",
            fixture.name
        ));
    };
    if actual == expected {
        return Ok(());
    }
    Err(format!("{}\n{}", fixture.name, diff(&expected, &actual)))
}

/// The lines that differ, with one line of context before and after.
fn diff(expected: &str, actual: &str) -> String {
    let (expected, actual): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), actual.lines().collect());
    let both = expected.iter().zip(&actual);
    let head = both.take_while(|(e, g)| e == g).count();
    let rest = expected.len().min(actual.len()) - head;
    let both = expected.iter().rev().zip(actual.iter().rev()).take(rest);
    let tail = both.take_while(|(e, g)| e == g).count();
    let before = head.checked_sub(1).and_then(|index| expected.get(index));
    let after = expected.get(expected.len() - tail);
    let line = |mark: &str, line: &&str| format!("  {mark} {line}\n");
    let removed = expected[head..expected.len() - tail]
        .iter()
        .map(|l| line("-", l));
    let added = actual[head..actual.len() - tail]
        .iter()
        .map(|l| line("+", l));
    let context = |text: Option<&&str>| text.map(|l| line(" ", l));
    let lines = context(before).into_iter().chain(removed).chain(added);
    lines.chain(context(after)).collect()
}

#[test]
fn every_fixture_gives_its_trace() {
    let failures: Vec<String> = Fixture::all()
        .iter()
        .filter_map(|fixture| check(fixture).err())
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

#[test]
fn there_are_enough_fixtures() {
    let fixtures = Fixture::all();
    let events: usize = fixtures
        .iter()
        .filter_map(|fixture| {
            trace(fixture)
                .last()?
                .split(' ')
                .next()?
                .parse::<usize>()
                .ok()
        })
        .sum();
    assert!(fixtures.len() >= 60, "{} fixtures", fixtures.len());
    assert!(events >= 3000, "{events} events");
}

#[test]
fn every_trace_is_sorted_by_position() {
    for fixture in Fixture::all() {
        let (_, events) = demux([fixture.bytes.as_slice()], options(&fixture.options));
        assert!(
            events.is_sorted_by_key(Sequenced::sort_key),
            "{}\n{}",
            fixture.name,
            lines(&events).join("\n")
        );
    }
}

/// Checks that these reads give exactly the events of a single read.
#[track_caller]
fn check_reads<'p>(
    fixture: &Fixture,
    unsplit: &[Sequenced<Text>],
    how: &str,
    reads: impl IntoIterator<Item = &'p [u8]>,
) {
    let mut demux = Demux::new(options(&fixture.options));
    let mut seen = 0;
    let mut drain = |demux: &mut Demux| {
        while let Some(event) = demux.next_event() {
            let expected = unsplit.get(seen);
            assert!(
                expected.is_some_and(|expected| same(&event, expected)),
                "{}, {how}: event {seen}\n  whole {}\n  cut   {event}",
                fixture.name,
                expected.map_or_else(|| "nothing".to_owned(), ToString::to_string),
            );
            seen += 1;
        }
    };
    for read in reads {
        demux.feed(read);
        drain(&mut demux);
    }
    demux.finish();
    drain(&mut demux);
    assert_eq!(
        seen,
        unsplit.len(),
        "{}, {how}: events are missing",
        fixture.name
    );
}

/// Small streams are cut in two at every byte. A larger one is cut at every `step`-th byte, once for each first byte, so
/// that every cut is tested as well.
#[test]
fn every_split_gives_the_same_events() {
    const BUDGET: usize = 200_000; // bytes per fixture, so that the test takes seconds, not minutes
    for fixture in Fixture::all() {
        let bytes = fixture.bytes.as_slice();
        let (_, unsplit) = demux([bytes], options(&fixture.options));
        check_reads(&fixture, &unsplit, "byte by byte", bytewise(bytes));
        let step = (BUDGET / bytes.len().max(1)).clamp(8, bytes.len().max(8));
        for first in 0..=step {
            let how = format!("cut at {first} and every {step} bytes");
            check_reads(&fixture, &unsplit, &how, strided(bytes, first, step));
        }
        for seed in 0..3 {
            let max = [3, 40, 700][seed as usize];
            let how = format!("random cuts, seed {seed}");
            check_reads(&fixture, &unsplit, &how, random_cuts(bytes, seed, max));
        }
    }
}
