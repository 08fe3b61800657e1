//! What holds for every stream, whole or cut.

use std::{collections::BTreeMap, thread};

use serde_json::{Value, json};
use unbraid_testkit::{cut::Rng, fixture::Fixture};

use crate::{Run, flags, over, unbraid};

/// Does the same to every fixture, on two threads: most of the time goes into starting processes.
fn for_every_fixture(work: impl Fn(&Fixture) + Sync) {
    let fixtures = Fixture::all();
    assert!(fixtures.len() > 100);
    let (even, odd) = fixtures.split_at(fixtures.len() / 2);
    thread::scope(|scope| {
        for half in [even, odd] {
            scope.spawn(|| half.iter().for_each(&work));
        }
    });
}

#[track_caller]
fn is_sound(run: &Run, name: &str) {
    assert!([0, 1, 3].contains(&run.code), "{name}: {}", run.code);
    let response = run.json();
    let account = &response["unbraid"];
    let mut choices = account["choices"].as_array().unwrap().iter();
    let finished = account["end"] == "finished" && choices.all(|c| c["end"] == "finished");
    assert_eq!(run.code == 0, finished, "{name}: {account:#}");
    assert_eq!(run.stderr.is_empty(), finished, "{name}: {}", run.stderr);
    assert!(!run.stderr.contains("panicked"), "{name}: {}", run.stderr);
    usage_is_marked(&response, name);
}

/// What is reported stands in the response alone; what is estimated beside it, with its source.
#[track_caller]
fn usage_is_marked(response: &Value, name: &str) {
    let (reported, usage) = (&response["usage"], &response["unbraid"]["usage"]);
    let source = usage["source"].as_str().unwrap();
    let expected: &[&str] = match (reported, usage["completion_tokens"].as_u64()) {
        (Value::Null, None) => &["absent"],
        (Value::Null, Some(_)) => &["estimated"],
        _ => &["reported", "mixed"],
    };
    assert!(expected.contains(&source), "{name}: {response:#}");
    let all = response["choices"].as_array().unwrap().len();
    let told = usage["choices"].as_array().unwrap();
    assert_eq!(told.len(), all, "{name}: every choice has a figure");
    let beside = usage["completion_tokens_counted"].is_u64();
    let marked =
        usage["estimated"] != json!([]) || beside || told.iter().any(|c| c["estimated"] == true);
    let counted = ["estimated", "mixed"].contains(&source);
    assert_eq!(
        (marked, usage["encoding"].is_string()),
        (counted, counted),
        "{name}"
    );
}

#[test]
fn a_stream_cut_anywhere_gives_json_and_an_exit_code() {
    for_every_fixture(|fixture| {
        let mut rng = Rng::new(fixture.bytes.len() as u64);
        // Each run that counts tokens loads a table.
        for cut in [rng.below(fixture.bytes.len()), fixture.bytes.len()] {
            let head = &fixture.bytes[..cut];
            let run = unbraid(&format!("collect {}", flags(fixture)), head);
            is_sound(&run, &format!("{} cut at {cut}", fixture.name));
            if cut == fixture.bytes.len() {
                assert_eq!(run.code, over("events", fixture).code, "{}", fixture.name);
            }
        }
    });
}

#[test]
fn events_add_up_to_their_sums() {
    for_every_fixture(|fixture| {
        let name = &fixture.name;
        let run = over("events", fixture);
        let mut sums: BTreeMap<(u64, String, Option<u64>), String> = BTreeMap::new();
        let mut next = BTreeMap::new();
        for line in run.lines() {
            let seq = next.entry(line["choice"].as_u64()).or_insert(0);
            assert_eq!(line["seq"], *seq, "{name}: {line}");
            *seq += 1;
            let Some(choice) = line["choice"].as_u64() else {
                continue;
            };
            let (what, step) = line["type"]
                .as_str()
                .unwrap()
                .rsplit_once('.')
                .unwrap_or_default();
            let what = what.strip_suffix(".arguments").unwrap_or(what);
            let sum = sums
                .entry((choice, what.to_owned(), line["call"].as_u64()))
                .or_default();
            match (what, step) {
                ("audio" | "logprobs", "delta") => {}
                (_, "delta") => sum.push_str(line["delta"].as_str().unwrap()),
                ("tool_call", "done") => assert_eq!(line["arguments"], **sum, "{name}"),
                (_, "done") => assert_eq!(line[what], **sum, "{name}"),
                _ => {}
            }
        }
    });
}
