//! Properties of every stream, complete or cut.

use std::{collections::BTreeMap, thread};

use serde_json::{Value, json};
use unbraid_testkit::{cut::Rng, fixture::Fixture};

use crate::{Run, flags, run_fixture, unbraid};

/// Runs a check on every fixture, on two threads, because starting processes takes most of the time.
fn for_every_fixture(check: impl Fn(&Fixture) + Sync) {
    let fixtures = Fixture::all();
    assert!(fixtures.len() > 100);
    let (even, odd) = fixtures.split_at(fixtures.len() / 2);
    thread::scope(|scope| {
        for half in [even, odd] {
            scope.spawn(|| half.iter().for_each(&check));
        }
    });
}

#[track_caller]
fn check_run(run: &Run, counts: bool, name: &str) {
    assert!([0, 1, 3].contains(&run.code), "{name}: {}", run.code);
    let response = run.json();
    let details = &response["unbraid"];
    let mut choices = details["choices"].as_array().unwrap().iter();
    let finished = details["end"] == "finished" && choices.all(|c| c["end"] == "finished");
    assert_eq!(run.code == 0, finished, "{name}: {details:#}");
    assert_eq!(run.stderr.is_empty(), finished, "{name}: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{name}: {}", run.stderr);
    check_usage(&response, counts, name);
}

/// Checks that the response has only the reported usage, and that `unbraid.usage` names the source of its figures.
#[track_caller]
fn check_usage(response: &Value, counts: bool, name: &str) {
    let (reported, usage) = (&response["usage"], &response["unbraid"]["usage"]);
    let source = usage["source"].as_str().unwrap();
    let expected: &[&str] = match (reported, usage["completion_tokens"].as_u64()) {
        (Value::Null, None) => &["absent"],
        (Value::Null, Some(_)) => &["estimated"],
        _ => &["reported", "mixed"],
    };
    assert!(expected.contains(&source), "{name}: {response:#}");
    let choice_count = response["choices"].as_array().unwrap().len();
    let figures = usage["choices"].as_array().unwrap();
    if counts {
        let message = "every choice has a figure";
        assert_eq!(figures.len(), choice_count, "{name}: {message}");
    } else {
        let reported = ["absent", "reported"].contains(&source);
        assert!(reported, "{name}: nothing is counted: {response:#}");
    }
    let has_count = usage["completion_tokens_counted"].is_u64();
    let has_marks = usage["estimated"] != json!([])
        || has_count
        || figures.iter().any(|c| c["estimated"] == true);
    let counted = ["estimated", "mixed"].contains(&source);
    assert_eq!(
        (has_marks, usage["encoding"].is_string()),
        (counted, counted),
        "{name}"
    );
}

#[test]
fn a_stream_cut_at_any_byte_yields_json_and_an_exit_code() {
    for_every_fixture(|fixture| {
        let mut rng = Rng::new(fixture.bytes.len() as u64);
        for cut in [rng.below(fixture.bytes.len()), fixture.bytes.len()] {
            let head = &fixture.bytes[..cut];
            // Only one run counts tokens, because that takes longer.
            let counts = cut == fixture.bytes.len();
            let usage = if counts { "--usage estimate" } else { "" };
            let run = unbraid(&format!("collect {usage} {}", flags(fixture)), head);
            check_run(&run, counts, &format!("{} cut at {cut}", fixture.name));
            if cut == fixture.bytes.len() {
                assert_eq!(
                    run.code,
                    run_fixture("events", fixture).code,
                    "{}",
                    fixture.name
                );
            }
        }
    });
}

#[test]
fn deltas_add_up_to_the_sums_of_the_done_events() {
    for_every_fixture(|fixture| {
        let fixture_name = &fixture.name;
        let run = run_fixture("events", fixture);
        let mut sums: BTreeMap<(u64, String, Option<u64>), String> = BTreeMap::new();
        let mut next = BTreeMap::new();
        for line in run.lines() {
            let seq = next.entry(line["choice"].as_u64()).or_insert(0);
            assert_eq!(line["seq"], *seq, "{fixture_name}: {line}");
            *seq += 1;
            let Some(choice) = line["choice"].as_u64() else {
                continue;
            };
            let (name, step) = line["type"]
                .as_str()
                .unwrap()
                .rsplit_once('.')
                .unwrap_or_default();
            let name = name.strip_suffix(".arguments").unwrap_or(name);
            let sum = sums
                .entry((choice, name.to_owned(), line["call"].as_u64()))
                .or_default();
            match (name, step) {
                ("audio" | "logprobs", "delta") => {}
                (_, "delta") => sum.push_str(line["delta"].as_str().unwrap()),
                ("tool_call", "done") => assert_eq!(line["arguments"], **sum, "{fixture_name}"),
                (_, "done") => assert_eq!(line[name], **sum, "{fixture_name}"),
                _ => {}
            }
        }
    });
}
