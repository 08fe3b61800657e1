//! What the project promises about its own files.

use std::fs;
use std::path::{Path, PathBuf};

use unbraid_testkit::fixture::{Fixture, workspace_root};

/// Files of Rust below a directory of the workspace.
fn rust_files(below: &str) -> Vec<(PathBuf, String)> {
    let mut pending = vec![workspace_root().join(below)];
    let mut files = Vec::new();
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            pending.extend(
                entries
                    .map(|entry| entry.unwrap().path())
                    .filter(|path| !path.ends_with("target")),
            );
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((path, text));
        }
    }
    assert!(!files.is_empty(), "no files below {below}");
    files
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| part == "tests" || part == "tests.rs" || part == "it")
}

/// Lines that hold code: no blank lines, comments or unit tests.
fn lines_of_code(text: &str) -> usize {
    let shipped = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let code = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
    shipped.lines().filter(code).count()
}

#[test]
fn no_file_outgrows_its_reader() {
    const LINES: usize = 400;
    for (path, text) in rust_files("crates")
        .iter()
        .filter(|(path, _)| !is_test(path))
    {
        let lines = lines_of_code(text);
        assert!(
            lines <= LINES,
            "{}: {lines} lines of code; split it by role",
            path.display()
        );
    }
}

#[test]
fn ractor_stays_in_the_files_that_run_actors() {
    const ACTORS: [&str; 4] = [
        "reader.rs",
        "reader/outbox.rs",
        "reader/choice_actor.rs",
        "control.rs",
    ];
    for (path, text) in rust_files("crates")
        .iter()
        .filter(|(path, _)| !is_test(path))
    {
        let named = ACTORS
            .iter()
            .any(|file| path.ends_with(Path::new("crates/unbraid/src").join(file)));
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let uses = code
            .clone()
            .any(|line| line.contains("ractor::") && !line.contains("#[cfg(test)]"));
        let tested = text.contains("pub(crate) fn reader(&self) -> Option<ractor::ActorCell>");
        assert!(named || tested || !uses, "{}: uses ractor", path.display());
        let public = code.clone().find(|line| {
            line.trim_start().starts_with("pub ")
                && (line.contains("Actor") || line.contains("ractor"))
        });
        assert_eq!(
            public,
            None,
            "{}: an actor in a public signature",
            path.display()
        );
    }
}

#[test]
fn every_fixture_has_a_trace_and_every_trace_a_fixture() {
    for fixture in Fixture::all() {
        assert!(fixture.trace_path().is_file(), "{}: bless it", fixture.name);
    }
    let mut pending = vec![workspace_root().join("tests/fixtures")];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path
            .extension()
            .is_some_and(|extension| extension == "events")
        {
            assert!(
                path.with_extension("sse").is_file(),
                "{}: its stream is gone",
                path.display()
            );
        }
    }
}

#[test]
fn every_limit_has_a_test() {
    let limits =
        fs::read_to_string(workspace_root().join("crates/unbraid-core/src/limits.rs")).unwrap();
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
        .flat_map(|below| rust_files(below))
        .filter(|(path, _)| is_test(path))
        .map(|(_, text)| text)
        .collect();
    for field in fields {
        assert!(tests.contains(field), "no test sets the limit {field}");
    }
}

#[test]
fn versions_are_stated_once() {
    let manifest = fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
    assert_eq!(manifest.matches("rust-version = ").count(), 1);
    for (path, text) in fs::read_dir(workspace_root().join("crates"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path().join("Cargo.toml");
            let text = fs::read_to_string(&path).unwrap();
            (path, text)
        })
    {
        assert!(!text.contains("rust-version = "), "{}", path.display());
    }
}

#[test]
fn no_todo_is_left_behind() {
    let marks = [["TO", "DO"].concat(), ["FIX", "ME"].concat()];
    for (path, text) in ["crates", "tests", "examples"]
        .iter()
        .flat_map(|below| rust_files(below))
    {
        for mark in &marks {
            assert!(!text.contains(mark.as_str()), "{}: {mark}", path.display());
        }
    }
}
