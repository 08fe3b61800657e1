//! A rule id in a published doc comment is one that a page in `docs/` explains.

use std::collections::BTreeSet;

use super::source::{File, SpanKind, files, spans};

/// The packages whose documentation users read.
const PUBLISHED: [&str; 5] = [
    "crates/unbraid-core/src",
    "crates/unbraid/src",
    "crates/unbraid-http/src",
    "crates/unbraid-log/src",
    "crates/unbraid-cli/src",
];

/// The letters of the families of rules in `docs/edge-cases.md`.
const FAMILIES: &str = "ABCDEFGHJLMOPRSTUX";

/// A rule id without leading zeros: a family and a number.
type RuleId = (char, u32);

fn rule_id(word: &str) -> Option<RuleId> {
    let family = word.chars().next()?;
    let number = word.get(1..)?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let is_id = FAMILIES.contains(family) && is_number && (1..=2).contains(&number.len());
    is_id
        .then(|| number.parse().ok())?
        .map(|number| (family, number))
}

/// The ids that a text names. `E4 to E7` names four.
fn ids(text: &str) -> BTreeSet<RuleId> {
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .collect();
    let mut ids: BTreeSet<RuleId> = words.iter().filter_map(|word| rule_id(word)).collect();
    for range in words.windows(3).filter(|range| range[1] == "to") {
        if let (Some((family, first)), Some((_, last))) = (rule_id(range[0]), rule_id(range[2])) {
            ids.extend((first..=last).map(|number| (family, number)));
        }
    }
    ids
}

fn doc_comments(source: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_doc = |text: &str| text.starts_with("///") || text.starts_with("//!");
    spans(source)
        .into_iter()
        .filter(move |span| span.kind == SpanKind::Comment && is_doc(span.text))
        .map(|span| (span.line, span.text))
}

/// Whether the item below a doc comment can be seen in the documentation: it is public, a variant, or the module itself.
fn is_public(source: &str, line: usize) -> bool {
    let mut below = source.lines().skip(line - 1).map(str::trim_start);
    if below
        .clone()
        .next()
        .is_some_and(|text| text.starts_with("//!"))
    {
        return true;
    }
    let item = below.find(|text| !text.starts_with("//") && !text.starts_with("#["));
    item.is_some_and(|item| item.starts_with("pub ") || item.starts_with(char::is_uppercase))
}

fn undefined(file: &File, defined: &BTreeSet<RuleId>) -> Vec<String> {
    let mut problems = Vec::new();
    for (line, comment) in doc_comments(&file.text) {
        if !is_public(&file.text, line) {
            continue;
        }
        for (family, number) in ids(comment).difference(defined) {
            problems.push(format!("{}:{line}: {family}{number}", file.path));
        }
    }
    problems
}

#[test]
fn every_rule_id_in_a_public_comment_is_defined_in_docs() {
    let defined: BTreeSet<RuleId> = files("docs", &["md"])
        .iter()
        .flat_map(|page| ids(&page.text))
        .collect();
    let sources = PUBLISHED.iter().flat_map(|dir| files(dir, &["rs"]));
    let problems: Vec<String> = sources
        .flat_map(|file| undefined(&file, &defined))
        .collect();
    assert!(
        problems.is_empty(),
        "no page in docs/ explains\n{}",
        problems.join("\n")
    );
}

#[test]
fn ids_are_a_family_and_a_number() {
    let found = ids("E12, `T07`: S1 to S3; (X4) but not K5, E123, UTF8, E, e4, u8 or F_6");
    let expected = [('E', 12), ('T', 7), ('S', 1), ('S', 2), ('S', 3), ('X', 4)];
    assert_eq!(found, expected.into());
}

#[test]
fn only_public_doc_comments_are_checked() {
    let check = |text: &str| {
        let path = "src/lib.rs".to_owned();
        let text = text.to_owned();
        undefined(&File { path, text }, &[('E', 1)].into()).len()
    };
    assert_eq!(check("/// Rule E1.\npub fn f() {}"), 0);
    assert_eq!(
        check("/// Rule E2.\n/// More.\n#[must_use]\npub fn f() {}"),
        1
    );
    assert_eq!(check("//! Rule E2.\n"), 1);
    assert_eq!(check("    /// Rule E2.\n    Variant,"), 1);
    assert_eq!(check("/// Rule E2.\nfn f() {}"), 0);
    assert_eq!(check("/// Rule E2.\npub(crate) fn f() {}"), 0);
    assert_eq!(check("// Rule E2.\npub fn f() {}"), 0);
    assert_eq!(check("pub const TEXT: &str = \"/// E2\";"), 0);
}
