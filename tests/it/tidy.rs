//! Rules about the repository's own files: their size, language, links, documentation and fixtures.

mod cycles;
mod doc_examples;
mod language;
mod links;
mod rule_ids;
mod source;

use std::fs;

use unbraid_testkit::fixture::{EXTENSIONS, Fixture, workspace_root};

use source::{File, files};

/// The Rust files of the published and unpublished crates, without tests.
fn shipped() -> Vec<File> {
    let mut files = files("crates", &["rs"]);
    files.retain(|file| !is_test(&file.path));
    assert!(!files.is_empty(), "the crates have sources");
    files
}

fn is_test(path: &str) -> bool {
    path.split('/')
        .any(|part| part == "tests" || part == "tests.rs" || part == "it")
}

/// Lines that hold code: no blank lines, comments or unit tests.
fn lines_of_code(text: &str) -> usize {
    let shipped = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    code_lines(shipped).count()
}

fn code_lines(text: &str) -> impl Iterator<Item = &str> + Clone {
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"))
}

#[test]
fn no_file_has_more_than_400_lines_of_code() {
    const LINES: usize = 400;
    for file in shipped() {
        let lines = lines_of_code(&file.text);
        assert!(
            lines <= LINES,
            "{}: {lines} lines of code; split it by role",
            file.path
        );
    }
}

#[test]
fn ractor_is_used_only_in_the_files_that_run_actors() {
    const ACTORS: [&str; 7] = [
        "crates/unbraid-bench/src/fixed/actors_alone.rs",
        "crates/unbraid-gateway/src/generation/actor.rs",
        "crates/unbraid/src/reader.rs",
        "crates/unbraid/src/reader/actor.rs",
        "crates/unbraid/src/reader/choice_actor.rs",
        "crates/unbraid/src/reader/outbox.rs",
        "crates/unbraid/src/control.rs",
    ];
    for file in shipped() {
        let is_actor = ACTORS.contains(&file.path.as_str());
        let uses = code_lines(&file.text)
            .any(|line| line.contains("ractor::") && !line.contains("#[cfg(test)]"));
        let only_in_tests = file
            .text
            .contains("pub(crate) fn reader(&self) -> Option<ractor::ActorCell>");
        assert!(
            is_actor || only_in_tests || !uses,
            "{}: uses ractor",
            file.path
        );
        let public = code_lines(&file.text).find(|line| {
            line.trim_start().starts_with("pub ")
                && (line.contains("Actor") || line.contains("ractor"))
        });
        assert_eq!(
            public, None,
            "{}: an actor in a public signature",
            file.path
        );
    }
}

#[test]
fn every_fixture_has_a_trace_and_every_trace_a_fixture() {
    for fixture in Fixture::all() {
        assert!(
            fixture.trace_path().is_file(),
            "{}: run the traces with UNBRAID_BLESS=1",
            fixture.name
        );
    }
    for trace in files("tests/fixtures", &["events"]) {
        let trace_path = workspace_root().join(&trace.path);
        let mut streams = EXTENSIONS
            .iter()
            .map(|extension| trace_path.with_extension(extension));
        let exists = streams.any(|stream| stream.is_file());
        assert!(exists, "{}: its stream is missing", trace.path);
    }
}

#[test]
fn every_limit_has_a_test() {
    let limits = fs::read_to_string(workspace_root().join("crates/unbraid-core/src/limits.rs"));
    let limits = limits.expect("the limits of the core");
    let fields: Vec<&str> = limits
        .split("pub struct Limits {")
        .nth(1)
        .and_then(|rest| rest.split('}').next())
        .map(|body| {
            body.lines()
                .filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next())
                .collect()
        })
        .unwrap();
    assert!(fields.len() >= 8, "{fields:?}");
    let tests: String = ["crates", "tests"]
        .iter()
        .flat_map(|dir| files(dir, &["rs"]))
        .filter(|file| is_test(&file.path))
        .map(|file| file.text)
        .collect();
    for field in fields {
        assert!(tests.contains(field), "no test sets the limit {field}");
    }
}

#[test]
fn the_minimum_rust_version_is_stated_once() {
    let manifest = fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
    assert_eq!(manifest.matches("rust-version = ").count(), 1);
    for manifest in files("crates", &["toml"]) {
        let lines: Vec<&str> = manifest.text.lines().collect();
        // A crate with a dependency that needs more says so.
        let is_explained = |pair: &[&str]| pair[0].starts_with('#');
        let versions = lines
            .windows(2)
            .filter(|pair| pair[1].starts_with("rust-version = "));
        for pair in versions {
            assert!(is_explained(pair), "{}", manifest.path);
        }
    }
}

#[test]
fn no_source_has_a_todo() {
    // Assembled, so that this file does not contain them.
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat()];
    for file in files("", &["rs"]) {
        for mark in &marks {
            assert!(!file.text.contains(mark.as_str()), "{}: {mark}", file.path);
        }
    }
}
