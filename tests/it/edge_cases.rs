//! `docs/edge-cases.md` explains every warning that the library emits, and no other.

use std::{collections::BTreeSet, fs, path::Path};

use unbraid_testkit::fixture::workspace_root;

/// The codes in the string literals of a source: the letter of a family and a number.
fn codes(source: &str) -> BTreeSet<String> {
    let literals = source.split('"').skip(1).step_by(2);
    let is_code = |text: &&str| {
        let (family, number) = text.split_at_checked(1).unwrap_or_default();
        "ABCDEFGHJLMOPRSTUX".contains(family)
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    };
    literals.filter(is_code).map(str::to_owned).collect()
}

fn sources(dir: &Path, found: &mut BTreeSet<String>) {
    for path in fs::read_dir(dir)
        .expect("the sources can be listed")
        .flatten()
        .map(|entry| entry.path())
    {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if name != "tests" {
                sources(&path, found);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            // Line by line, so that a quote in a character literal only affects its line.
            let source = fs::read_to_string(&path).expect("sources are UTF-8");
            for line in source.lines() {
                found.extend(codes(line));
            }
        }
    }
}

#[track_caller]
fn check(folder: &str, explained: &BTreeSet<String>) -> BTreeSet<String> {
    let mut emitted = BTreeSet::new();
    sources(&workspace_root().join(folder), &mut emitted);
    let missing: Vec<&String> = emitted.difference(explained).collect();
    assert!(
        missing.is_empty(),
        "{folder} emits {missing:?}, which docs/edge-cases.md does not explain"
    );
    emitted
}

#[test]
fn every_warning_has_a_row_and_every_row_a_warning() {
    let table = fs::read_to_string(workspace_root().join("docs/edge-cases.md"));
    let table = table.expect("the page exists");
    let (_, table) = table
        .split_once("\n## Warnings\n")
        .expect("the page has the section");
    let rows = table
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let explained: BTreeSet<String> = rows.map(str::to_owned).collect();
    let mut emitted = check("crates/unbraid-core/src", &explained);
    emitted.append(&mut check("crates/unbraid/src", &explained));
    let unused: Vec<&String> = explained.difference(&emitted).collect();
    assert!(unused.is_empty(), "no code emits {unused:?}");
}
